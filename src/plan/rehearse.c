/* SPDX-License-Identifier: BSD-3-Clause */
/* The rehearsal. Ranks run the same lists in the same order and agree on the slowest rank's times, so they
 * choose the same. Rounds go over all lists, so that a drifting clock meets every list alike. */
#define _POSIX_C_SOURCE 200809L
#include "plan/rehearse.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "graph/matrix.h"
#include "base/numbers.h"
#include "plan/rehearse_lists.h"

/* For all runs together: of the time that is left for planning, no more and no less than this. */
static const double most_us = 140e3, least_us = 70e3;
/* Relative to the fastest list, and some microseconds more, since a single run may be disturbed: slower ones
 * are not run again, the more rounds the closer. */
static const struct {
    double factor, slack_us;
} reach[] = {{1.25, 300.0}, {1.10, 100.0}, {1.10, 0.0}, {1.04, 0.0}};
enum {
    MOST_TRIED = 9,
    FEWEST_ROUNDS = 2,
    MOST_ROUNDS = 40,
    MOST_LAYERS = 3,
    NREACHES = sizeof reach / sizeof reach[0]
};
/* Lists this close to the fastest one are as good; what luck may have made of one: on an H200 lists took 3 to
 * 11% longer in some runs than in others of the same program. */
static const double as_fast = 1.01, luck = 1.03;
/* Before a run that is waited for: a step of an application does not find the device and the workers as they
 * are right after another one. */
static const struct timespec rest = {.tv_nsec = 200000};

typedef struct candidate {
    starlin__plan_t plan;
    starlin_matrix_t *x, *w, *y;
    size_t nruns;
    double runs_us[MOST_ROUNDS];
    double time_us; /* their median */
    bool is_out;    /* too slow to be run again */
} candidate_t;

typedef struct limits {
    unsigned nlayers; /* of each run */
    double budget_us;
    size_t nlists; /* fewer than two: no rehearsal */
} limits_t;

static starlin_status_t candidate_open(starlin_context_t *context, const starlin__scratch_t *scratch,
                                       candidate_t *candidate)
{
    const starlin__gemm_t *gemm = &scratch->gemm;
    starlin__space_t space = context->compute->ops->space;
    starlin_matrix_layout_t input = {.cols = gemm->k, .dtype = gemm->dtype};
    starlin_matrix_layout_t weight = {.rows = gemm->n, .cols = gemm->k, .dtype = gemm->dtype};
    starlin_matrix_layout_t output = {.cols = gemm->n, .dtype = gemm->dtype};
    starlin_chunking_t *rows = NULL;
    starlin_status_t status;

    STARLIN__FORWARD(starlin__chunking_create(candidate->plan.rows, candidate->plan.nchunks, NULL, &rows));
    rows->ctas = candidate->plan.ctas;
    rows->piece_rows = candidate->plan.piece_rows;
    status = starlin__matrix_wrap(context, rows, (void *)(uintptr_t)gemm->x, &input, space, &candidate->x);
    if (status == STARLIN_SUCCESS)
        status =
            starlin__matrix_wrap(context, NULL, (void *)(uintptr_t)gemm->w, &weight, space, &candidate->w);
    if (status == STARLIN_SUCCESS)
        status = starlin__matrix_wrap(context, rows, gemm->y, &output, space, &candidate->y);
    starlin_chunking_destroy(rows);
    return status;
}

static void candidate_close(candidate_t *candidate)
{
    starlin_matrix_destroy(candidate->x);
    starlin_matrix_destroy(candidate->w);
    starlin_matrix_destroy(candidate->y);
}

