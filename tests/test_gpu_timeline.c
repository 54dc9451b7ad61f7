/* SPDX-License-Identifier: BSD-3-Clause */
/* Two equal chunks of a bf16 linear on a device, over the modelled link: every kernel is in the timeline, and
 * launch, start and end of a collective are told apart. Both sources watch the same launches, so what they
 * say can be compared. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "graph/context.h"
#include "gpu.h"
#include "report/report.h"

enum { NSTEPS = 4, NCHUNKS = 2, CTAS = 8, M = 8192, N = 8192, K = 16384, CAPACITY = 256 };

typedef struct problem {
    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *x, *w, *y;
} problem_t;

/* --- a source that asks both: answers with CUPTI's times, and keeps those of the events */

static void *cupti_state, *events_state;
static starlin__launch_t by_events[CAPACITY], by_cupti[CAPACITY];
static size_t nboth;

/* A source by its name; NULL: not built. */
static const starlin__activity_ops_t *source_named(const char *name)
{
    size_t i = 0;
    while (starlin__activity_registry[i] != NULL && strcmp(starlin__activity_registry[i]->source, name) != 0)
        i++;
    return starlin__activity_registry[i];
}

static const starlin__activity_ops_t *cupti_ops, *events_ops;

static starlin_status_t both_open(starlin__device_t *device, size_t capacity, void **state_p)
{
    STARLIN__FORWARD(events_ops->open(device, capacity, &events_state));
    STARLIN__FORWARD(cupti_ops->open(device, capacity, &cupti_state));
    *state_p = &cupti_state;
    return STARLIN_SUCCESS;
}

static void both_close(void *state)
{
    (void)state;
    cupti_ops->close(cupti_state);
    events_ops->close(events_state);
}

static bool both_begin(void *state, size_t slot, starlin__stream_t stream, starlin__event_t *after)
{
    (void)state;
    return events_ops->begin(events_state, slot, stream, after) &&
           cupti_ops->begin(cupti_state, slot, stream, after);
}

static bool both_end(void *state, size_t slot, starlin__stream_t stream)
{
    (void)state;
    return cupti_ops->end(cupti_state, slot, stream) && events_ops->end(events_state, slot, stream);
}

static starlin_status_t both_resolve(void *state, starlin__launch_t *launches, size_t n)
{
    (void)state;
    nboth = n;
    memcpy(by_events, launches, n * sizeof *launches);
    STARLIN__FORWARD(events_ops->resolve(events_state, by_events, n));
    STARLIN__FORWARD(cupti_ops->resolve(cupti_state, launches, n));
    memcpy(by_cupti, launches, n * sizeof *launches);
    return STARLIN_SUCCESS;
}

static const starlin__activity_ops_t both = {.source = "both",
                                             .open = both_open,
                                             .close = both_close,
                                             .begin = both_begin,
                                             .end = both_end,
                                             .resolve = both_resolve};

/* --- the problem */

static bool problem_create(problem_t *problem)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_chunking_options_t chunks = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_matrix_layout_t x = {.cols = K, .dtype = STARLIN_BF16, .placement = STARLIN_SHARD_COLS},
                            w = {.rows = N, .cols = K, .dtype = STARLIN_BF16},
                            y = {.cols = N, .dtype = STARLIN_BF16};
    chunks.count = NCHUNKS;
    options.comm = "model:gbps=223,latency_us=10,ctas=8,ranks=2";
    options.compute = "cublas";
    CHECK_STATUS(starlin_context_create(&options, &problem->context), STARLIN_SUCCESS);
    if (problem->context == NULL)
        return false;
    CHECK_STATUS(starlin_chunking_plan(problem->context, M, NULL, 0, &chunks, &problem->rows),
                 STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(problem->context, problem->rows, &x, &problem->x), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(problem->context, NULL, &w, &problem->w), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(problem->context, problem->rows, &y, &problem->y), STARLIN_SUCCESS);
    return check_failures == 0;
}

static void problem_destroy(problem_t *problem)
{
    starlin_matrix_destroy(problem->x);
    starlin_matrix_destroy(problem->w);
    starlin_matrix_destroy(problem->y);
    starlin_chunking_destroy(problem->rows);
    CHECK_STATUS(starlin_context_destroy(problem->context), STARLIN_SUCCESS);
}

static void problem_run(problem_t *problem, int nsteps)
{
    for (int step = 0; step < nsteps; step++) {
        CHECK_STATUS(starlin_row_linear(problem->context, problem->x, problem->w, problem->y, NULL),
                     STARLIN_SUCCESS);
        CHECK_STATUS(starlin_context_wait(problem->context), STARLIN_SUCCESS);
    }
}

