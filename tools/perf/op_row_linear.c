/* SPDX-License-Identifier: BSD-3-Clause */
/* Y = sum over ranks of X_r W_r^T: on every rank all of Y, or with sequence parallelism its block of rows. */
#include "op.h"

#include <stdlib.h>

enum { X, PARTIAL, SUM, Y, ZEROS }; /* buffers; SUM and Y are made where they are not the one before */

static starlin_placement_t placement_of_y(const perf_problem_t *problem)
{
    return problem->sequence_parallel ? STARLIN_SHARD_ROWS : STARLIN_REPLICATE;
}

static size_t operations(const perf_problem_t *problem, starlin_operation_t *list)
{
    list[0] = (starlin_operation_t){.op = STARLIN_OP_ROW_LINEAR,
                                    .n = problem->n,
                                    .k = problem->k_local,
                                    .dtype = problem->dtype,
                                    .reduction = problem->reduction,
                                    .from = STARLIN_SHARD_COLS,
                                    .to = placement_of_y(problem)};
    return 1;
}

static bool graph_create(perf_graph_t *graph, perf_error_t *error)
{
    const perf_problem_t *problem = graph->problem;
    starlin_matrix_layout_t x = STARLIN_MATRIX_LAYOUT_INIT, y = STARLIN_MATRIX_LAYOUT_INIT;
    x.cols = problem->k_local;
    x.dtype = y.dtype = problem->dtype;
    x.placement = STARLIN_SHARD_COLS;
    y.cols = problem->n;
    y.placement = placement_of_y(problem);
    if (!perf_ok(starlin_matrix_create(graph->context, graph->chunking, &x, &graph->x), error))
        return false;
    if (!perf_ok(starlin_matrix_create(graph->context, graph->chunking, &y, &graph->y[0]), error))
        return false;
    if (!problem->chain)
        return true;
    return perf_ok(starlin_matrix_create(graph->context, graph->chunking, &y, &graph->y[1]), error) &&
           perf_ok(starlin_matrix_view(graph->y[0], STARLIN_SHARD_COLS, &graph->next_x[0]), error) &&
           perf_ok(starlin_matrix_view(graph->y[1], STARLIN_SHARD_COLS, &graph->next_x[1]), error);
}

static bool graph_submit(perf_graph_t *graph, unsigned layer, perf_error_t *error)
{
    const perf_problem_t *problem = graph->problem;
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    options.reduction = problem->reduction;
    starlin_matrix_t *input = problem->chain && layer > 0 ? graph->next_x[(layer - 1) % 2] : graph->x;
    starlin_matrix_t *output = graph->y[problem->chain ? layer % 2 : 0];
    return perf_ok(starlin_row_linear(graph->context, input, graph->w, output, &options), error);
}

static char *at(const perf_program_t *program, size_t buffer, int64_t row, int64_t columns,
                starlin_dtype_t dtype)
{
    return (char *)program->buffers[buffer] + (size_t)(row * columns) * starlin_dtype_nbytes(dtype);
}

/* Where a buffer is not made, the one before it serves. */
static size_t sum_buffer(const perf_problem_t *problem)
{
    return problem->sequence_parallel ? SUM : PARTIAL;
}

static size_t y_buffer(const perf_problem_t *problem)
{
    return perf_problem_sum_dtype(problem) != problem->dtype ? Y : sum_buffer(problem);
}

static perf_gemm_t gemm_of(const perf_program_t *program, int64_t first, int64_t nrows)
{
    const perf_problem_t *problem = program->problem;
    starlin_dtype_t sum_dtype = perf_problem_sum_dtype(problem);
    return (perf_gemm_t){.m = nrows,
                         .n = problem->n,
                         .k = problem->k_local,
                         .x = at(program, X, first, problem->k_local, problem->dtype),
                         .w = program->w,
                         .y = at(program, PARTIAL, first, problem->n, sum_dtype),
                         .dtype = problem->dtype,
                         .y_dtype = sum_dtype};
}

static bool program_create(perf_program_t *program, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    starlin_dtype_t sum_dtype = perf_problem_sum_dtype(problem);
    int64_t rows = perf_layout_rows(problem);
    size_t count = (size_t)(rows * problem->n), sum_nbytes = starlin_dtype_nbytes(sum_dtype);
    bool ok =
        perf_program_alloc(program, X,
                           (size_t)(rows * problem->k_local) * starlin_dtype_nbytes(problem->dtype), error) &&
        perf_program_alloc(program, PARTIAL, count * sum_nbytes, error) &&
        perf_program_alloc(program, ZEROS, count * sum_nbytes, error);
    if (ok && sum_buffer(problem) == SUM)
        ok = perf_program_alloc(program, SUM, count * sum_nbytes, error);
    if (ok && y_buffer(problem) == Y)
        ok = perf_program_alloc(program, Y, count * starlin_dtype_nbytes(problem->dtype), error);
    for (unsigned nchunks = 1; ok && nchunks <= PERF_MAX_SLOTS; nchunks *= 2) {
        perf_layout_t layout;
        perf_layout_make(problem, nchunks, &layout);
        for (size_t i = 0; ok && i < layout.nchunks; i++) {
            perf_gemm_t gemm = gemm_of(program, 0, layout.nblocks * layout.share[i]);
            ok = program->hand->ops->prepare(program->hand, &gemm, error);
        }
    }
    return ok;
}

