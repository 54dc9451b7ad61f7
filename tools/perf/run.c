/* SPDX-License-Identifier: BSD-3-Clause */
/* One shape from plan to checked result. What is timed is interleaved: each round runs each item once, so
 * that a machine that becomes slower becomes slower for all of them. */
#define _POSIX_C_SOURCE 200809L
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starlin/starlin_plan.h>

#include "progress.h"
#include "reference.h"
#include "workers.h"

#define SETTLE_NS 300000 /* resumed workers are awake after this */

/* What is measured beside the graphs. Gemms and collectives alone count as the faster of one chunk and of
 * several: over some networks several collectives in flight beat one. */
typedef struct thing {
    unsigned bit; /* of --baselines */
    perf_baseline_t baseline;
    unsigned nchunks;
} thing_t;

static const thing_t things[] = {
    {PERF_SERIAL, PERF_BASELINE_LOOP, 1}, {PERF_LOOP, PERF_BASELINE_LOOP, 1},
    {PERF_LOOP, PERF_BASELINE_LOOP, 2},   {PERF_LOOP, PERF_BASELINE_LOOP, 4},
    {PERF_LOOP, PERF_BASELINE_LOOP, 8},   {PERF_LOOP, PERF_BASELINE_LOOP, 16},
    {PERF_LOOP, PERF_BASELINE_LOOP, 32},  {PERF_GEMM, PERF_BASELINE_GEMM, 1},
    {PERF_GEMM, PERF_BASELINE_GEMM, 4},   {PERF_GEMM, PERF_BASELINE_GEMM, 16},
    {PERF_COMM, PERF_BASELINE_COMM, 1},   {PERF_COMM, PERF_BASELINE_COMM, 4},
    {PERF_COMM, PERF_BASELINE_COMM, 16},
};
enum { NTHINGS = sizeof(things) / sizeof(things[0]) };

enum { CHECKED_CHUNKS = 4 }; /* of the loop whose result is compared */

typedef struct shape_run {
    perf_run_t *run;
    const perf_problem_t *problem;
    perf_row_t *rows;
    perf_error_t *error;
    starlin_context_info_t info;
    size_t ngraphs;
    perf_graph_t graphs[PERF_MAX_CHUNKINGS];
    starlin_matrix_t *w;
    perf_hand_t *hand; /* NULL: no baselines */
    perf_program_t program;
    void *host; /* large enough for this rank's X, W and Y */
    size_t host_nbytes;
    double *samples; /* [item][iteration], graphs first */
} shape_run_t;

static bool plan(shape_run_t *shape)
{
    perf_run_t *run = shape->run;
    for (size_t i = 0; i < run->options->nchunkings; i++) {
        const perf_chunking_t *request = &run->options->chunkings[i];
        perf_graph_t *graph = &shape->graphs[i];
        *graph = (perf_graph_t){.context = run->context, .op = run->options->op, .problem = shape->problem};
        starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
        options.count = request->count;
        options.rows = request->nrows > 0 ? request->rows : NULL;
        options.nrows = request->nrows;
        options.effort = request->count + request->nrows == 0 ? run->options->effort : STARLIN_EFFORT_MEASURE;
        run->failed_together = true;
        if (!perf_graph_plan(graph, &options, shape->error))
            return false;
        run->failed_together = false;
        shape->ngraphs++;
    }
    return true;
}

static double per_layer(double time_us, double nlayers)
{
    return time_us > 0 ? time_us / nlayers : PERF_NOT_MEASURED;
}

static bool describe_plan(shape_run_t *shape, const starlin_chunking_t *chunking, perf_plan_t *plan)
{
    starlin_plan_summary_t summary = STARLIN_PLAN_SUMMARY_INIT;
    starlin_operation_t operations[PERF_MAX_OPERATIONS];
    if (!perf_ok(starlin_chunking_plan_summary(chunking, &summary), shape->error))
        return false;
    plan->planned = summary.source != STARLIN_PLAN_ASKED;
    if (!plan->planned)
        return true;
    double nlayers =
        (double)summary.nplanned / (double)shape->run->options->op->operations(shape->problem, operations);
    nlayers = nlayers > 0 ? nlayers : 1;
    plan->source = starlin_plan_source_name(summary.source);
    plan->simulated_us = per_layer(summary.predicted_us, nlayers);
    plan->tried_us = per_layer(summary.measured_us, nlayers);
    plan->predicted_us = plan->tried_us > 0 ? plan->tried_us : plan->simulated_us;
    plan->serial_us = per_layer(summary.serial_us, nlayers);
    plan->planning_us = summary.planning_us;
    for (size_t i = 0; i < summary.ncandidates; i++) {
        starlin_plan_candidate_t candidate = STARLIN_PLAN_CANDIDATE_INIT;
        if (!perf_ok(starlin_chunking_plan_candidate(chunking, i, &candidate), shape->error))
            return false;
        plan->lists += candidate.nrounds > 0;
    }
    return perf_ok(starlin_chunking_explain(chunking, plan->text, sizeof(plan->text), NULL), shape->error);
}

