/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates run as the real operators, on operands of their own, those of one list at a time. Each rank does
 * the same in the same order, and goes on with the slowest rank's times or with the lowest failing rank's
 * error. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "plan/plan.h"

typedef struct figures {
    double values[STARLIN__MOST_LISTS];
    int32_t status;
    char text[220]; /* why it is not a success */
} figures_t;

starlin_status_t starlin__agree_most(starlin_context_t *context, starlin_status_t status, double *values,
                                     size_t count)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    figures_t mine = {.status = (int32_t)status}, *all;
    starlin_status_t agreed;

    assert(count <= STARLIN__MOST_LISTS);
    if (bootstrap->nranks == 1)
        return status;
    if (count > 0)
        memcpy(mine.values, values, count * sizeof *values);
    if (status != STARLIN_SUCCESS)
        snprintf(mine.text, sizeof mine.text, "%s", starlin_last_error());
    /* a rank without this memory cannot take part: its peers run into the time limit */
    all = starlin__alloc((size_t)bootstrap->nranks * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "figures of %d ranks", bootstrap->nranks);
    agreed = bootstrap->ops->allgather(bootstrap, &mine, sizeof mine, all, context->config.timeout_ms);
    for (int rank = 0; agreed == STARLIN_SUCCESS && rank < bootstrap->nranks; rank++) {
        if (all[rank].status != STARLIN_SUCCESS)
            agreed = starlin__error((starlin_status_t)all[rank].status, "rank %d: %s", rank, all[rank].text);
        for (size_t i = 0; i < count; i++)
            values[i] = all[rank].values[i] > values[i] ? all[rank].values[i] : values[i];
    }
    starlin__free(all);
    return agreed;
}

/* --- simulation */

static starlin_status_t fit(const starlin__job_t *job, const starlin__planning_t *planning,
                            starlin__prices_t *prices)
{
    starlin__sketch_t *sketches[STARLIN__MOST_CANDIDATES];
    double measured_us[STARLIN__MOST_CANDIDATES];
    starlin_status_t status = STARLIN_SUCCESS;
    size_t count = 0;

    *prices = starlin__prices_builtin(job->context);
    for (size_t i = 0; i < planning->told.ncandidates && status == STARLIN_SUCCESS; i++) {
        measured_us[count] = planning->lists[i].told.measured_us;
        if (planning->lists[i].told.nrounds > 0)
            status = starlin__sketch_create(job, &planning->lists[i], &sketches[count]);
        count += status == STARLIN_SUCCESS && planning->lists[i].told.nrounds > 0;
    }
    if (status == STARLIN_SUCCESS)
        starlin__prices_fit(sketches, measured_us, count, prices);
    while (count > 0)
        starlin__free(sketches[--count]);
    return status;
}