typedef struct filler {
    perf_program_t *program;
    void *host;
    perf_error_t *error;
} filler_t;

static bool fill_run(void *arg, int64_t first, int64_t row, int64_t nrows)
{
    filler_t *filler = arg;
    const perf_problem_t *problem = filler->program->problem;
    perf_hand_t *hand = filler->program->hand;
    size_t nbytes = (size_t)(nrows * problem->k_local) * starlin_dtype_nbytes(problem->dtype);
    return perf_inputs_fill_x(problem, row, nrows, filler->host, filler->error) &&
           hand->ops->copy(hand, at(filler->program, X, first, problem->k_local, problem->dtype),
                           filler->host, nbytes, filler->error);
}

static bool program_fill(perf_program_t *program, unsigned nchunks, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    perf_layout_t layout;
    perf_layout_make(problem, nchunks, &layout);
    size_t nbytes = (size_t)(layout.block * problem->k_local) * starlin_dtype_nbytes(problem->dtype);
    filler_t filler = {program, malloc(nbytes + 1), error};
    bool ok = filler.host != NULL || perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for X");
    ok = ok && perf_layout_runs(problem, &layout, fill_run, &filler);
    free(filler.host);
    return ok;
}

static bool start_chunk(perf_program_t *program, const perf_layout_t *layout, unsigned i, size_t source,
                        perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    starlin_dtype_t dtype = perf_problem_sum_dtype(problem);
    char *send = at(program, source, layout->first[i] * layout->nblocks, problem->n, dtype);
    perf_collective_t collective = {.kind = PERF_ALLREDUCE,
                                    .send = send,
                                    .receive = send,
                                    .count = (size_t)(layout->share[i] * problem->n),
                                    .dtype = dtype};
    if (problem->sequence_parallel) {
        collective.kind = PERF_REDUCE_SCATTER;
        collective.receive = at(program, SUM, layout->first[i], problem->n, dtype);
    }
    return program->hand->ops->start(program->hand, i, &collective, error);
}

/* The rounding of a chunk follows its collective. */
static bool round_chunk(perf_program_t *program, const perf_layout_t *layout, unsigned i, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    if (y_buffer(problem) != Y)
        return true;
    char *src = at(program, sum_buffer(problem), layout->first[i], problem->n, STARLIN_F32);
    return program->hand->ops->round(program->hand, (const float *)src,
                                     at(program, Y, layout->first[i], problem->n, problem->dtype),
                                     (size_t)(layout->share[i] * problem->n), problem->dtype, error);
}

static bool program_run(perf_program_t *program, perf_baseline_t baseline, unsigned nchunks,
                        perf_error_t *error)
{
    const perf_hand_ops_t *ops = program->hand->ops;
    perf_layout_t layout;
    bool ok = true;
    perf_layout_make(program->problem, nchunks, &layout);
    for (unsigned i = 0; ok && i < layout.nchunks; i++) {
        perf_gemm_t gemm =
            gemm_of(program, layout.first[i] * layout.nblocks, layout.share[i] * layout.nblocks);
        if (baseline != PERF_BASELINE_COMM)
            ok = ops->gemm(program->hand, &gemm, error);
        if (ok && baseline != PERF_BASELINE_GEMM)
            ok = start_chunk(program, &layout, i, baseline == PERF_BASELINE_COMM ? ZEROS : PARTIAL, error);
    }
    for (unsigned i = 0; ok && baseline != PERF_BASELINE_COMM && i < layout.nchunks; i++) {
        if (baseline == PERF_BASELINE_LOOP)
            ok = ops->after(program->hand, i, error);
        ok = ok && round_chunk(program, &layout, i, error);
    }
    return ok && ops->finish(program->hand, error);
}

/* A block's rows lie in order. */
static bool program_read(perf_program_t *program, unsigned nchunks, void *y, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    (void)nchunks;
    return program->hand->ops->copy(
        program->hand, y, program->buffers[y_buffer(problem)],
        (size_t)(problem->y_rows * problem->n) * starlin_dtype_nbytes(problem->dtype), error);
}

const perf_op_t perf_op_row_linear = {
    .name = "row_linear",
    .operations = operations,
    .graph_create = graph_create,
    .graph_submit = graph_submit,
    .program_create = program_create,
    .program_fill = program_fill,
    .program_run = program_run,
    .program_read = program_read,
};
