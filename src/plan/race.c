/* SPDX-License-Identifier: BSD-3-Clause */
/* The race: which candidates run in which round, who drops out, when it is over and who has won. Pure, given
 * the times of the rounds, so that all ranks decide alike. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "plan/plan.h"

/* What a list must win over the one with the fewest chunks, and over shorter lists; noise comes on top. */
static const double least_gain = 0.01, single_noise = 0.03; /* of one round, which cannot tell its own */
/* A candidate whose fastest of so many rounds is this much slower than the best one's median is out. */
static const double out_of_reach = 1.04;
enum { ROUNDS_BEFORE_OUT = 2, ROUNDS_BEFORE_TIE = 5 };
static const double tie = 1.015; /* all that are left are as good: over */
/* A turn times steps for so long, and at most so many; longer steps are not warmed up. */
static const double turn_us = 20e3, cold_us = 40e3;

static void add_round(starlin__candidate_t *list, double step_us)
{
    starlin_plan_candidate_t *told = &list->told;
    double sorted[STARLIN__MOST_ROUNDS];

    list->rounds_us[told->nrounds++] = step_us;
    memcpy(sorted, list->rounds_us, told->nrounds * sizeof *sorted);
    starlin__numbers_sort(sorted, told->nrounds);
    told->measured_us = (sorted[(told->nrounds - 1) / 2] + sorted[told->nrounds / 2]) / 2;
    told->spread_us = told->measured_us - sorted[0];
}

static const starlin_plan_candidate_t *fastest(const starlin__planning_t *planning)
{
    const starlin_plan_candidate_t *best = &planning->lists[planning->reference].told;

    for (size_t i = 0; i < planning->told.ncandidates; i++) {
        const starlin_plan_candidate_t *told = &planning->lists[i].told;
        if (told->nrounds > 0 && told->measured_us < best->measured_us)
            best = told;
    }
    return best;
}

static double least_us(const starlin_plan_candidate_t *told)
{
    return told->measured_us - told->spread_us;
}

/* A median's error: the spread shrinks with the square root of the rounds, of which there are few. */
static double noise_us(const starlin_plan_candidate_t *told)
{
    if (told->nrounds == 1)
        return single_noise * told->measured_us;
    return told->spread_us / (told->nrounds > 4 ? 1.5 : 1.0);
}

void starlin__race_decide(starlin__planning_t *planning)
{
    const starlin_plan_candidate_t *one, *best = fastest(planning), *choice = best;
    double noise, margin, gain;

    for (size_t i = 0; i < planning->told.ncandidates; i++)
        if (planning->lists[i].told.nrounds > 0 &&
            planning->lists[i].told.nchunks < planning->lists[planning->reference].told.nchunks)
            planning->reference = i;
    one = &planning->lists[planning->reference].told;
    for (size_t i = 0; i < planning->told.ncandidates; i++) {
        const starlin_plan_candidate_t *told = &planning->lists[i].told;
        if (told->nrounds > 0 && told->nchunks < choice->nchunks &&
            told->measured_us <= best->measured_us * (1 + least_gain))
            choice = told;
        if (told == choice)
            planning->chosen = i;
    }
    noise = (noise_us(one) + noise_us(choice)) / 2 / one->measured_us;
    margin = noise > least_gain ? noise : least_gain;
    gain = 1 - choice->measured_us / one->measured_us;
    if (gain < margin || least_us(choice) > (1 - least_gain) * least_us(one)) {
        planning->chosen = planning->reference;
        snprintf(planning->reason, sizeof planning->reason,
                 "nothing was clearly faster than the shortest list: the best gained %.1f%%, the margin is "
                 "%.1f%%",
                 100 * (1 - best->measured_us / one->measured_us), 100 * margin);
    } else {
        snprintf(planning->reason, sizeof planning->reason,
                 "%.1f%% faster than the shortest list, the margin is %.1f%%%s", 100 * gain, 100 * margin,
                 choice == best ? "" : "; of the fastest, within 1%, the shortest");
    }
}

/* Runs one candidate, a short one once more: the first that a backend takes is the reference, and tells how
 * long a step is. */
