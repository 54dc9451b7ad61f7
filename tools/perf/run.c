/* SPDX-License-Identifier: BSD-3-Clause */
/* One shape from plan to checked result. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "measure.h"
#include "ranks.h"
#include "plan/planning.h"
#include "reference.h"
#include "starlin/starlin_plan.h"
#include "plan/trial.h"

typedef struct shape_run {
    perf_run_t *run;
    const perf_problem_t *problem;
    perf_row_t *rows;
    size_t ngraphs;
    perf_graph_t graphs[PERF_MAX_CHUNKINGS];
    starlin_matrix_t *w;
    perf_baseline_t *baseline;
    void *host; /* large enough for any of X, W, Y */
    size_t host_nbytes;
} shape_run_t;

static starlin_status_t failed(const perf_error_t *error)
{
    return starlin__error(STARLIN_ERR_INVALID, "%s", error->text);
}

static starlin_status_t plan(shape_run_t *shape)
{
    perf_run_t *run = shape->run;
    for (size_t i = 0; i < run->options->nchunkings; i++) {
        run->failed_together = true;
        STARLIN__FORWARD(
            perf_graph_plan(&shape->graphs[i], run->context, shape->problem, &run->options->chunkings[i]));
        run->failed_together = false;
        shape->ngraphs++;
    }
    return STARLIN_SUCCESS;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static starlin_status_t fill(shape_run_t *shape)
{
    const perf_problem_t *problem = shape->problem;
    starlin_context_t *context = shape->run->context;
    size_t nelements = max_size((size_t)(problem->m * problem->n),
                                (size_t)problem->k_local * max_size((size_t)problem->m, (size_t)problem->n));
    perf_error_t error;
    shape->host_nbytes = nelements * starlin_dtype_nbytes(problem->dtype);
    shape->host = malloc(shape->host_nbytes);
    if (shape->host == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "%zu bytes of host memory", shape->host_nbytes);
    starlin_matrix_layout_t layout = {.rows = problem->n, .cols = problem->k_local, .dtype = problem->dtype};
    if (!perf_inputs_fill_w(problem, shape->host, &error))
        return failed(&error);
    STARLIN__FORWARD(starlin_matrix_create(context, NULL, &layout, &shape->w));
    STARLIN__FORWARD(starlin_matrix_write(shape->w, shape->host, 0));
    if (!perf_inputs_fill_x(problem, shape->host, &error))
        return failed(&error);
    for (size_t i = 0; i < shape->ngraphs; i++)
        STARLIN__FORWARD(perf_graph_fill(&shape->graphs[i], shape->w, shape->host));
    const perf_baseline_ops_t *ops = perf_baseline_find(context);
    if (ops != NULL && shape->run->options->baselines != 0)
        STARLIN__FORWARD(ops->create(context, problem, starlin_matrix_data(shape->graphs[0].x),
                                     starlin_matrix_data(shape->w), &shape->baseline));
    return STARLIN_SUCCESS;
}

static starlin_status_t measure(shape_run_t *shape)
{
    perf_measure_t measure = {.context = shape->run->context,
                              .options = shape->run->options,
                              .graphs = shape->graphs,
                              .ngraphs = shape->ngraphs,
                              .baseline = shape->baseline};
    starlin_status_t status = perf_measure_run(&measure);
    for (size_t i = 0; status == STARLIN_SUCCESS && i < shape->ngraphs; i++)
        perf_measure_row(&measure, i, &shape->rows[i]);
    perf_measure_release(&measure);
    return status;
}

/* Overwrites a result with NaNs, so that stale values cannot pass. */
static starlin_status_t poison(shape_run_t *shape, starlin_matrix_t *y)
{
    memset(shape->host, 0xff, shape->host_nbytes);
    return starlin_matrix_write(y, shape->host, 0);
}

static starlin_status_t count_wrong(shape_run_t *shape, const perf_reference_t *reference,
                                    starlin_matrix_t *y, uint64_t *wrong_p)
{
    STARLIN__FORWARD(starlin_matrix_read(y, shape->host, 0));
    *wrong_p = perf_reference_wrong(reference, shape->host);
    perf_ranks_sum(wrong_p);
    return STARLIN_SUCCESS;
}

/* A baseline that computes something else would be no baseline. */
static starlin_status_t check_baseline(shape_run_t *shape, const perf_reference_t *reference)
{
    uint64_t wrong;
    perf_baseline_t *baseline = shape->baseline;
    if (baseline == NULL || (shape->run->options->baselines & (PERF_SERIAL | PERF_LOOP)) == 0 ||
        shape->problem->chain)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(poison(shape, baseline->ops->output(baseline)));
    perf_ranks_barrier();
    STARLIN__FORWARD(baseline->ops->run(baseline, PERF_BASELINE_LOOP, 4));
    STARLIN__FORWARD(count_wrong(shape, reference, baseline->ops->output(baseline), &wrong));
    if (wrong > 0)
        return starlin__error(STARLIN_ERR_COMPUTE,
                              "the loop that the graph is compared with has %llu wrong elements",
                              (unsigned long long)wrong);
    return STARLIN_SUCCESS;
}

/* One more run of each case, over poisoned results. */
static starlin_status_t check_results(shape_run_t *shape, const perf_reference_t *reference)
{
    for (size_t i = 0; i < shape->ngraphs; i++) {
        perf_graph_t *graph = &shape->graphs[i];
        uint64_t wrong, tasks = shape->run->context->ntasks;
        for (unsigned j = 0; j < 2; j++)
            if (graph->y[j] != NULL)
                STARLIN__FORWARD(poison(shape, graph->y[j]));
        STARLIN__FORWARD(perf_graph_run(graph));
        shape->rows[i].tasks = shape->run->context->ntasks - tasks;
        if (reference == NULL)
            continue;
        STARLIN__FORWARD(count_wrong(shape, reference, perf_graph_output(graph), &wrong));
        shape->rows[i].wrong = (int64_t)wrong;
    }
    return reference != NULL ? check_baseline(shape, reference) : STARLIN_SUCCESS;
}

static starlin_status_t check(shape_run_t *shape)
{
    perf_reference_t *reference = NULL;
    perf_error_t error;
    if (shape->run->options->check && !perf_reference_create(shape->problem, &reference, &error))
        return failed(&error);
    starlin_status_t status = check_results(shape, reference);
    perf_reference_destroy(reference);
    return status;
}

static void describe_plan(const starlin_chunking_t *chunking, perf_plan_t *plan)
{
    const starlin__planning_t *planning = starlin__chunking_planning(chunking);
    plan->planned = planning != NULL;
    if (planning == NULL)
        return;
    plan->predicted_us = planning->plan.predicted_us;
    plan->tried_us = planning->nlists > 0 ? planning->measured_us : PERF_NOT_MEASURED;
    plan->serial_us = planning->plan.serial_us;
    plan->gemm_us = planning->plan.gemm_us;
    plan->comm_us = planning->plan.comm_us;
    plan->planning_us = planning->planning_us;
    plan->lists = (unsigned)planning->nlists;
    plan->tuned = planning->costs.tuned;
    plan->ctas = planning->plan.ctas;
    plan->simulated_us = planning->simulated_us;
    starlin_chunking_explain(chunking, plan->text, sizeof(plan->text), NULL);
}

/* What ran, where that is no longer the list that was planned. */
static void describe_replacement(const starlin_chunking_t *chunking, perf_row_t *row)
{
    const starlin__trial_t *trial = starlin__chunking_trial(chunking);
    if (trial == NULL)
        return;
    starlin_chunking_explain(chunking, row->plan.text, sizeof(row->plan.text), NULL);
    if (starlin__trial_replaced(trial) == NULL)
        return;
    snprintf(row->fallback, sizeof(row->fallback), "%s", starlin_chunking_fallback(chunking));
    row->nchunks = 1;
    row->chunks[0] = row->m;
    row->plan.predicted_us = row->plan.simulated_us = row->plan.serial_us;
    row->plan.ctas = 0;
    row->plan.tried_us = row->plan.lists > 0 ? row->plan.serial_us : PERF_NOT_MEASURED;
}

static void describe(shape_run_t *shape)
{
    const perf_problem_t *problem = shape->problem;
    for (size_t i = 0; i < shape->ngraphs; i++) {
        perf_row_t *row = &shape->rows[i];
        const starlin_chunking_t *chunking = shape->graphs[i].chunking;
        memset(row, 0, sizeof(*row));
        if (shape->run->options->npolicies > 0)
            snprintf(row->policy, sizeof(row->policy), "%s", shape->run->context->info.policy);
        row->m = problem->m;
        row->n = problem->n;
        row->k = problem->k;
        row->dtype = problem->dtype;
        row->layers = problem->layers;
        row->wrong = -1;
        row->nchunks = starlin_chunking_count(chunking);
        for (size_t c = 0; c < row->nchunks && c < STARLIN__MAX_CHUNKS; c++)
            row->chunks[c] = starlin_chunking_rows(chunking, c);
        const char *fallback = starlin_chunking_fallback(chunking);
        if (fallback != NULL)
            strncpy(row->fallback, fallback, sizeof(row->fallback) - 1);
        describe_plan(chunking, &row->plan);
    }
}

static void release(shape_run_t *shape)
{
    if (shape->baseline != NULL)
        shape->baseline->ops->destroy(shape->baseline);
    for (size_t i = 0; i < shape->ngraphs; i++)
        perf_graph_release(&shape->graphs[i]);
    starlin_matrix_destroy(shape->w);
    free(shape->host);
    free(shape);
}

starlin_status_t perf_run_shape(perf_run_t *run, const perf_problem_t *problem, perf_row_t *rows)
{
    shape_run_t *shape = calloc(1, sizeof(*shape));
    if (shape == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "a shape");
    shape->run = run;
    shape->problem = problem;
    shape->rows = rows;
    starlin_status_t status = plan(shape);
    if (status == STARLIN_SUCCESS)
        describe(shape);
    if (status == STARLIN_SUCCESS)
        status = fill(shape);
    if (status == STARLIN_SUCCESS)
        status = measure(shape);
    if (status == STARLIN_SUCCESS)
        status = check(shape);
    for (size_t i = 0; status == STARLIN_SUCCESS && i < shape->ngraphs; i++)
        describe_replacement(shape->graphs[i].chunking, &rows[i]);
    for (size_t i = 0; run->recording != NULL && status == STARLIN_SUCCESS && i < shape->ngraphs; i++)
        status = perf_recording_add(run->recording, &shape->graphs[i], &rows[i]);
    if (status == STARLIN_SUCCESS || run->failed_together || run->alone)
        release(shape);
    return status;
}