/* Every span is there, in the only possible order. `kernels`: a span is what its kernels took. */
static void check_spans(problem_t *problem, bool kernels)
{
    starlin__span_t spans[CAPACITY];
    size_t n = starlin__timeline_read(problem->context->timeline, spans, CAPACITY), ngemms = 0, nsums = 0;
    double link_us = 10 + (double)M / NCHUNKS * N * 2 / 223e3;
    CHECK_EQ_INT(n, 2 * NSTEPS * NCHUNKS);
    for (size_t i = 0; i < n; i++) {
        const starlin__span_t *one = &spans[i];
        CHECK(one->launch_us <= one->start_us && one->ready_us <= one->start_us &&
              one->start_us < one->end_us);
        CHECK_EQ_INT(one->rows, M / NCHUNKS);
        ngemms += one->kind == STARLIN__SPAN_GEMM;
        if (one->kind != STARLIN__SPAN_COLLECTIVE)
            continue;
        nsums++;
        CHECK_EQ_INT(one->lane, STARLIN__LANE_LINK);
        /* the paced kernel takes its time and perhaps a little more */
        CHECK(one->end_us - one->start_us >= 0.9 * link_us);
        for (size_t j = 0; j < n; j++)
            if (spans[j].kind == STARLIN__SPAN_GEMM && spans[j].sequence == one->sequence &&
                spans[j].chunk == one->chunk)
                CHECK(one->start_us >= spans[j].end_us - 5 && one->ready_us <= one->start_us);
        printf("collective %llu.%u: ready %.1f, launch %.1f, start 0, end %.1f us, %u CTAs\n",
               (unsigned long long)one->sequence, one->chunk, one->ready_us - one->start_us,
               one->launch_us - one->start_us, one->end_us - one->start_us, one->grid);
        if (kernels)
            CHECK_EQ_INT(one->grid, CTAS);
    }
    CHECK_EQ_INT(ngemms, NSTEPS * NCHUNKS);
    CHECK_EQ_INT(nsums, NSTEPS * NCHUNKS);
}

static void test_source(problem_t *problem, const char *source)
{
    starlin_report_t *report = NULL;
    CHECK_STATUS(starlin_report_enable(problem->context, true), STARLIN_SUCCESS);
    problem_run(problem, 1); /* the first launch with records is slow */
    CHECK_STATUS(starlin_report_reset(problem->context), STARLIN_SUCCESS);
    problem_run(problem, NSTEPS);
    CHECK_STATUS(starlin_report_create(problem->context, NULL, &report), STARLIN_SUCCESS);
    if (report != NULL) {
        starlin_report_summary_t summary = {0};
        CHECK_STATUS(starlin_report_summary(report, &summary), STARLIN_SUCCESS);
        CHECK_EQ_STR(summary.source, source);
        CHECK_EQ_INT(starlin_report_ncollectives(report), NSTEPS * NCHUNKS);
    }
    check_spans(problem, strcmp(source, "events") != 0);
    CHECK_STATUS(starlin_report_enable(problem->context, false), STARLIN_SUCCESS);
    size_t n = starlin__timeline_count(problem->context->timeline, NULL);
    problem_run(problem, 1);
    CHECK_EQ_INT(starlin__timeline_count(problem->context->timeline, NULL), n);
    starlin_report_destroy(report);
}

/* Off while work is in flight, and on again. */
static void test_switch(problem_t *problem)
{
    CHECK_STATUS(starlin_report_enable(problem->context, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_row_linear(problem->context, problem->x, problem->w, problem->y, NULL),
                 STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_enable(problem->context, false), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(problem->context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_enable(problem->context, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_reset(problem->context), STARLIN_SUCCESS);
    problem_run(problem, NSTEPS);
    CHECK_STATUS(starlin_report_enable(problem->context, false), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__timeline_count(problem->context->timeline, NULL), 2 * NSTEPS * NCHUNKS);
}

/* Both watched the launches of the last source test. */
static void compare_sources(void)
{
    double first_us = INFINITY, last_us = 0;
    CHECK(nboth >= 2 * NCHUNKS);
    for (size_t i = 0; i < nboth; i++) {
        first_us = fmin(first_us, by_cupti[i].span.start_us);
        last_us = fmax(last_us, by_cupti[i].span.end_us);
    }
    double step_us = (last_us - first_us) / (double)(nboth / (2 * NCHUNKS));
    for (size_t i = 0; i < nboth; i++) {
        const starlin__span_t *cupti = &by_cupti[i].span, *events = &by_events[i].span;
        double difference_us = (events->end_us - events->start_us) - (cupti->end_us - cupti->start_us);
        CHECK(by_cupti[i].found && by_events[i].found);
        if (cupti->kind == STARLIN__SPAN_GEMM)
            CHECK(fabs(difference_us) <= 0.02 * step_us);
        CHECK(fabs(events->end_us - cupti->end_us) <= 0.02 * step_us);
        printf("%s %u: CUPTI %.1f us, events %+.1f us longer, end %+.1f us\n",
               cupti->kind == STARLIN__SPAN_GEMM ? "gemm" : "collective", cupti->chunk,
               cupti->end_us - cupti->start_us, difference_us, events->end_us - cupti->end_us);
    }
}

int main(void)
{
    problem_t problem = {0};
    starlin__activity_t *activity = NULL;
    if (starlin__device_cuda == NULL || starlin__device_cuda->count() == 0) {
        printf("skipped: no CUDA device is visible to this build\n");
        return 77;
    }
    if (!problem_create(&problem))
        return 1;
    problem_run(&problem, 2);
    setenv("STARLIN_ACTIVITY", "events", 1);
    test_source(&problem, "events");
    test_switch(&problem);
    starlin__activity_close(problem.context->activity);
    problem.context->activity = NULL;
    cupti_ops = source_named("cupti");
    events_ops = source_named("events");
    CHECK_STATUS(starlin__activity_create(&both, problem.context->device, CAPACITY, &activity),
                 STARLIN_SUCCESS);
    if (cupti_ops == NULL || starlin__activity_enable(activity, true) != STARLIN_SUCCESS) {
        printf("without CUPTI: %s\n", cupti_ops == NULL ? "not built" : starlin_last_error());
        starlin__activity_close(activity);
    } else {
        problem.context->activity = activity;
        test_source(&problem, "both");
        compare_sources();
        test_switch(&problem);
    }
    problem_destroy(&problem);
    return CHECK_RESULT();
}