static starlin_status_t simulate(const starlin__job_t *job, const starlin__planning_t *planning, double *us)
{
    starlin__prices_t prices;
    starlin__sketch_t *sketch;

    STARLIN__FORWARD(fit(job, planning, &prices));
    for (size_t i = 0; i < planning->nlists; i++) {
        STARLIN__FORWARD(starlin__sketch_create(job, &planning->lists[i], &sketch));
        us[i] = starlin__simulate(sketch, &prices);
        starlin__free(sketch);
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__plan_simulate(const starlin__job_t *job, starlin__planning_t *planning)
{
    size_t best = 0, *count = &planning->told.ncandidates;
    double us[STARLIN__MOST_LISTS] = {0};

    /* of the slowest rank: ranks may have different k */
    STARLIN__FORWARD(starlin__agree_most(job->context, simulate(job, planning, us), us, planning->nlists));
    for (size_t i = 0; i < planning->nlists; i++) {
        planning->lists[i].told.refused = isinf(us[i]);
        planning->lists[i].told.simulated_us = us[i];
        best = us[i] < us[best] ? i : best;
    }
    if (best >= *count && *count < STARLIN__MOST_CANDIDATES) {
        starlin__candidate_t first = planning->lists[*count];
        planning->lists[(*count)++] = planning->lists[best];
        planning->lists[best] = first;
    }
    return STARLIN_SUCCESS;
}

/* --- measurement */

typedef struct rehearsal {
    const starlin__job_t *job;
    starlin__planning_t *planning;
    double begin_us;
} rehearsal_t;

static starlin_status_t step(starlin_context_t *context, const starlin__operands_t *operands, double *us)
{
    double begin_us = starlin__now_us();
    starlin_status_t status = STARLIN_SUCCESS, waited;

    for (size_t i = 0; i < operands->ncalls && status == STARLIN_SUCCESS; i++)
        status = starlin__graph_submit(&operands->calls[i]);
    waited = starlin_context_wait(context);
    *us = starlin__now_us() - begin_us;
    return waited != STARLIN_SUCCESS ? waited : status;
}

/* One candidate's turn. *us: the median of its steps, negative where a backend refuses the list, which the
 * operators' own agreement makes every rank's. */
static starlin_status_t turn(const rehearsal_t *rehearsal, size_t i, const starlin__round_t *round,
                             double *us)
{
    const starlin__candidate_t *list = &rehearsal->planning->lists[i];
    starlin_context_t *context = rehearsal->job->context;
    starlin__operands_t operands;
    double steps_us[STARLIN__MOST_STEPS];
    starlin_status_t status =
        starlin__operands_create(rehearsal->job, list->rows, list->told.nchunks, true, &operands);

    status = starlin__agree_most(context, status, NULL, 0); /* and all begin together */
    for (unsigned s = 0; s < round->nwarm + round->nsteps && status == STARLIN_SUCCESS; s++)
        status = step(context, &operands, &steps_us[s < round->nwarm ? 0 : s - round->nwarm]);
    starlin__operands_destroy(&operands);
    if (status == STARLIN_ERR_INVALID && !context->failed) {
        *us = -1;
        return STARLIN_SUCCESS;
    }
    if (status == STARLIN_SUCCESS) {
        starlin__numbers_sort(steps_us, round->nsteps);
        *us = steps_us[round->nsteps / 2];
    }
    return status;
}

static starlin_status_t run_round(void *arg, starlin__round_t *round)
{
    const rehearsal_t *rehearsal = arg;
    double figures[STARLIN__MOST_CANDIDATES + 1] = {0};
    starlin_status_t status = STARLIN_SUCCESS;

    for (size_t i = 0; i < round->count && status == STARLIN_SUCCESS; i++)
        status = turn(rehearsal, round->candidates[i], round, &figures[i]);
    figures[round->count] = starlin__now_us() - rehearsal->begin_us;
    STARLIN__FORWARD(starlin__agree_most(rehearsal->job->context, status, figures, round->count + 1));
    memcpy(round->step_us, figures, round->count * sizeof *figures);
    round->elapsed_us = figures[round->count];
    return STARLIN_SUCCESS;
}

static starlin_status_t propose(void *arg)
{
    const rehearsal_t *rehearsal = arg;
    return starlin__plan_simulate(rehearsal->job, rehearsal->planning);
}

/* A step of one period tells how many of them there is time for: two at least, to see what layers do to each
 * other. */
static starlin_status_t probe(rehearsal_t *rehearsal, starlin__job_t *job)
{
    enum { STEPS_WANTED = 8 };
    starlin__round_t round = {.count = 1, .candidates = {0}, .nsteps = 1};
    size_t all = job->noperations, most;

    if (all <= 2 * job->period)
        return STARLIN_SUCCESS;
    job->noperations = job->period;
    STARLIN__FORWARD(run_round(rehearsal, &round));
    for (most = 2 * job->period; most + job->period <= all; most += job->period)
        if (round.step_us[0] / (double)job->period * (double)(most + job->period) * STEPS_WANTED >
            job->limit_us)
            break;
    job->noperations = most;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__rehearse(starlin__job_t *job, double begin_us, starlin__planning_t *planning)
{
    starlin_context_t *context = job->context;
    rehearsal_t rehearsal = {job, planning, begin_us};
    bool records = starlin__timeline_enabled(context->timeline);
    starlin_status_t status = starlin_context_wait(context);

    starlin__context_collect(context);
    starlin__timeline_enable(context->timeline, false);
    if (status == STARLIN_SUCCESS)
        status = probe(&rehearsal, job);
    if (status == STARLIN_SUCCESS)
        status = starlin__race(planning, job->limit_us, run_round, propose, &rehearsal);
    starlin__context_collect(context);
    starlin__timeline_enable(context->timeline, records);
    return status;
}
