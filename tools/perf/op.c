/* SPDX-License-Identifier: BSD-3-Clause */
/* What all ops share: the registry, planning and running of graphs, memory and chunks of programs. */
#include "op.h"

#include <string.h>

const perf_op_t *const perf_ops[] = {&perf_op_row_linear, &perf_op_column_linear, NULL};

bool perf_graph_plan(perf_graph_t *graph, const starlin_chunking_options_t *request, perf_error_t *error)
{
    const perf_problem_t *problem = graph->problem;
    starlin_operation_t operations[PERF_PLANNED_LAYERS * PERF_MAX_OPERATIONS];
    size_t noperations = 0;
    memset(operations, 0, sizeof(operations));
    for (unsigned i = 0; i < problem->layers && i < PERF_PLANNED_LAYERS; i++)
        noperations += graph->op->operations(problem, operations + noperations);
    for (size_t i = 0; i < noperations; i++)
        operations[i].struct_size = sizeof(operations[i]);
    return perf_ok(
        starlin_chunking_plan(graph->context, problem->m, operations, noperations, request, &graph->chunking),
        error);
}

bool perf_graph_run(perf_graph_t *graph, perf_error_t *error)
{
    for (unsigned layer = 0; layer < graph->problem->layers; layer++)
        if (!graph->op->graph_submit(graph, layer, error))
            return false;
    return perf_ok(starlin_context_wait(graph->context), error);
}

starlin_matrix_t *perf_graph_output(const perf_graph_t *graph)
{
    return graph->y[graph->problem->chain ? (graph->problem->layers - 1) % 2 : 0];
}

void perf_graph_release(perf_graph_t *graph)
{
    starlin_matrix_destroy(graph->next_x[0]);
    starlin_matrix_destroy(graph->next_x[1]);
    starlin_matrix_destroy(graph->x);
    starlin_matrix_destroy(graph->y[0]);
    starlin_matrix_destroy(graph->y[1]);
    starlin_chunking_destroy(graph->chunking);
    memset(graph, 0, sizeof(*graph));
}

bool perf_program_create(perf_program_t *program, perf_error_t *error)
{
    if (program->op->program_create(program, error) && program->op->program_fill(program, 1, error))
        return true;
    perf_program_destroy(program);
    return false;
}

void perf_program_destroy(perf_program_t *program)
{
    for (size_t i = 0; i < PERF_NBUFFERS; i++)
        if (program->buffers[i] != NULL)
            program->hand->ops->free(program->hand, program->buffers[i]);
    memset(program->buffers, 0, sizeof(program->buffers));
}

bool perf_program_alloc(perf_program_t *program, size_t buffer, size_t nbytes, perf_error_t *error)
{
    program->buffers[buffer] = program->hand->ops->alloc(program->hand, nbytes + 1);
    return program->buffers[buffer] != NULL ||
           perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a baseline's %zu bytes", nbytes);
}

starlin_dtype_t perf_problem_sum_dtype(const perf_problem_t *problem)
{
    bool half = problem->dtype == STARLIN_F16 || problem->dtype == STARLIN_BF16;
    return half && problem->reduction == STARLIN_REDUCTION_F32 ? STARLIN_F32 : problem->dtype;
}

void perf_layout_make(const perf_problem_t *problem, unsigned nchunks, perf_layout_t *layout)
{
    memset(layout, 0, sizeof(*layout));
    layout->nblocks = problem->sequence_parallel ? problem->nranks : 1;
    layout->block = (problem->m + layout->nblocks - 1) / layout->nblocks;
    layout->nchunks = (int64_t)nchunks < layout->block ? nchunks : (size_t)layout->block;
    int64_t base = layout->block / (int64_t)layout->nchunks, rest = layout->block % (int64_t)layout->nchunks;
    for (size_t i = 0, first = 0; i < layout->nchunks; first += (size_t)layout->share[i], i++) {
        layout->share[i] = base + ((int64_t)i < rest);
        layout->first[i] = (int64_t)first;
    }
}

int64_t perf_layout_rows(const perf_problem_t *problem)
{
    perf_layout_t layout;
    perf_layout_make(problem, 1, &layout);
    return layout.nblocks * layout.block;
}

bool perf_layout_runs(const perf_problem_t *problem, const perf_layout_t *layout,
                      bool (*run)(void *arg, int64_t at, int64_t row, int64_t nrows), void *arg)
{
    int64_t at = 0;
    for (size_t c = 0; c < layout->nchunks; c++)
        for (int64_t block = 0; block < layout->nblocks; block++, at += layout->share[c]) {
            int64_t begin = block * problem->m / layout->nblocks;
            int64_t rows = (block + 1) * problem->m / layout->nblocks - begin - layout->first[c];
            rows = rows < layout->share[c] ? rows : layout->share[c];
            if (rows > 0 && !run(arg, at, begin + layout->first[c], rows))
                return false;
        }
    return true;
}