static starlin_status_t candidate_run(starlin_context_t *context, const starlin__scratch_t *scratch,
                                      unsigned nlayers, candidate_t *candidate, double *time_us)
{
    starlin_row_linear_options_t options = STARLIN_ROW_LINEAR_OPTIONS_INIT;
    double start_us;

    if (nlayers == 1)
        nanosleep(&rest, NULL);
    start_us = starlin__now_us();
    options.reduction =
        scratch->gemm.out_dtype != scratch->gemm.dtype ? STARLIN_REDUCTION_F32 : STARLIN_REDUCTION_NATIVE;
    for (unsigned i = 0; i < nlayers; i++)
        STARLIN__FORWARD(starlin_row_linear(context, candidate->x, candidate->w, candidate->y, &options));
    STARLIN__FORWARD(starlin_context_wait(context));
    *time_us = (starlin__now_us() - start_us) / nlayers;
    return STARLIN_SUCCESS;
}

/* Runs the lists that are still in the race; every other round backwards: a neighbour's heat is then no
 * list's lasting disadvantage. */
static starlin_status_t run_round(starlin_context_t *context, const starlin__scratch_t *scratch,
                                  unsigned nlayers, candidate_t *candidates, size_t count, size_t round)
{
    for (size_t i = 0; i < count; i++) {
        candidate_t *candidate = &candidates[round % 2 ? count - 1 - i : i];
        double *time_us = &candidate->runs_us[candidate->nruns];
        if (candidate->is_out)
            continue;
        STARLIN__FORWARD(candidate_run(context, scratch, nlayers, candidate, time_us));
        candidate->nruns++;
    }
    return STARLIN_SUCCESS;
}

/* The slowest rank's times count, so that all ranks see the same race. In one exchange: *spent_us too. */
static starlin_status_t agree_times(starlin_context_t *context, candidate_t *candidates, size_t count,
                                    starlin_status_t status, double *spent_us)
{
    double figures[MOST_TRIED + 1] = {0.0};

    for (size_t i = 0; status == STARLIN_SUCCESS && i < count; i++)
        figures[i] = candidates[i].is_out ? 0.0 : candidates[i].runs_us[candidates[i].nruns - 1];
    figures[count] = *spent_us;
    STARLIN__FORWARD(starlin__agree_max(context, status, figures, count + 1));
    *spent_us = figures[count];
    for (size_t i = 0; i < count; i++) {
        candidate_t *candidate = &candidates[i];
        double sorted_us[MOST_ROUNDS];
        if (candidate->is_out)
            continue;
        candidate->runs_us[candidate->nruns - 1] = figures[i];
        memcpy(sorted_us, candidate->runs_us, candidate->nruns * sizeof(double));
        starlin__numbers_sort(sorted_us, candidate->nruns);
        candidate->time_us = sorted_us[candidate->nruns / 2];
    }
    return STARLIN_SUCCESS;
}

/* Time is for those that can win. */
static void drop_slow(candidate_t *candidates, size_t count, size_t round)
{
    size_t step = round < NREACHES ? round : NREACHES - 1;
    double best_us = candidates[0].time_us;

    for (size_t i = 1; i < count; i++)
        best_us = candidates[i].time_us < best_us ? candidates[i].time_us : best_us;
    for (size_t i = 0; i < count; i++)
        candidates[i].is_out = candidates[i].is_out ||
                               candidates[i].time_us > reach[step].factor * best_us + reach[step].slack_us;
}

/* A warm-up in which algorithms are chosen, then rounds until the budget is spent: the more, the shorter they
 * are; at least one. */
static starlin_status_t run_rounds(starlin_context_t *context, const starlin__scratch_t *scratch,
                                   const limits_t *limits, candidate_t *candidates, size_t count)
{
    double start_us = starlin__now_us(), spent_us = 0.0, before_us = 0.0, round_us = 0.0;
    starlin_status_t status = run_round(context, scratch, 1, candidates, count, 0);

    for (size_t i = 0; i < count; i++)
        candidates[i].nruns = 0;
    for (size_t round = 0; round < MOST_ROUNDS && spent_us + round_us < limits->budget_us; round++) {
        if (status == STARLIN_SUCCESS)
            status = run_round(context, scratch, limits->nlayers, candidates, count, round);
        spent_us = starlin__now_us() - start_us;
        STARLIN__FORWARD(agree_times(context, candidates, count, status, &spent_us));
        drop_slow(candidates, count, round);
        round_us = spent_us - before_us;
        before_us = spent_us;
    }
    return STARLIN_SUCCESS;
}

