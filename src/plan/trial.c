/* SPDX-License-Identifier: BSD-3-Clause */
/* The trial. It watches regular steps (each of the same number of operators) until every rank has enough of
 * them; it looks at operator 8, 16, 32, ..., since nobody knows beforehand how many make a step. If the list
 * is no faster than one chunk was expected to be, the next steps are run with the list and in one piece in
 * turn. */
#include "plan/trial.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"

/* Steps at the beginning, and in each mode, that are slower for other reasons; steps that are timed then. */
enum { WARMUPS = 2, MEASURED = 5 };
enum { FIRST_LOOK = 8, LAST_LOOK = 2048, NPAIRS = WARMUPS + MEASURED };
/* Relative: less is noise. */
static const double min_gain = 0.01;

typedef enum state { WATCHING, COMPARING, KEPT, REPLACED } state_t;

/* What the figures are. */
enum { NOT_READY, NOT_JOINED, PER_STEP, MINUS_PER_STEP, OFFSET, MINUS_OFFSET, TIME };
enum { PLAN_TIME = PER_STEP, WHOLE_TIME };

typedef struct times {
    size_t count; /* all of them; the newest are kept */
    double time_us[MEASURED];
} times_t;

struct starlin__trial {
    atomic_uint nreferences;
    atomic_int
        state; /* written by the context's thread; the text is complete before it says KEPT or REPLACED */
    size_t nchunks;
    double serial_us;
    uint64_t noperators, due;
    bool joins;          /* every operator so far could be computed in one piece */
    uint64_t per_step;   /* operators; while watching: of the steps in a row */
    uint64_t nsteps;     /* in a row */
    uint64_t next_first; /* where the row goes on */
    uint64_t start;      /* comparing: the first operator of the first step */
    times_t plan, whole;
    char text[200];
};

starlin__trial_t *starlin__trial_create(size_t nchunks, double serial_us, const char *why_not)
{
    starlin__trial_t *trial = starlin__alloc(sizeof *trial);

    if (trial == NULL)
        return NULL;
    atomic_init(&trial->nreferences, 1);
    atomic_init(&trial->state, why_not != NULL ? KEPT : WATCHING);
    trial->nchunks = nchunks;
    trial->serial_us = serial_us;
    trial->due = FIRST_LOOK;
    trial->joins = true;
    if (why_not != NULL)
        snprintf(trial->text, sizeof trial->text, "not tried in the first steps: %s", why_not);
    return trial;
}

starlin__trial_t *starlin__trial_retain(starlin__trial_t *trial)
{
    if (trial != NULL)
        atomic_fetch_add(&trial->nreferences, 1);
    return trial;
}

void starlin__trial_release(starlin__trial_t *trial)
{
    if (trial != NULL && atomic_fetch_sub(&trial->nreferences, 1) == 1)
        starlin__free(trial);
}

static state_t state_of(const starlin__trial_t *trial)
{
    return (state_t)atomic_load_explicit(&trial->state, memory_order_acquire);
}

/* After the text. */
static void settle(starlin__trial_t *trial, state_t state)
{
    atomic_store_explicit(&trial->state, (int)state, memory_order_release);
    starlin__log("%s", trial->text);
}

bool starlin__trial_is_over(const starlin__trial_t *trial)
{
    return state_of(trial) == KEPT || state_of(trial) == REPLACED;
}

const char *starlin__trial_text(const starlin__trial_t *trial)
{
    return starlin__trial_is_over(trial) ? trial->text : NULL;
}

const char *starlin__trial_replaced(const starlin__trial_t *trial)
{
    return state_of(trial) == REPLACED ? trial->text : NULL;
}

uint64_t starlin__trial_noperators(const starlin__trial_t *trial)
{
    return trial->noperators;
}

/* --- times */

static void times_add(times_t *times, double time_us)
{
    if (time_us > 0.0)
        times->time_us[times->count++ % MEASURED] = time_us;
}

static double times_median(const times_t *times)
{
    double sorted_us[MEASURED];

    memcpy(sorted_us, times->time_us, sizeof sorted_us);
    starlin__numbers_sort(sorted_us, MEASURED);
    return sorted_us[MEASURED / 2];
}

/* --- steps */

static void watch(starlin__trial_t *trial, uint64_t first, uint64_t noperators, double time_us)
{
    if (noperators != trial->per_step || first != trial->next_first) {
        trial->per_step = noperators;
        trial->nsteps = 0;
        trial->plan.count = 0;
    }
    trial->next_first = first + noperators;
    if (++trial->nsteps > WARMUPS)
        times_add(&trial->plan, time_us);
}

/* Pairs of a step in one piece and one with the list, the other way round in every other pair: a drift meets
 * both alike. */
static bool is_whole_step(uint64_t step)
{
    return (step % 2 == 0) == (step / 2 % 2 == 0);
}

static void compare(starlin__trial_t *trial, uint64_t first, uint64_t noperators, double time_us)
{
    uint64_t step = (first - trial->start) / trial->per_step;
    bool is_regular = noperators == trial->per_step && (first - trial->start) % trial->per_step == 0;

    if (first < trial->start || !is_regular || step < (uint64_t)(2 * WARMUPS))
        return;
    times_add(is_whole_step(step) ? &trial->whole : &trial->plan, time_us);
}

void starlin__trial_step(starlin__trial_t *trial, uint64_t first, uint64_t noperators, double time_us)
{
    if (noperators == 0)
        return;
    if (state_of(trial) == WATCHING)
        watch(trial, first, noperators, time_us);
    else if (state_of(trial) == COMPARING)
        compare(trial, first, noperators, time_us);
}

