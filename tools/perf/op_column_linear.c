/* SPDX-License-Identifier: BSD-3-Clause */
/* Y_r = X W_r^T, N being shared by the ranks: from all of X, or with sequence parallelism from this rank's
 * block of its rows, which is gathered first. */
#include "op.h"

#include <stdlib.h>

enum { X, GATHERED, Y }; /* buffers; GATHERED is made with sequence parallelism */

static starlin_placement_t placement_of_x(const perf_problem_t *problem)
{
    return problem->sequence_parallel ? STARLIN_SHARD_ROWS : STARLIN_REPLICATE;
}

static size_t operations(const perf_problem_t *problem, starlin_operation_t *list)
{
    list[0] = (starlin_operation_t){.op = STARLIN_OP_COLUMN_LINEAR,
                                    .n = problem->n_local,
                                    .k = problem->k,
                                    .dtype = problem->dtype,
                                    .reduction = problem->reduction,
                                    .from = placement_of_x(problem),
                                    .to = STARLIN_SHARD_COLS};
    return 1;
}

static bool graph_create(perf_graph_t *graph, perf_error_t *error)
{
    const perf_problem_t *problem = graph->problem;
    starlin_matrix_layout_t x = STARLIN_MATRIX_LAYOUT_INIT, y = STARLIN_MATRIX_LAYOUT_INIT;
    x.cols = problem->k;
    x.dtype = y.dtype = problem->dtype;
    x.placement = placement_of_x(problem);
    y.cols = problem->n_local;
    y.placement = STARLIN_SHARD_COLS;
    return perf_ok(starlin_matrix_create(graph->context, graph->chunking, &x, &graph->x), error) &&
           perf_ok(starlin_matrix_create(graph->context, graph->chunking, &y, &graph->y[0]), error);
}

static bool graph_submit(perf_graph_t *graph, unsigned layer, perf_error_t *error)
{
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    (void)layer;
    options.reduction = graph->problem->reduction;
    return perf_ok(starlin_column_linear(graph->context, graph->x, graph->w, graph->y[0], &options), error);
}

static char *at(const perf_program_t *program, size_t buffer, int64_t row, int64_t columns)
{
    return (char *)program->buffers[buffer] +
           (size_t)(row * columns) * starlin_dtype_nbytes(program->problem->dtype);
}

static perf_gemm_t gemm_of(const perf_program_t *program, int64_t first, int64_t nrows)
{
    const perf_problem_t *problem = program->problem;
    return (perf_gemm_t){.m = nrows,
                         .n = problem->n_local,
                         .k = problem->k,
                         .x = at(program, problem->sequence_parallel ? GATHERED : X, first, problem->k),
                         .w = program->w,
                         .y = at(program, Y, first, problem->n_local),
                         .dtype = problem->dtype,
                         .y_dtype = problem->dtype};
}

static bool program_create(perf_program_t *program, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    int64_t rows = perf_layout_rows(problem);
    size_t itemsize = starlin_dtype_nbytes(problem->dtype), count = (size_t)(rows * problem->k);
    bool ok = perf_program_alloc(program, X, count * itemsize, error) &&
              perf_program_alloc(program, Y, (size_t)(rows * problem->n_local) * itemsize, error);
    if (ok && problem->sequence_parallel)
        ok = perf_program_alloc(program, GATHERED, count * itemsize, error);
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

/* This rank's rows lie in order, whatever the chunks. */
static bool program_fill(perf_program_t *program, unsigned nchunks, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    size_t nbytes = (size_t)(problem->x_rows * problem->k) * starlin_dtype_nbytes(problem->dtype);
    void *host = malloc(nbytes + 1);
    (void)nchunks;
    bool ok = host != NULL || perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for X");
    ok = ok && perf_inputs_fill_x(problem, problem->x_begin, problem->x_rows, host, error) &&
         program->hand->ops->copy(program->hand, program->buffers[X], host, nbytes, error);
    free(host);
    return ok;
}

static bool start_chunk(perf_program_t *program, const perf_layout_t *layout, unsigned i, perf_error_t *error)
{
    const perf_problem_t *problem = program->problem;
    perf_collective_t collective = {.kind = PERF_ALLGATHER,
                                    .send = at(program, X, layout->first[i], problem->k),
                                    .receive =
                                        at(program, GATHERED, layout->first[i] * layout->nblocks, problem->k),
                                    .count = (size_t)(layout->share[i] * problem->k),
                                    .dtype = problem->dtype};
    return program->hand->ops->start(program->hand, i, &collective, error);
}

/* All gathers are in flight before the first gemm, which waits for its own. */
static bool program_run(perf_program_t *program, perf_baseline_t baseline, unsigned nchunks,
                        perf_error_t *error)
{
    const perf_hand_ops_t *ops = program->hand->ops;
    bool gathers = program->problem->sequence_parallel && baseline != PERF_BASELINE_GEMM, ok = true;
    perf_layout_t layout;
    perf_layout_make(program->problem, nchunks, &layout);
    for (unsigned i = 0; ok && gathers && i < layout.nchunks; i++)
        ok = start_chunk(program, &layout, i, error);
    for (unsigned i = 0; ok && baseline != PERF_BASELINE_COMM && i < layout.nchunks; i++) {
        perf_gemm_t gemm =
            gemm_of(program, layout.first[i] * layout.nblocks, layout.share[i] * layout.nblocks);
        ok = !gathers || ops->after(program->hand, i, error);
        ok = ok && ops->gemm(program->hand, &gemm, error);
    }
    return ok && ops->finish(program->hand, error);
}

typedef struct reader {
    perf_program_t *program;
    char *y;
    perf_error_t *error;
} reader_t;

static bool read_run(void *arg, int64_t first, int64_t row, int64_t nrows)
{
    reader_t *reader = arg;
    const perf_problem_t *problem = reader->program->problem;
    size_t row_nbytes = (size_t)problem->n_local * starlin_dtype_nbytes(problem->dtype);
    return reader->program->hand->ops->copy(reader->program->hand, reader->y + (size_t)row * row_nbytes,
                                            at(reader->program, Y, first, problem->n_local),
                                            (size_t)nrows * row_nbytes, reader->error);
}

static bool program_read(perf_program_t *program, unsigned nchunks, void *y, perf_error_t *error)
{
    perf_layout_t layout;
    reader_t reader = {program, y, error};
    perf_layout_make(program->problem, nchunks, &layout);
    return perf_layout_runs(program->problem, &layout, read_run, &reader);
}

const perf_op_t perf_op_column_linear = {
    .name = "column_linear",
    .splits_n = true,
    .operations = operations,
    .graph_create = graph_create,
    .graph_submit = graph_submit,
    .program_create = program_create,
    .program_fill = program_fill,
    .program_run = program_run,
    .program_read = program_read,
};
