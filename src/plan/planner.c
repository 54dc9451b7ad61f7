/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses a chunk list: simulates candidates, improves the best ones step by step, and keeps one chunk where
 * nothing is to be gained. Invariants: no clock, no randomness, bounded work whatever m is; equal input gives
 * equal output on every rank. */
#include "plan/planner.h"

#include "plan/candidates.h"
#include "plan/simulate.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Work is counted in simulated chunks (about 40 ns each on a 2020s core). */
#define IMPROVE_WORK  12000
#define IMPROVE_LISTS 4
/* Among lists this close to the best one, the one with the fewest chunks. */
#define FEWER_WITHIN 0.003
/* A step must win this much, or rounding noise could go round in circles. */
#define STEP_WINS 1e-5

typedef struct list {
    size_t nchunks; /* 0: none yet */
    double us;
    int64_t quanta[STARLIN__MAX_CHUNKS];
} list_t;

/* The best list of each class of lengths: 1 ... 8, then one class per about a third of an octave. */
static const size_t class_limits[] = {1,  2,  3,  4,  5,  6,  7,  8,   10,  12,
                                      16, 20, 24, 32, 48, 64, 96, 128, 192, 256};
#define NCLASSES (sizeof(class_limits) / sizeof(class_limits[0]))

typedef struct search {
    const starlin__plan_input_t *input;
    int64_t nquanta;
    int64_t work;
    list_t best[NCLASSES];
} search_t;

/* --- search */

static void list_rows(const search_t *search, const int64_t *quanta, size_t nchunks, int64_t *rows)
{
    int64_t left = search->input->m;
    for (size_t i = 0; i + 1 < nchunks; i++) {
        rows[i] = quanta[i] * search->input->row_quantum;
        left -= rows[i];
    }
    rows[nchunks - 1] = left;
}

/* Simulates a list and keeps it if it is the best of its class. */
static double search_try(search_t *search, const int64_t *quanta, size_t nchunks)
{
    int64_t rows[STARLIN__MAX_CHUNKS];
    list_rows(search, quanta, nchunks, rows);
    double us = starlin__plan_simulate(search->input, rows, nchunks);
    search->work += (int64_t)nchunks;
    size_t class = 0;
    while (class_limits[class] < nchunks)
        class ++;
    list_t *best = &search->best[class];
    if (best->nchunks == 0 || us < best->us) {
        best->nchunks = nchunks;
        best->us = us;
        memcpy(best->quanta, quanta, nchunks * sizeof(quanta[0]));
    }
    return us;
}

static void search_visit(void *arg, const int64_t *quanta, size_t nchunks)
{
    search_try(arg, quanta, nchunks);
}

/* Replaces `list` by `changed` if that is faster. */
static bool step_try(search_t *search, list_t *list, const list_t *changed)
{
    double us = search_try(search, changed->quanta, changed->nchunks);
    if (!(us < list->us * (1 - STEP_WINS)))
        return false;
    list->nchunks = changed->nchunks;
    list->us = us;
    memcpy(list->quanta, changed->quanta, changed->nchunks * sizeof(changed->quanta[0]));
    return true;
}

/* Moves a part of chunk `from` to chunk `to`: half of it, a quarter ... and one quantum. */
static bool step_shift(search_t *search, list_t *list, size_t from, size_t to)
{
    for (unsigned divisor = 2; divisor <= 32; divisor *= 2) {
        int64_t part = list->quanta[from] / divisor;
        if (divisor == 32)
            part = 1;
        if (part < 1 || part >= list->quanta[from])
            continue;
        list_t changed = *list;
        changed.quanta[from] -= part;
        changed.quanta[to] += part;
        if (step_try(search, list, &changed))
            return true;
    }
    return false;
}

static bool step_split(search_t *search, list_t *list, size_t at)
{
    if (list->nchunks == STARLIN__MAX_CHUNKS || list->quanta[at] < 2)
        return false;
    list_t changed = *list;
    size_t behind = list->nchunks - at - 1;
    memmove(&changed.quanta[at + 2], &changed.quanta[at + 1], behind * sizeof(changed.quanta[0]));
    changed.quanta[at + 1] = list->quanta[at] / 2;
    changed.quanta[at] -= changed.quanta[at + 1];
    changed.nchunks++;
    return step_try(search, list, &changed);
}

static bool step_merge(search_t *search, list_t *list, size_t at)
{
    list_t changed = *list;
    size_t behind = list->nchunks - at - 2;
    changed.quanta[at] += changed.quanta[at + 1];
    memmove(&changed.quanta[at + 1], &changed.quanta[at + 2], behind * sizeof(changed.quanta[0]));
    changed.nchunks--;
    return step_try(search, list, &changed);
}

/* From the tail on, where the exposed part is, until nothing helps or the work is used up. */
static void search_improve(search_t *search, list_t *list)
{
    int64_t limit = search->work + IMPROVE_WORK;
    bool changed = true;
    while (changed && search->work < limit) {
        changed = false;
        for (size_t i = list->nchunks; i-- > 0 && search->work < limit;) {
            if (i + 1 < list->nchunks) {
                changed |= step_shift(search, list, i, i + 1);
                changed |= step_shift(search, list, i + 1, i);
            }
            changed |= step_split(search, list, i);
            if (i + 1 < list->nchunks && list->nchunks > 2)
                changed |= step_merge(search, list, i);
        }
    }
}