void starlin__trial_count(starlin__trial_t *trial, bool joins)
{
    if (starlin__trial_is_over(trial))
        return;
    trial->noperators++;
    trial->joins = trial->joins && joins;
}

bool starlin__trial_is_whole(const starlin__trial_t *trial)
{
    if (state_of(trial) == COMPARING && trial->noperators >= trial->start)
        return is_whole_step((trial->noperators - trial->start) / trial->per_step);
    return state_of(trial) == REPLACED;
}

/* --- decisions */

bool starlin__trial_is_due(const starlin__trial_t *trial)
{
    return !starlin__trial_is_over(trial) && trial->noperators == trial->due;
}

void starlin__trial_figures(const starlin__trial_t *trial, double figures[STARLIN__TRIAL_FIGURES])
{
    bool is_watching = state_of(trial) == WATCHING;
    /* a step that has begun must not have more operators than the others already */
    bool is_regular = !is_watching || trial->noperators - trial->next_first < trial->per_step;
    bool is_ready = is_regular && trial->plan.count >= MEASURED;

    memset(figures, 0, STARLIN__TRIAL_FIGURES * sizeof *figures);
    if (!is_watching)
        is_ready = is_ready && trial->plan.count == MEASURED && trial->whole.count == MEASURED;
    figures[NOT_READY] = is_ready ? 0.0 : 1.0;
    figures[NOT_JOINED] = trial->joins ? 0.0 : 1.0;
    if (is_ready && is_watching) {
        double offset = (double)(trial->next_first % trial->per_step);
        figures[PER_STEP] = (double)trial->per_step;
        figures[MINUS_PER_STEP] = -(double)trial->per_step;
        figures[OFFSET] = offset;
        figures[MINUS_OFFSET] = -offset;
        figures[TIME] = times_median(&trial->plan);
    } else if (is_ready) {
        figures[PLAN_TIME] = times_median(&trial->plan);
        figures[WHOLE_TIME] = times_median(&trial->whole);
    }
}

/* From the next step on, whose first operator has a number that leaves `offset`. */
static void start_comparing(starlin__trial_t *trial, uint64_t per_step, uint64_t offset)
{
    uint64_t missing = (offset + per_step - trial->noperators % per_step) % per_step;

    trial->per_step = per_step;
    trial->start = trial->noperators + missing;
    trial->due = trial->start + 2 * NPAIRS * per_step;
    trial->plan.count = trial->whole.count = 0;
    atomic_store_explicit(&trial->state, COMPARING, memory_order_release);
}

static void decide_watching(starlin__trial_t *trial, const double *figures)
{
    bool is_alike = figures[NOT_READY] <= 0.0 && figures[PER_STEP] + figures[MINUS_PER_STEP] <= 0.0 &&
                    figures[OFFSET] + figures[MINUS_OFFSET] <= 0.0;
    double plan_us = is_alike ? figures[TIME] / figures[PER_STEP] : 0.0;

    if (!is_alike && trial->due < LAST_LOOK) {
        trial->due *= 2;
    } else if (!is_alike) {
        snprintf(trial->text, sizeof trial->text,
                 "not tried in the first steps: no %d steps of the same operators in a row",
                 WARMUPS + MEASURED);
        settle(trial, KEPT);
    } else if (plan_us <= trial->serial_us * (1.0 + min_gain)) {
        snprintf(trial->text, sizeof trial->text,
                 "%zu chunks took %.0f us per layer in the first steps, one chunk was expected to take %.0f "
                 "us: kept",
                 trial->nchunks, plan_us, trial->serial_us);
        settle(trial, KEPT);
    } else {
        start_comparing(trial, (uint64_t)figures[PER_STEP], (uint64_t)figures[OFFSET]);
    }
}

static void decide_comparing(starlin__trial_t *trial, const double *figures, uint64_t sequence)
{
    double per_step = (double)trial->per_step;
    double plan_us = figures[PLAN_TIME] / per_step, whole_us = figures[WHOLE_TIME] / per_step;

    if (figures[NOT_READY] > 0.0) {
        snprintf(trial->text, sizeof trial->text,
                 "%zu chunks kept: the steps became irregular while one chunk was tried", trial->nchunks);
        settle(trial, KEPT);
    } else if (whole_us >= plan_us * (1.0 - min_gain)) {
        snprintf(trial->text, sizeof trial->text,
                 "%zu chunks took %.0f us per layer in the first steps, one chunk %.0f us: kept",
                 trial->nchunks, plan_us, whole_us);
        settle(trial, KEPT);
    } else {
        snprintf(trial->text, sizeof trial->text,
                 "%zu chunks took %.0f us per layer in the first steps, one chunk %.0f us: replaced from "
                 "operator %llu on",
                 trial->nchunks, plan_us, whole_us, (unsigned long long)sequence);
        settle(trial, REPLACED);
    }
}

void starlin__trial_decide(starlin__trial_t *trial, const double figures[STARLIN__TRIAL_FIGURES],
                           uint64_t sequence)
{
    if (figures[NOT_JOINED] > 0.0) {
        snprintf(
            trial->text, sizeof trial->text,
            "not tried in the first steps: some matrices do not lie in one piece where they are computed");
        settle(trial, KEPT);
    } else if (state_of(trial) == WATCHING) {
        decide_watching(trial, figures);
    } else {
        decide_comparing(trial, figures, sequence);
    }
}