/* Leaves each list's median in time_us. */
static starlin_status_t run_all(starlin_context_t *context, const starlin__scratch_t *scratch,
                                const limits_t *limits, candidate_t *candidates, size_t count)
{
    starlin_status_t status = STARLIN_SUCCESS;

    for (size_t i = 0; i < count && status == STARLIN_SUCCESS; i++)
        status = candidate_open(context, scratch, &candidates[i]);
    STARLIN__FORWARD(starlin__agree_max(context, status, NULL, 0));
    return run_rounds(context, scratch, limits, candidates, count);
}

/* The lists, and communicators that can run them. */
static starlin_status_t make_candidates(starlin_context_t *context, const starlin__planning_t *planning,
                                        size_t limit, candidate_t *candidates, size_t *count_p)
{
    starlin__plan_t plans[MOST_TRIED];
    size_t count = starlin__rehearse_lists(&planning->costs, context->device != NULL, &planning->plan,
                                           &planning->second, limit, plans);

    for (size_t i = 0; i < count; i++) {
        candidates[i].plan = plans[i];
        STARLIN__FORWARD(starlin__comm_prepare_ctas(context->comm, plans[i].ctas));
    }
    *count_p = count;
    return STARLIN_SUCCESS;
}

/* The fastest chunked list; of those that are about as fast the one that was listed first. Lists whose
 * collectives start by chance may have been lucky. NULL: none was tried. */
static const candidate_t *fastest(const candidate_t *candidates, size_t count, const starlin__costs_t *costs)
{
    double times_us[MOST_TRIED] = {0.0}, best_us = 0.0;

    for (size_t i = 1; i < count; i++) {
        const starlin__plan_t *plan = &candidates[i].plan;
        const starlin__plan_input_t *input = starlin__costs_input(costs, plan->ctas, plan->piece_rows);
        bool is_chancy = starlin__plan_is_chancy(input, plan->rows, plan->nchunks);
        times_us[i] = candidates[i].time_us * (is_chancy ? luck : 1.0);
        best_us = i == 1 || times_us[i] < best_us ? times_us[i] : best_us;
    }
    for (size_t i = 1; i < count; i++) {
        if (times_us[i] <= as_fast * best_us)
            return &candidates[i];
    }
    return NULL;
}

static double shortest_us(const candidate_t *candidates, size_t count)
{
    double us = candidates[0].time_us;

    for (size_t i = 1; i < count; i++)
        us = candidates[i].time_us < us ? candidates[i].time_us : us;
    return us;
}

static void choose(const candidate_t *candidates, size_t count, starlin__planning_t *planning)
{
    const candidate_t *one = &candidates[0], *best = fastest(candidates, count, &planning->costs);
    starlin__plan_t *plan = &planning->plan;
    double min_gain = planning->costs.inputs[0].min_gain;

    if (best == NULL || best->time_us >= one->time_us)
        best = one;
    plan->serial_us = one->time_us;
    if (best != one && best->time_us > one->time_us * (1.0 - min_gain)) {
        snprintf(plan->reason, sizeof plan->reason,
                 "%zu chunks took %.0f us when tried, one chunk %.0f us: gain below %.1f%%",
                 best->plan.nchunks, best->time_us, one->time_us, 100.0 * min_gain);
        best = one;
    } else if (best == one) {
        snprintf(plan->reason, sizeof plan->reason,
                 one->time_us <= shortest_us(candidates, count)
                     ? "one chunk was the fastest of %zu lists that were tried (%.0f us)"
                     : "of %zu lists that were tried only such as depend on chance were faster than one "
                       "chunk (%.0f us)",
                 count, one->time_us);
    } else {
        plan->reason[0] = '\0';
    }
    plan->nchunks = best->plan.nchunks;
    memcpy(plan->rows, best->plan.rows, best->plan.nchunks * sizeof plan->rows[0]);
    plan->ctas = best->plan.ctas;
    plan->piece_rows = best->plan.piece_rows;
    plan->predicted_us = planning->measured_us = best->time_us;
    planning->simulated_us = best->plan.predicted_us;
}