/* The fastest class that is not marked as done; NCLASSES if none is left. */
static size_t search_fastest(const search_t *search, const bool *done)
{
    size_t fastest = NCLASSES;
    for (size_t i = 1; i < NCLASSES; i++) {
        if (search->best[i].nchunks == 0 || done[i])
            continue;
        if (fastest == NCLASSES || search->best[i].us < search->best[fastest].us)
            fastest = i;
    }
    return fastest;
}

/* The chunked list to use, or NULL if there is none. */
static const list_t *search_run(search_t *search, double ratio)
{
    starlin__candidates_visit(search->nquanta, ratio, search_visit, search);
    bool done[NCLASSES] = {false};
    for (size_t i = 0; i < IMPROVE_LISTS; i++) {
        size_t start = search_fastest(search, done);
        if (start == NCLASSES)
            return NULL;
        done[start] = true;
        list_t list = search->best[start];
        search_improve(search, &list);
        if (search_fastest(search, done) == NCLASSES)
            break;
    }
    const bool none[NCLASSES] = {false};
    double limit = search->best[search_fastest(search, none)].us * (1 + FEWER_WITHIN);
    for (size_t i = 1; i < NCLASSES; i++)
        if (search->best[i].nchunks != 0 && search->best[i].us <= limit)
            return &search->best[i];
    return NULL;
}

/* --- choice */

/* Why so little could be gained, for people; the figures follow. */
static const char *explain(const starlin__plan_input_t *input, const starlin__plan_t *plan, double chunked_us)
{
    double hideable = plan->gemm_us < plan->comm_us ? plan->gemm_us : plan->comm_us;
    if (hideable < 2 * input->min_gain * plan->serial_us)
        return plan->gemm_us < plan->comm_us ? "the link is the bottleneck, gemms are short"
                                             : "the link is idle most of the time";
    if (chunked_us > plan->serial_us * starlin__plan_nlayers(input))
        return "chunks cost more than they hide";
    return "little can be hidden";
}

static void reason(const starlin__plan_input_t *input, starlin__plan_t *plan, const list_t *list)
{
    char *text = plan->reason;
    size_t size = sizeof(plan->reason);
    if (list == NULL)
        snprintf(text, size, "%lld row%s cannot be cut (chunks are multiples of %lld)", (long long)input->m,
                 input->m == 1 ? "" : "s", (long long)input->row_quantum);
    else if (plan->comm_us <= 0)
        snprintf(text, size, "nothing to hide: the collective takes no time");
    else if (plan->gemm_us <= 0)
        snprintf(text, size, "nothing to hide behind: the gemm takes no time");
    else if (input->comm_uses_core)
        snprintf(text, size,
                 "communication needs the cores that gemms run on: it cannot be hidden (one chunk: %.0f us)",
                 plan->serial_us);
    else
        snprintf(text, size, "%s: chunking would take %.0f us, one chunk %.0f us: gain below %.1f%%",
                 explain(input, plan, list->us), list->us / starlin__plan_nlayers(input), plan->serial_us,
                 100 * input->min_gain);
}

void starlin__plan_choose(const starlin__plan_input_t *input, starlin__plan_t *plan_p)
{
    assert(input->m >= 1 && input->row_quantum >= 1);
    search_t search = {.input = input, .nquanta = (input->m - 1) / input->row_quantum + 1};
    *plan_p = (starlin__plan_t){
        .ctas = input->ctas, .piece_rows = input->piece_rows, .nchunks = 1, .rows = {input->m}};
    plan_p->gemm_us = starlin__simulate_gemm_us(input, input->m);
    plan_p->comm_us = starlin__simulate_comm_us(input, input->m);
    plan_p->serial_us = starlin__plan_simulate(input, plan_p->rows, 1);
    double nlayers = starlin__plan_nlayers(input), chain_us = plan_p->serial_us;
    plan_p->serial_us /= nlayers;
    plan_p->predicted_us = plan_p->serial_us;

    double ratio = plan_p->gemm_us > 0 ? plan_p->comm_us / plan_p->gemm_us : 0;
    const list_t *list = search_run(&search, ratio);
    double gain = list == NULL ? 0 : chain_us - list->us;
    if (input->comm_uses_core || plan_p->comm_us <= 0 || plan_p->gemm_us <= 0 || gain <= 0 ||
        gain < input->min_gain * chain_us) {
        reason(input, plan_p, list);
        return;
    }
    plan_p->nchunks = list->nchunks;
    plan_p->predicted_us = list->us / nlayers;
    list_rows(&search, list->quanta, list->nchunks, plan_p->rows);
}

size_t starlin__plan_equal(int64_t m, size_t count, int64_t *rows)
{
    assert(m >= 1);
    if (count < 1)
        count = 1;
    if (count > STARLIN__MAX_CHUNKS)
        count = STARLIN__MAX_CHUNKS;
    if ((uint64_t)count > (uint64_t)m)
        count = (size_t)m;
    int64_t base = m / (int64_t)count, larger = m % (int64_t)count;
    for (size_t i = 0; i < count; i++)
        rows[i] = base + ((int64_t)i < larger ? 1 : 0);
    return count;
}