static bool describe(shape_run_t *shape)
{
    const perf_problem_t *problem = shape->problem;
    for (size_t i = 0; i < shape->ngraphs; i++) {
        perf_row_t *row = &shape->rows[i];
        const starlin_chunking_t *chunking = shape->graphs[i].chunking;
        memset(row, 0, sizeof(*row));
        if (shape->run->options->npolicies > 0)
            snprintf(row->policy, sizeof(row->policy), "%s", shape->info.policy);
        row->m = problem->m;
        row->n = problem->n;
        row->k = problem->k;
        row->dtype = problem->dtype;
        row->layers = problem->layers;
        row->wrong = -1;
        row->nchunks = starlin_chunking_count(chunking);
        for (size_t c = 0; c < row->nchunks && c < PERF_MAX_CHUNKS; c++)
            row->chunks[c] = starlin_chunking_rows(chunking, c);
        const char *fallback = starlin_chunking_fallback(chunking);
        snprintf(row->fallback, sizeof(row->fallback), "%s", fallback != NULL ? fallback : "");
        if (!describe_plan(shape, chunking, &row->plan))
            return false;
    }
    return true;
}

/* The program by hand works in the same memory as the library's gemms. */
static bool create_program(shape_run_t *shape)
{
    const perf_options_t *options = shape->run->options;
    const perf_hand_ops_t *ops = options->baselines != 0 ? perf_hand_find(&shape->info) : NULL;
    if (ops == NULL)
        return true;
    perf_hand_setup_t setup = {.info = shape->info,
                               .link = options->link,
                               .rank = shape->run->ranks->rank,
                               .nranks = shape->run->ranks->nranks,
                               .data = starlin_matrix_data(shape->w)};
    shape->program =
        (perf_program_t){.op = options->op, .problem = shape->problem, .w = starlin_matrix_data(shape->w)};
    if (!ops->create(&setup, &shape->hand, shape->error))
        return false;
    shape->program.hand = shape->hand;
    return perf_program_create(&shape->program, shape->error);
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool fill(shape_run_t *shape)
{
    const perf_problem_t *problem = shape->problem;
    starlin_context_t *context = shape->run->context;
    size_t nelements =
        max_size((size_t)(problem->y_rows * problem->n_local),
                 (size_t)problem->k_local * max_size((size_t)problem->x_rows, (size_t)problem->n_local));
    shape->host_nbytes = nelements * starlin_dtype_nbytes(problem->dtype);
    shape->host = malloc(shape->host_nbytes + 1);
    if (shape->host == NULL)
        return perf_error_status(shape->error, STARLIN_ERR_NO_MEMORY, "no memory for %zu bytes",
                                 shape->host_nbytes);
    starlin_matrix_layout_t layout = STARLIN_MATRIX_LAYOUT_INIT;
    layout.rows = problem->n_local;
    layout.cols = problem->k_local;
    layout.dtype = problem->dtype;
    if (!perf_inputs_fill_w(problem, shape->host, shape->error) ||
        !perf_ok(starlin_matrix_create(context, NULL, &layout, &shape->w), shape->error) ||
        !perf_ok(starlin_matrix_write(shape->w, shape->host, 0), shape->error) ||
        !perf_inputs_fill_x(problem, problem->x_begin, problem->x_rows, shape->host, shape->error))
        return false;
    for (size_t i = 0; i < shape->ngraphs; i++) {
        perf_graph_t *graph = &shape->graphs[i];
        graph->w = shape->w;
        if (!graph->op->graph_create(graph, shape->error) ||
            !perf_ok(starlin_matrix_write(graph->x, shape->host, 0), shape->error))
            return false;
    }
    return create_program(shape);
}

/* Everything that is measured, in one numbering: the graphs, then the things. */
static bool takes_part(const shape_run_t *shape, size_t item)
{
    return item < shape->ngraphs ||
           (shape->hand != NULL && (shape->run->options->baselines & things[item - shape->ngraphs].bit) != 0);
}

static bool run_item(shape_run_t *shape, size_t item, double *time_us)
{
    bool is_graph = item < shape->ngraphs, on_host = strcmp(shape->info.compute, "cblas") == 0, ok;
    if (!is_graph && on_host)
        perf_workers_pause();
    perf_ranks_barrier();
    double start_us = perf_now_us();
    if (is_graph) {
        ok = perf_graph_run(&shape->graphs[item], shape->error);
    } else {
        const thing_t *thing = &things[item - shape->ngraphs];
        ok = shape->run->options->op->program_run(&shape->program, thing->baseline, thing->nchunks,
                                                  shape->error);
    }
    *time_us = (perf_now_us() - start_us) / (is_graph ? shape->run->options->layers : 1);
    if (!is_graph && on_host)
        perf_workers_resume();
    /* the same rest before each: workers wake up, and no item starts on a hotter device than another */
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    return ok;
}

/* The same on every rank. In each round another order: neither what drifts nor what ran just before is one
 * item's lasting advantage. */
static void shuffle(size_t *order, size_t count, uint64_t *state)
{
    for (size_t i = count; i > 1; i--) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        size_t other = (size_t)((*state >> 33) % i), swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
}

static void show_progress(const shape_run_t *shape, unsigned round)
{
    const perf_problem_t *problem = shape->problem;
    const perf_options_t *options = shape->run->options;
    perf_progress_set("%s: M %lld, N %lld, K %lld, %s: round %u of %u", shape->info.policy,
                      (long long)problem->m, (long long)problem->n, (long long)problem->k,
                      starlin_dtype_name(problem->dtype), round + 1, options->warmups + options->iterations);
}

/* Runs warm-ups and iterations; the times are then the slowest rank's. */
static bool run_rounds(shape_run_t *shape)
{
    const perf_options_t *options = shape->run->options;
    unsigned warmups = options->warmups, iterations = options->iterations;
    size_t nitems = shape->ngraphs + NTHINGS, nsamples = nitems * iterations;
    size_t order[PERF_MAX_CHUNKINGS + NTHINGS];
    uint64_t state = 1;
    for (size_t i = 0; i < nitems; i++)
        order[i] = i;
    shape->samples = calloc(nsamples, sizeof(double));
    if (shape->samples == NULL)
        return perf_error_status(shape->error, STARLIN_ERR_NO_MEMORY, "no memory for %zu samples", nsamples);
    for (unsigned i = 0; i < warmups + iterations; i++) {
        show_progress(shape, i);
        shuffle(order, nitems, &state);
        for (size_t j = 0; j < nitems; j++) {
            double time_us;
            if (!takes_part(shape, order[j]))
                continue;
            if (!run_item(shape, order[j], &time_us))
                return false;
            if (i >= warmups)
                shape->samples[order[j] * iterations + i - warmups] = time_us;
        }
    }
    perf_ranks_max(shape->samples, nsamples);
    return true;
}

static void keep_fastest(double *time_us, double median)
{
    if (*time_us < 0 || median < *time_us)
        *time_us = median;
}

/* The things' times stand in every row of the shape. */
static void fill_row(const shape_run_t *shape, const double *medians, perf_row_t *row)
{
    unsigned nloops = 0;
    row->serial_us = row->loop_us = row->gemm_us = row->comm_us = PERF_NOT_MEASURED;
    for (unsigned j = 0; j < PERF_NLOOPS; j++)
        row->loops_us[j] = PERF_NOT_MEASURED;
    for (size_t i = 0; i < NTHINGS; i++) {
        if (!takes_part(shape, shape->ngraphs + i))
            continue;
        if (things[i].bit == PERF_SERIAL)
            row->serial_us = medians[i];
        if (things[i].bit == PERF_GEMM)
            keep_fastest(&row->gemm_us, medians[i]);
        if (things[i].bit == PERF_COMM)
            keep_fastest(&row->comm_us, medians[i]);
        if (things[i].bit == PERF_LOOP) {
            row->loops_us[nloops++] = medians[i]; /* things[] has them by size */
            if (row->loop_us < 0 || medians[i] < row->loop_us)
                row->loop_chunks = things[i].nchunks;
            keep_fastest(&row->loop_us, medians[i]);
        }
    }
}

static bool measure(shape_run_t *shape)
{
    unsigned iterations = shape->run->options->iterations;
    double medians[NTHINGS] = {0};
    if (!run_rounds(shape))
        return false;
    for (size_t i = 0; i < NTHINGS; i++)
        if (takes_part(shape, shape->ngraphs + i))
            medians[i] =
                perf_statistics(shape->samples + (shape->ngraphs + i) * iterations, iterations).median;
    for (size_t i = 0; i < shape->ngraphs; i++) {
        shape->rows[i].time_us = perf_statistics(shape->samples + i * iterations, iterations);
        fill_row(shape, medians, &shape->rows[i]);
    }
    return true;
}

/* Overwrites a result with NaNs, so that stale values cannot pass. */
static bool poison(shape_run_t *shape, starlin_matrix_t *y)
{
    memset(shape->host, 0xff, shape->host_nbytes);
    return perf_ok(starlin_matrix_write(y, shape->host, 0), shape->error);
}

/* Over all ranks: each one compares what it has. */
static void count_wrong(shape_run_t *shape, const perf_reference_t *reference, perf_counts_t *counts)
{
    perf_reference_compare(reference, shape->host, counts);
    uint64_t both[2] = {counts->wrong, counts->nonfinite};
    perf_ranks_sum(both, 2);
    *counts = (perf_counts_t){both[0], both[1]};
}

/* A baseline that computes something else would be no baseline. */
static bool check_program(shape_run_t *shape, const perf_reference_t *reference)
{
    const perf_op_t *op = shape->run->options->op;
    perf_counts_t counts;
    if (shape->hand == NULL || (shape->run->options->baselines & (PERF_SERIAL | PERF_LOOP)) == 0 ||
        shape->problem->chain)
        return true;
    if (!op->program_fill(&shape->program, CHECKED_CHUNKS, shape->error))
        return false;
    perf_ranks_barrier();
    memset(shape->host, 0xff, shape->host_nbytes);
    if (!op->program_run(&shape->program, PERF_BASELINE_LOOP, CHECKED_CHUNKS, shape->error) ||
        !op->program_read(&shape->program, CHECKED_CHUNKS, shape->host, shape->error))
        return false;
    count_wrong(shape, reference, &counts);
    return counts.wrong == 0 ||
           perf_error_status(shape->error, STARLIN_ERR_COMPUTE,
                             "the loop that the graph is compared with has %llu wrong elements",
                             (unsigned long long)counts.wrong);
}

/* One more run of each case, over poisoned results. */
static bool check_results(shape_run_t *shape, const perf_reference_t *reference)
{
    for (size_t i = 0; i < shape->ngraphs; i++) {
        perf_graph_t *graph = &shape->graphs[i];
        perf_counts_t counts;
        for (unsigned j = 0; j < 2; j++)
            if (graph->y[j] != NULL && !poison(shape, graph->y[j]))
                return false;
        uint64_t tasks = starlin_context_ntasks(shape->run->context);
        if (!perf_graph_run(graph, shape->error))
            return false;
        shape->rows[i].tasks = starlin_context_ntasks(shape->run->context) - tasks;
        if (reference == NULL)
            continue;
        if (!perf_ok(starlin_matrix_read(perf_graph_output(graph), shape->host, 0), shape->error))
            return false;
        count_wrong(shape, reference, &counts);
        shape->rows[i].wrong = (int64_t)counts.wrong;
        shape->rows[i].nonfinite = (int64_t)counts.nonfinite;
    }
    return reference == NULL || check_program(shape, reference);
}

static bool check(shape_run_t *shape)
{
    perf_reference_t *reference = NULL;
    if (shape->run->options->check && !perf_reference_create(shape->problem, &reference, shape->error))
        return false;
    bool ok = check_results(shape, reference);
    perf_reference_destroy(reference);
    return ok;
}

static bool record(shape_run_t *shape)
{
    bool ok = true;
    for (size_t i = 0; shape->run->recording != NULL && ok && i < shape->ngraphs; i++)
        ok = perf_recording_add(shape->run->recording, shape->run->ranks, &shape->graphs[i], &shape->rows[i],
                                shape->error);
    return ok;
}

static void release(shape_run_t *shape)
{
    if (shape->hand != NULL) {
        perf_program_destroy(&shape->program);
        shape->hand->ops->destroy(shape->hand);
    }
    for (size_t i = 0; i < shape->ngraphs; i++)
        perf_graph_release(&shape->graphs[i]);
    starlin_matrix_destroy(shape->w);
    free(shape->host);
    free(shape->samples);
    free(shape);
}

bool perf_run_shape(perf_run_t *run, const perf_problem_t *problem, perf_row_t *rows, perf_error_t *error)
{
    shape_run_t *shape = calloc(1, sizeof(*shape));
    if (shape == NULL)
        return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a shape");
    shape->info = (starlin_context_info_t)STARLIN_CONTEXT_INFO_INIT;
    shape->run = run;
    shape->problem = problem;
    shape->rows = rows;
    shape->error = error;
    bool ok = perf_ok(starlin_context_get_info(run->context, &shape->info), error) && plan(shape) &&
              describe(shape) && fill(shape) && measure(shape) && check(shape) && record(shape);
    if (ok || run->failed_together || run->ranks->nranks == 1)
        release(shape); /* else others may wait within a collective: the program is ended for all */
    return ok;
}
