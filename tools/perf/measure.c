/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loop. StarPU's idle workers spin, so they are paused while the baselines run on their cores.
 */
#define _POSIX_C_SOURCE 200809L
#include "measure.h"

#include <stdlib.h>
#include <time.h>

#include "progress.h"
#include "ranks.h"
#include "plan/trial.h"

#define SETTLE_NS 300000 /* resumed workers are awake after this */

typedef struct thing {
    unsigned bit; /* of --baselines */
    perf_baseline_kind_t kind;
    unsigned nchunks;
} thing_t;

static const thing_t things[] = {
    {PERF_SERIAL, PERF_BASELINE_SERIAL, 1}, {PERF_LOOP, PERF_BASELINE_LOOP, 1},
    {PERF_LOOP, PERF_BASELINE_LOOP, 2},     {PERF_LOOP, PERF_BASELINE_LOOP, 4},
    {PERF_LOOP, PERF_BASELINE_LOOP, 8},     {PERF_LOOP, PERF_BASELINE_LOOP, 16},
    {PERF_GEMM, PERF_BASELINE_GEMM, 1},     {PERF_COMM, PERF_BASELINE_COMM, 1},
};
enum { NTHINGS = sizeof(things) / sizeof(things[0]) };

static double *samples_of(perf_measure_t *measure, size_t thing)
{
    return measure->samples + thing * measure->options->iterations;
}

static bool measured(const perf_measure_t *measure, size_t i)
{
    return measure->baseline != NULL && (measure->options->baselines & things[i].bit) != 0;
}

/* Everything that is measured, in one numbering: the graphs, then the baselines. */
static bool takes_part(const perf_measure_t *measure, size_t item)
{
    return item < measure->ngraphs || measured(measure, item - measure->ngraphs);
}

static starlin_status_t run_item(perf_measure_t *measure, size_t item, double *time_us)
{
    bool is_graph = item < measure->ngraphs;
    const thing_t *thing = is_graph ? NULL : &things[item - measure->ngraphs];
    starlin_status_t status;

    if (!is_graph && measure->context->device == NULL)
        starlin__context_pause(measure->context);
    perf_ranks_barrier();
    double start_us = starlin__now_us();
    status = is_graph ? perf_graph_run(&measure->graphs[item])
                      : measure->baseline->ops->run(measure->baseline, thing->kind, thing->nchunks);
    *time_us = (starlin__now_us() - start_us) / (is_graph ? measure->options->layers : 1);
    if (!is_graph && measure->context->device == NULL)
        starlin__context_resume(measure->context);
    /* the same rest before each: resumed workers wake up, and no item starts on a hotter device than another
     */
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    return status;
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

static void show_progress(const perf_measure_t *measure, unsigned round)
{
    const perf_problem_t *problem = measure->graphs[0].problem;
    perf_progress_set("%s: M %lld, N %lld, K %lld, %s: round %u of %u", measure->context->info.policy,
                      (long long)problem->m, (long long)problem->n, (long long)problem->k,
                      starlin_dtype_name(problem->dtype), round + 1,
                      measure->options->warmups + measure->options->iterations);
}

/* More steps than the trial of a plan can take if all are regular, and they are. */
enum { MOST_TRIAL_STEPS = 64 };

/* As part of the warm-ups: the library still verifies automatic plans in their first steps, which is not what
 * is to be timed. All ranks see the same end of it. */
static starlin_status_t end_trials(perf_measure_t *measure)
{
    for (size_t i = 0; i < measure->ngraphs; i++) {
        const starlin__trial_t *trial = starlin__chunking_trial(measure->graphs[i].chunking);
        double time_us;
        for (int step = 0; step < MOST_TRIAL_STEPS && trial != NULL && !starlin__trial_is_over(trial); step++)
            STARLIN__FORWARD(run_item(measure, i, &time_us));
    }
    return STARLIN_SUCCESS;
}

starlin_status_t perf_measure_run(perf_measure_t *measure)
{
    unsigned warmups = measure->options->warmups, iterations = measure->options->iterations;
    size_t nitems = measure->ngraphs + NTHINGS, nsamples = nitems * iterations;
    size_t order[PERF_MAX_CHUNKINGS + NTHINGS];
    uint64_t state = 1;

    for (size_t i = 0; i < nitems; i++)
        order[i] = i;
    measure->samples = calloc(nsamples, sizeof(double));
    if (measure->samples == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "%zu samples", nsamples);
    if (warmups > 0)
        STARLIN__FORWARD(end_trials(measure));
    for (unsigned i = 0; i < warmups + iterations; i++) {
        show_progress(measure, i);
        shuffle(order, nitems, &state);
        for (size_t j = 0; j < nitems; j++) {
            size_t item = order[j];
            double time_us;
            if (!takes_part(measure, item))
                continue;
            STARLIN__FORWARD(run_item(measure, item, &time_us));
            if (i >= warmups)
                samples_of(measure, item)[i - warmups] = time_us;
        }
    }
    perf_ranks_max(measure->samples, nsamples);
    return STARLIN_SUCCESS;
}

void perf_measure_row(perf_measure_t *measure, size_t i, perf_row_t *row)
{
    unsigned iterations = measure->options->iterations;
    row->time_us = perf_statistics(samples_of(measure, i), iterations);
    row->serial_us = row->loop_us = row->gemm_us = row->comm_us = PERF_NOT_MEASURED;
    row->loop_chunks = 0;
    for (unsigned j = 0; j < PERF_NLOOPS; j++)
        row->loops_us[j] = PERF_NOT_MEASURED;
    unsigned nloops = 0;
    for (size_t thing = 0; thing < NTHINGS; thing++) {
        if (!measured(measure, thing))
            continue;
        double median = perf_statistics(samples_of(measure, measure->ngraphs + thing), iterations).median;
        switch (things[thing].kind) {
        case PERF_BASELINE_SERIAL:
            row->serial_us = median;
            break;
        case PERF_BASELINE_LOOP:
            row->loops_us[nloops++] = median; /* things[] has them by size */
            if (row->loop_chunks == 0 || median < row->loop_us) {
                row->loop_us = median;
                row->loop_chunks = things[thing].nchunks;
            }
            break;
        case PERF_BASELINE_GEMM:
            row->gemm_us = median;
            break;
        case PERF_BASELINE_COMM:
            row->comm_us = median;
            break;
        }
    }
}

void perf_measure_release(perf_measure_t *measure)
{
    free(measure->samples);
    measure->samples = NULL;
}