static void record_lists(const candidate_t *candidates, size_t count, starlin__planning_t *planning)
{
    planning->nlists = count;
    for (size_t i = 0; i < count; i++) {
        const starlin__plan_t *plan = &candidates[i].plan;
        starlin__rehearsed_t *list = &planning->lists[i];
        char rows[160];
        list->nchunks = plan->nchunks;
        list->ctas = plan->ctas;
        list->piece_rows = plan->piece_rows;
        memcpy(list->rows, plan->rows, plan->nchunks * sizeof plan->rows[0]);
        list->simulated_us = plan->predicted_us;
        list->measured_us = candidates[i].time_us;
        starlin__rows_text(plan->rows, plan->nchunks, rows, sizeof rows);
        starlin__log("rehearsed %s, %u CTAs: %.1f us (%.1f us simulated)", rows, plan->ctas,
                     candidates[i].time_us, plan->predicted_us);
    }
}

/* How many lists can be tried; if none, says why. */
static limits_t affordable(const starlin_context_t *context, double left_us, starlin__planning_t *planning)
{
    const starlin__plan_input_t *input = &planning->costs.inputs[0];
    const starlin__plan_t *plan = &planning->plan;
    unsigned nlayers = starlin__plan_nlayers(input);
    limits_t limits = {.nlayers = nlayers > MOST_LAYERS ? MOST_LAYERS : nlayers,
                       .budget_us = left_us > most_us    ? most_us
                                    : left_us < least_us ? least_us
                                                         : left_us};
    double hideable_us = plan->gemm_us < plan->comm_us ? plan->gemm_us : plan->comm_us;
    double run_us = plan->predicted_us * limits.nlayers * FEWEST_ROUNDS, count = limits.budget_us / run_us;

    if (context->comm->ops == &starlin__comm_self_ops)
        planning->unrehearsed = "there is one rank";
    else if (input->comm_uses_core)
        planning->unrehearsed = "communication shares the gemm's cores";
    else if (hideable_us < input->min_gain * plan->serial_us)
        planning->unrehearsed = "too little could be hidden";
    else if (input->m < 2 * input->row_quantum)
        planning->unrehearsed = "there are too few rows";
    else if (count < 2.0 && 4.0 * plan->predicted_us * limits.nlayers <= most_us)
        limits.nlists = 2; /* with fewer rounds */
    else if (count < 2.0)
        planning->unrehearsed = "a run takes too long to be repeated while planning";
    else
        limits.nlists = count < MOST_TRIED ? (size_t)count : MOST_TRIED;
    return limits;
}

starlin_status_t starlin__rehearse(starlin_context_t *context, const starlin__scratch_t *scratch,
                                   double left_us, starlin__planning_t *planning)
{
    limits_t limits = affordable(context, left_us, planning);
    candidate_t *candidates;
    size_t count = 0;
    starlin_status_t status = STARLIN_SUCCESS;

    if (limits.nlists < 2)
        return STARLIN_SUCCESS;
    candidates = starlin__alloc(limits.nlists * sizeof *candidates);
    if (candidates == NULL)
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "rehearsal of %zu chunk lists", limits.nlists);
    status = starlin__agree_max(context, status, NULL, 0);
    if (status == STARLIN_SUCCESS)
        status = make_candidates(context, planning, limits.nlists, candidates, &count);
    if (status == STARLIN_SUCCESS)
        status = run_all(context, scratch, &limits, candidates, count);
    if (status == STARLIN_SUCCESS) {
        record_lists(candidates, count, planning);
        choose(candidates, count, planning);
    }
    for (size_t i = 0; i < count; i++)
        candidate_close(&candidates[i]);
    starlin__free(candidates);
    return status;
}