static starlin_status_t open_race(starlin__planning_t *planning, starlin__round_fn_t run, void *arg,
                                  starlin__round_t *round)
{
    for (size_t i = 0; i < planning->told.ncandidates; i++) {
        *round = (starlin__round_t){.count = 1, .candidates = {i}, .nsteps = 1};
        STARLIN__FORWARD(run(arg, round));
        if (round->step_us[0] >= 0 && round->step_us[0] < cold_us) {
            round->nwarm = 1;
            STARLIN__FORWARD(run(arg, round));
        }
        planning->reference = i;
        planning->lists[i].told.measured_us = round->step_us[0];
        planning->lists[i].told.refused = round->step_us[0] < 0;
        if (!planning->lists[i].told.refused)
            return STARLIN_SUCCESS;
    }
    return starlin__error(STARLIN_ERR_INVALID, "a backend refuses all %zu lists", planning->told.ncandidates);
}

/* Those that are in, those not run yet before the fastest ones, as far as the time allows; then turned round
 * by the number of the round, so that what drifts meets all alike. */
static void select_turns(const starlin__planning_t *planning, size_t number, double left_us,
                         starlin__round_t *round)
{
    size_t order[STARLIN__MOST_CANDIDATES], count = 0;

    for (size_t i = 0; i < planning->told.ncandidates; i++) {
        const starlin__candidate_t *list = &planning->lists[i];
        size_t place = count;
        if (list->told.refused || list->is_out || list->told.nrounds == STARLIN__MOST_ROUNDS)
            continue;
        while (place > 0 && planning->lists[order[place - 1]].told.measured_us > list->told.measured_us)
            place--;
        memmove(&order[place + 1], &order[place], (count++ - place) * sizeof *order);
        order[place] = i;
    }
    for (size_t i = 0; i < count; i++) {
        const starlin_plan_candidate_t *told = &planning->lists[order[i]].told;
        double guess_us = planning->lists[planning->reference].told.measured_us;
        left_us -= (told->nrounds > 0 ? told->measured_us : guess_us) * (round->nwarm + round->nsteps);
        count = left_us < 0 ? i : count;
    }
    round->count = count;
    for (size_t i = 0; i < count; i++) {
        size_t turned = (i + number / 2) % count;
        round->candidates[i] = order[number % 2 ? count - 1 - turned : turned];
    }
}

/* Takes a round's times; true: nothing more is to be learnt from those that are in. */
static bool close_round(starlin__planning_t *planning, const starlin__round_t *round)
{
    const starlin_plan_candidate_t *best;
    size_t nin = 0, nties = 0;

    for (size_t i = 0; i < round->count; i++) {
        starlin__candidate_t *list = &planning->lists[round->candidates[i]];
        list->told.refused = round->step_us[i] < 0;
        if (!list->told.refused)
            add_round(list, round->step_us[i]);
    }
    best = fastest(planning);
    for (size_t i = 0; i < planning->told.ncandidates; i++) {
        starlin__candidate_t *list = &planning->lists[i];
        const starlin_plan_candidate_t *told = &list->told;
        list->is_out = list->is_out || (told->nrounds >= ROUNDS_BEFORE_OUT &&
                                        least_us(told) > out_of_reach * best->measured_us);
        nin += !told->refused && !list->is_out;
        nties += !list->is_out && told->nrounds >= ROUNDS_BEFORE_TIE &&
                 told->measured_us < tie * best->measured_us;
    }
    return nties == nin || (nin == 1 && best->nrounds >= ROUNDS_BEFORE_OUT);
}

starlin_status_t starlin__race(starlin__planning_t *planning, double limit_us, starlin__round_fn_t run,
                               starlin__propose_fn_t propose, void *arg)
{
    starlin__round_t round;
    double step_us, nsteps;
    bool is_over = false;

    STARLIN__FORWARD(open_race(planning, run, arg, &round));
    step_us = round.step_us[0];
    nsteps = turn_us / (step_us + 1) + 1;
    round.nsteps = nsteps < STARLIN__MOST_STEPS ? (unsigned)nsteps : STARLIN__MOST_STEPS;
    round.nwarm = step_us < cold_us;
    for (size_t number = 0; !is_over; number++) {
        select_turns(planning, number, limit_us - round.elapsed_us, &round);
        if (round.count == 0)
            break;
        STARLIN__FORWARD(run(arg, &round));
        is_over = close_round(planning, &round);
        if (number == 0) {
            size_t before = planning->told.ncandidates;
            STARLIN__FORWARD(propose(arg));
            is_over = is_over && planning->told.ncandidates == before;
        }
    }
    if (planning->lists[planning->reference].told.nrounds == 0)
        add_round(&planning->lists[planning->reference], step_us); /* all that is known of it */
    starlin__race_decide(planning);
    return STARLIN_SUCCESS;
}
