/* SPDX-License-Identifier: BSD-3-Clause */
/* A report's figures: puts spans in order, groups them into steps and turns sums into figures. Steps do not
 * overlap: every span lies within its step, and what lies between two steps belongs to neither.
 *
 * Why a step took longer than its ideal: it is replayed with one cause after the other taken away. What a
 * cause cost is what its removal gains, so the parts add up to the whole by construction. A span starts when
 * those that it had to wait for have ended, plus a lag; lags and durations are sums of parts with one cause
 * each. Nothing else is assumed about the schedule: every lane keeps its order. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

/* Operators back that may have made what a stage reads. */
#define MOST_OPERATORS_BACK 4
/* Communication below this is noise: its share cannot be told. */
#define LEAST_COMM_US    1.0
#define LEAST_COMM_SHARE 0.01

/* A span with its place in the order of things. Its ready and launch come before its start. */
typedef struct one {
    starlin__span_t span;
    size_t step;
    double arrival_us;                      /* of a collective: when its last peer came, 0: not known */
    double peer_us, slow_us;                /* of a collective: before the last peer came, beyond the plan */
    double excess_us;                       /* of a gemm: what collectives added */
    double beside_us;                       /* it ran while the other kind did */
    const struct one *stage_before;         /* of this chunk of its operator */
    const struct one *before[3];            /* ended before this one started, and had to */
    double core_us, launch_lag_us, idle_us; /* from the end of those to its start, by cause */
    double replay_end_us;
} one_t;

/* When at least one span of a kind ran: disjoint intervals in time order, for quick sums. */
typedef struct interval {
    double first, last, before; /* before: sum of the lengths of the earlier ones */
} interval_t;

typedef struct busy {
    size_t n;
    interval_t *list;
} busy_t;

typedef struct step {
    starlin_report_step_t out;
    double exposed_us[STARLIN_NCAUSES];
    double slowed_us, worked_us; /* gemms beside a collective, and what would have sufficed for them alone */
} step_t;

typedef struct lane {
    starlin_report_lane_t out;
    double until_us;
    const one_t *last;
} lane_t;

/* Arrays are as long as there are spans, an upper bound of every count, and lie behind the report. */
struct starlin_report {
    starlin_report_options_t options;
    starlin_report_summary_t summary;
    size_t nspans, nlanes, ncollectives;
    one_t *ones;      /* by operator, chunk, start */
    one_t **by_start; /* by start, end */
    step_t *steps, mean;
    lane_t *lanes;
    starlin_report_collective_t *collectives;
    busy_t compute, comm;
    double us_per_amount; /* of a gemm that no collective ran beside; 0: not known */
    bool has_flop;
    double *scratch;
};

static bool is_comm(const one_t *one)
{
    return one->span.kind == STARLIN__SPAN_COLLECTIVE;
}

static bool is_gemm(const one_t *one)
{
    return one->span.kind == STARLIN__SPAN_GEMM;
}

static double duration(const one_t *one)
{
    return one->span.end_us - one->span.start_us;
}

/* ------------------------------------------------------------------ order */

static int one_compare(const void *a, const void *b)
{
    const starlin__span_t *x = &((const one_t *)a)->span, *y = &((const one_t *)b)->span;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

static int start_compare(const void *a, const void *b)
{
    const one_t *x = *(one_t *const *)a, *y = *(one_t *const *)b;
    if (x->span.start_us != y->span.start_us)
        return x->span.start_us < y->span.start_us ? -1 : 1;
    if (x->span.end_us != y->span.end_us)
        return x->span.end_us < y->span.end_us ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void sort_by_start(starlin_report_t *report)
{
    for (size_t i = 0; i < report->nspans; i++)
        report->by_start[i] = &report->ones[i];
    qsort(report->by_start, report->nspans, sizeof report->by_start[0], start_compare);
}

/* Sorts the spans both ways. The link carries one collective at a time: one that was handed over earlier
 * queues there, and starts when the one before has ended. Ready and launch may be unknown (0), or wrong by
 * the difference of two clocks; behind an event of the device, work is launched before it is ready. */
static void put_in_order(starlin_report_t *report)
{
    double until_us = 0;
    sort_by_start(report);
    for (size_t i = 0; i < report->nspans; i++) {
        starlin__span_t *span = &report->by_start[i]->span;
        if (span->kind != STARLIN__SPAN_COLLECTIVE)
            continue;
        span->start_us = fmax(span->start_us, fmin(until_us, span->end_us));
        until_us = fmax(until_us, span->end_us);
    }
    for (size_t i = 0; i < report->nspans; i++) {
        starlin__span_t *span = &report->ones[i].span;
        span->launch_us = span->launch_us > 0 ? fmin(span->launch_us, span->start_us) : span->start_us;
        span->ready_us = span->ready_us > 0 ? fmin(span->ready_us, span->start_us) : span->launch_us;
        report->has_flop = report->has_flop || span->flop > 0;
    }
    qsort(report->ones, report->nspans, sizeof report->ones[0], one_compare);
    for (size_t i = 0; i < report->nspans; i++) {
        one_t *one = &report->ones[i];
        if (i > 0 && one[-1].span.sequence == one->span.sequence && one[-1].span.chunk == one->span.chunk)
            one->stage_before = one - 1;
    }
    sort_by_start(report);
}

/* Cuts the operators into steps: as long as they overlap in time, or a number of them and as long. */
static void cut_steps(starlin_report_t *report)
{
    const one_t *end = report->ones + report->nspans;
    double last_us = -INFINITY, floor_us = -INFINITY; /* of all so far; of the step before */
    step_t *step = NULL;
    for (one_t *one = report->ones, *next; one < end; one = next) {
        double ready_us = INFINITY, start_us = INFINITY, end_us = -INFINITY;
        for (next = one; next < end && next->span.sequence == one->span.sequence; next++) {
            ready_us = fmin(ready_us, next->span.ready_us);
            start_us = fmin(start_us, next->span.start_us);
            end_us = fmax(end_us, next->span.end_us);
        }
        if (step == NULL ||
            (step->out.noperators >= report->options.operators_per_step && start_us >= last_us)) {
            step = &report->steps[report->summary.nsteps++];
            step->out.first_sequence = one->span.sequence;
            step->out.start_us = INFINITY;
            floor_us = last_us;
        }
        step->out.start_us = fmin(step->out.start_us, fmax(ready_us, floor_us));
        step->out.noperators++;
        last_us = fmax(last_us, end_us);
        step->out.time_us = last_us - step->out.start_us;
        for (; one < next; one++)
            one->step = report->summary.nsteps - 1;
    }
}

static void busy_make(const starlin_report_t *report, bool comm, busy_t *busy)
{
    interval_t *last = NULL;
    for (size_t i = 0; i < report->nspans; i++) {
        const one_t *one = report->by_start[i];
        if (is_comm(one) != comm)
            continue;
        if (last != NULL && one->span.start_us <= last->last) {
            last->last = fmax(last->last, one->span.end_us);
            continue;
        }
        double before = last != NULL ? last->before + last->last - last->first : 0;
        last = &busy->list[busy->n++];
        *last = (interval_t){one->span.start_us, one->span.end_us, before};
    }
}

/* Time up to an instant with at least one of the spans. */
static double busy_until(const busy_t *busy, double time_us)
{
    size_t low = 0, high = busy->n; /* the first interval that starts later */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (busy->list[middle].first < time_us)
            low = middle + 1;
        else
            high = middle;
    }
    const interval_t *one = &busy->list[low];
    return low == 0 ? 0 : one[-1].before + fmin(time_us, one[-1].last) - one[-1].first;
}

static double busy_between(const busy_t *busy, double first_us, double last_us)
{
    return last_us > first_us ? busy_until(busy, last_us) - busy_until(busy, first_us) : 0;
}

/* ----------------------------------------------- what ran beside what */

static double amount(const starlin_report_t *report, const one_t *one)
{
    return report->has_flop ? one->span.flop : (double)one->span.rows;
}

static double gemm_alone_us(const starlin_report_t *report, const one_t *one)
{
    return one->span.planned_us > 0 ? one->span.planned_us : report->us_per_amount * amount(report, one);
}

static double median(const double *sorted, size_t n)
{
    return n > 0 ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : 0;
}

/* What that did to the gemms, and what held the collectives up. Alone, gemms ran at the median rate: the
 * first of all is often many times slower. */
static void find_beside(starlin_report_t *report)
{
    size_t nalone = 0;
    for (size_t i = 0; i < report->nspans; i++) {
        one_t *one = &report->ones[i];
        one->beside_us = busy_between(is_comm(one) ? &report->compute : &report->comm, one->span.start_us,
                                      one->span.end_us);
        if (is_gemm(one) && !(one->beside_us > 0) && amount(report, one) > 0)
            report->scratch[nalone++] = duration(one) / amount(report, one);
    }
    starlin__numbers_sort(report->scratch, nalone);
    report->us_per_amount = median(report->scratch, nalone);
    for (size_t i = 0; i < report->nspans; i++) {
        one_t *one = &report->ones[i];
        double planned_us = one->span.planned_us, alone_us = gemm_alone_us(report, one);
        if (is_comm(one)) {
            one->peer_us =
                one->arrival_us > 0 ? fmin(fmax(one->arrival_us - one->span.start_us, 0), duration(one)) : 0;
            one->slow_us = planned_us > 0 ? fmax(duration(one) - one->peer_us - planned_us, 0) : 0;
        } else if (is_gemm(one) && one->beside_us > 0 && alone_us > 0) {
            /* faster than an estimate says only that the estimate was wrong */
            one->excess_us = planned_us > 0 ? duration(one) - alone_us : fmax(duration(one) - alone_us, 0);
        }
    }
}

/* ------------------------------------------------- who waited for whom */

/* They are few, and rise. */
static lane_t *lane_of(starlin_report_t *report, unsigned number)
{
    lane_t *lanes = report->lanes;
    size_t i = report->nlanes;
    while (i > 0 && lanes[i - 1].out.lane > number)
        i--;
    if (i > 0 && lanes[i - 1].out.lane == number)
        return &lanes[i - 1];
    memmove(&lanes[i + 1], &lanes[i], (report->nlanes++ - i) * sizeof lanes[0]);
    lanes[i] =
        (lane_t){.out = {.lane = number, .is_link = number >= STARLIN__LANE_LINK}, .until_us = -INFINITY};
    return &lanes[i];
}

/* The span whose result this one uses: the stage before it, or whatever ended last on the same chunk in the
 * operators before, if it was over when this one became ready. */
static const one_t *source_of(const starlin_report_t *report, const one_t *one)
{
    const one_t *source = NULL;
    if (one->stage_before != NULL)
        return one->stage_before;
    for (const one_t *other = one; other-- > report->ones;) {
        if (other->span.sequence + MOST_OPERATORS_BACK < one->span.sequence || other->step != one->step)
            break;
        if (other->span.sequence != one->span.sequence && other->span.chunk == one->span.chunk &&
            other->span.end_us <= one->span.ready_us &&
            (source == NULL || other->span.end_us > source->span.end_us))
            source = other;
    }
    return source;
}

/* Splits the time from from_us to the start by cause. */
static void find_lag(const starlin_report_t *report, one_t *one, double from_us)
{
    double start_us = one->span.start_us, launch_us = report->options.launch_us;
    double patient_us = fmin(from_us + launch_us, start_us);
    if (!is_comm(one)) {
        /* where nobody recorded when it became ready, a short gap is launch latency */
        bool unknown = one->span.ready_us >= start_us;
        double ready_us = fmax(from_us, unknown ? start_us - launch_us : one->span.ready_us);
        one->idle_us = ready_us - from_us;
        patient_us = fmin(fmax(ready_us, one->span.launch_us + launch_us), start_us);
    }
    one->core_us = busy_between(is_comm(one) ? &report->compute : &report->comm, patient_us, start_us);
    one->launch_lag_us = start_us - from_us - one->idle_us - one->core_us;
}

static void find_waits(starlin_report_t *report)
{
    const one_t *queue = NULL;
    for (size_t k = 0; k < report->nspans; k++) {
        one_t *one = report->by_start[k];
        lane_t *lane = lane_of(report, one->span.lane);
        const one_t *candidates[3] = {lane->last, source_of(report, one), is_comm(one) ? queue : NULL};
        double from_us = report->steps[one->step].out.start_us;
        queue = is_comm(one) ? one : queue;
        lane->last = one;
        lane->out.nspans++;
        lane->out.busy_us += fmax(0, one->span.end_us - fmax(lane->until_us, one->span.start_us));
        lane->until_us = fmax(lane->until_us, one->span.end_us);
        for (int i = 0; i < 3; i++) {
            const one_t *other = candidates[i];
            bool waited =
                other != NULL && other->step == one->step && other->span.end_us <= one->span.start_us;
            one->before[i] = waited ? other : NULL;
            from_us = waited ? fmax(from_us, other->span.end_us) : from_us;
        }
        find_lag(report, one, from_us);
    }
}

/* ----------------------------------------------------------- the replay */

/* Which causes are still there (ROWWISE: row-wise work takes time), and whether collectives take time. */
typedef struct world {
    bool cause[STARLIN_NCAUSES];
    bool comm;
} world_t;

static double replay_duration(const one_t *one, const world_t *world)
{
    if (is_gemm(one))
        return duration(one) - (world->cause[STARLIN_CAUSE_GEMM] ? 0 : one->excess_us);
    if (!is_comm(one))
        return world->cause[STARLIN_CAUSE_ROWWISE] ? duration(one) : 0;
    if (!world->comm)
        return 0;
    return duration(one) - (world->cause[STARLIN_CAUSE_PEER] ? 0 : one->peer_us) -
           (world->cause[STARLIN_CAUSE_LINK] ? 0 : one->slow_us);
}

/* How long a step takes in a world; `spans` are its spans by start. */
static double replay(one_t **spans, size_t n, double begin_us, const world_t *world)
{
    double until_us = begin_us;
    for (size_t k = 0; k < n; k++) {
        one_t *one = spans[k];
        double start_us = begin_us;
        for (int i = 0; i < 3; i++)
            if (one->before[i] != NULL)
                start_us = fmax(start_us, one->before[i]->replay_end_us);
        start_us += world->cause[STARLIN_CAUSE_CORE] ? one->core_us : 0;
        start_us += world->cause[STARLIN_CAUSE_LAUNCH] ? one->launch_lag_us : 0;
        start_us += world->cause[STARLIN_CAUSE_IDLE] ? one->idle_us : 0;
        one->replay_end_us = start_us + replay_duration(one, world);
        until_us = fmax(until_us, one->replay_end_us);
    }
    return until_us - begin_us;
}

/* Splits time_us - ideal_us by cause. What is left when all else is taken away is the shape of the chunk
 * list: what it cannot hide, of which row-wise work may have a part, and what chunks cost more than the
 * whole. */
static void explain(one_t **spans, size_t n, step_t *step)
{
    static const starlin_cause_t order[] = {STARLIN_CAUSE_CORE, STARLIN_CAUSE_LAUNCH, STARLIN_CAUSE_IDLE,
                                            STARLIN_CAUSE_PEER, STARLIN_CAUSE_LINK,   STARLIN_CAUSE_GEMM};
    double begin_us = step->out.start_us, time_us = step->out.time_us, comm_us = 0;
    double chunks_us[2], open_us[2]; /* by whether row-wise work takes time */
    world_t world = {.comm = true};
    memset(world.cause, true, sizeof world.cause);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        world.cause[order[i]] = false;
        double without_us = replay(spans, n, begin_us, &world);
        step->exposed_us[order[i]] = time_us - without_us;
        time_us = without_us;
    }
    for (size_t k = 0; k < n; k++)
        comm_us += is_comm(spans[k]) ? replay_duration(spans[k], &world) : 0;
    for (int rowwise = 0; rowwise < 2; rowwise++) {
        world.cause[STARLIN_CAUSE_ROWWISE] = rowwise;
        world.comm = false;
        chunks_us[rowwise] = fmax(replay(spans, n, begin_us, &world), comm_us);
        world.comm = true;
        open_us[rowwise] = replay(spans, n, begin_us, &world) - chunks_us[rowwise];
    }
    bool compute_bound = step->out.compute_us >= step->out.comm_us;
    double rowwise_us = fmax(open_us[1] - open_us[0], 0);
    step->exposed_us[STARLIN_CAUSE_ROWWISE] = rowwise_us;
    step->exposed_us[compute_bound ? STARLIN_CAUSE_TAIL : STARLIN_CAUSE_HEAD] = open_us[1] - rowwise_us;
    step->exposed_us[STARLIN_CAUSE_CHUNKING] = chunks_us[1] - step->out.ideal_us;
}

/* ------------------------------------------------------------- figures */

static double hidden_pct(const starlin_report_step_t *step, double time_us)
{
    bool noise = step->comm_us < LEAST_COMM_US || step->comm_us < LEAST_COMM_SHARE * step->compute_us;
    if (noise || !(step->compute_us > 0))
        return NAN;
    return 100 * (step->serial_us - time_us) / fmin(step->compute_us, step->comm_us);
}

/* A step's figures from its spans by start. */
static void fill_step(const starlin_report_t *report, one_t **spans, size_t n, step_t *step)
{
    const starlin_report_options_t *given = &report->options;
    starlin_report_step_t *out = &step->out;
    double last_us = out->start_us + out->time_us, excess_us = 0, late_us = 0;
    double share = (double)out->noperators / (double)given->operators_per_step;
    for (size_t k = 0; k < n; k++) {
        if (is_gemm(spans[k]) && spans[k]->beside_us > 0 && gemm_alone_us(report, spans[k]) > 0) {
            step->slowed_us += spans[k]->beside_us;
            step->worked_us += spans[k]->beside_us - spans[k]->excess_us;
        }
        excess_us += spans[k]->excess_us;
        late_us += spans[k]->peer_us + spans[k]->slow_us;
    }
    out->compute_busy_us = busy_between(&report->compute, out->start_us, last_us);
    out->comm_busy_us = busy_between(&report->comm, out->start_us, last_us);
    for (size_t i = 0; i < report->comm.n; i++) {
        const interval_t *one = &report->comm.list[i];
        if (one->first >= out->start_us && one->last <= last_us)
            out->beside_us += busy_between(&report->compute, one->first, one->last);
    }
    out->compute_us =
        given->compute_us > 0 ? given->compute_us * share : fmax(out->compute_busy_us - excess_us, 0);
    out->comm_us = given->comm_us > 0 && out->comm_busy_us > 0 ? given->comm_us * share
                                                               : fmax(out->comm_busy_us - late_us, 0);
    out->serial_us = given->serial_us > 0 ? given->serial_us * share : out->compute_us + out->comm_us;
    out->ideal_us = fmax(out->compute_us, out->comm_us);
    out->hidden_pct = hidden_pct(out, out->time_us);
    out->gemm_slowdown = step->worked_us > 0 ? step->slowed_us / step->worked_us : NAN;
    explain(spans, n, step);
}

/* Which of its three possible causes took most of the gap before a collective? */
static starlin_cause_t gap_cause(const starlin_report_t *report, const one_t *one, double gap_us)
{
    double queue_us = busy_between(&report->comm, one->span.start_us - gap_us, one->span.start_us);
    double rest_us = gap_us - queue_us - one->core_us;
    if (gap_us <= report->options.launch_us || (rest_us >= queue_us && rest_us >= one->core_us))
        return STARLIN_CAUSE_LAUNCH;
    return queue_us > one->core_us ? STARLIN_CAUSE_QUEUE : STARLIN_CAUSE_CORE;
}

static void fill_lists(starlin_report_t *report)
{
    double total_us = 0;
    for (size_t i = 0; i < report->nspans; i++) {
        const one_t *one = &report->ones[i];
        const starlin__span_t *span = &one->span;
        if (!is_comm(one))
            continue;
        double gap_us = one->stage_before != NULL ? span->start_us - one->stage_before->span.end_us : 0;
        report->collectives[report->ncollectives++] =
            (starlin_report_collective_t){.sequence = span->sequence,
                                          .chunk = span->chunk,
                                          .time_us = duration(one),
                                          .gap_us = gap_us,
                                          .cause = gap_cause(report, one, gap_us),
                                          .exposed_us = duration(one) - one->beside_us};
        if (span->grid > report->summary.ctas)
            report->summary.ctas = span->grid;
    }
    report->summary.nchunks = report->ones[report->nspans - 1].span.chunk + 1u;
    for (size_t i = 0; i < report->summary.nsteps; i++)
        total_us += report->steps[i].out.time_us;
    for (size_t i = 0; i < report->nlanes; i++)
        report->lanes[i].out.idle_us = total_us - report->lanes[i].out.busy_us;
}

static void fill_means(starlin_report_t *report)
{
    starlin_report_step_t *mean = &report->mean.out;
    size_t n = report->summary.nsteps;
    for (size_t i = 0; i < n; i++) {
        const starlin_report_step_t *step = &report->steps[i].out;
        report->scratch[i] = step->time_us;
        mean->noperators += step->noperators;
#define ADD(field) mean->field += step->field / (double)n
        ADD(time_us), ADD(ideal_us), ADD(compute_us), ADD(comm_us), ADD(serial_us);
        ADD(compute_busy_us), ADD(comm_busy_us), ADD(beside_us);
#undef ADD
        report->mean.slowed_us += report->steps[i].slowed_us;
        report->mean.worked_us += report->steps[i].worked_us;
        for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
            report->mean.exposed_us[cause] += report->steps[i].exposed_us[cause] / (double)n;
    }
    mean->first_sequence = report->steps[0].out.first_sequence;
    mean->noperators /= n;
    mean->gemm_slowdown = report->mean.worked_us > 0 ? report->mean.slowed_us / report->mean.worked_us : NAN;
    starlin__numbers_sort(report->scratch, n);
    report->summary.min_us = report->scratch[0];
    report->summary.max_us = report->scratch[n - 1];
    report->summary.median_us = median(report->scratch, n);
    mean->hidden_pct = hidden_pct(mean, report->summary.median_us); /* a few disturbed steps do not decide */
}

/* All figures, from spans and arrivals; once more after the arrivals have changed. */
static void fill(starlin_report_t *report)
{
    size_t next = 0;
    memset(report->steps, 0, report->nspans * sizeof report->steps[0]);
    memset(&report->mean, 0, sizeof report->mean);
    report->summary.nsteps = report->nlanes = report->ncollectives = 0;
    report->compute.n = report->comm.n = 0;
    cut_steps(report);
    busy_make(report, false, &report->compute);
    busy_make(report, true, &report->comm);
    find_beside(report);
    find_waits(report);
    for (size_t i = 0; i < report->summary.nsteps; i++) {
        size_t first = next;
        while (next < report->nspans && report->by_start[next]->step == i)
            next++;
        fill_step(report, &report->by_start[first], next - first, &report->steps[i]);
    }
    fill_lists(report);
    fill_means(report);
}

/* ------------------------------------------------------- life of a report */

static void *carve(char **rest, size_t count, size_t size)
{
    void *array = *rest;
    *rest += (count * size + 7) / 8 * 8;
    return array;
}

/* One block of memory: the report, its arrays, its texts. */
static starlin_report_t *report_alloc(const starlin__report_input_t *input)
{
    const char *configuration = input->configuration != NULL ? input->configuration : "";
    const char *fallback = input->fallback;
    size_t n = input->nspans, ntext = strlen(configuration) + (fallback != NULL ? strlen(fallback) : 0);
    size_t each = sizeof(one_t) + sizeof(one_t *) + sizeof(step_t) + sizeof(lane_t) +
                  sizeof(starlin_report_collective_t) + 2 * sizeof(interval_t) + sizeof(double);
    starlin_report_t *report = starlin__alloc(sizeof *report + n * each + ntext + 16);
    if (report == NULL)
        return NULL;
    char *rest = (char *)(report + 1);
    report->nspans = n;
    report->ones = carve(&rest, n, sizeof *report->ones);
    report->by_start = carve(&rest, n, sizeof *report->by_start);
    report->steps = carve(&rest, n, sizeof *report->steps);
    report->lanes = carve(&rest, n, sizeof *report->lanes);
    report->collectives = carve(&rest, n, sizeof *report->collectives);
    report->scratch = carve(&rest, n, sizeof(double));
    report->compute.list = carve(&rest, n, sizeof(interval_t));
    report->comm.list = carve(&rest, n, sizeof(interval_t));
    report->summary.configuration = strcpy(carve(&rest, strlen(configuration) + 1, 1), configuration);
    if (fallback != NULL)
        report->summary.fallback = strcpy(rest, fallback);
    report->summary.source = input->source != NULL ? input->source : "tasks";
    return report;
}

starlin_status_t starlin__report_make(const starlin__report_input_t *input, starlin_report_t **report_p)
{
    if (input->nspans == 0)
        return starlin__error(STARLIN_ERR_INVALID, "report: nothing was recorded");
    for (size_t i = 0; i < input->nspans; i++) {
        const starlin__span_t *span = &input->spans[i];
        bool finite = isfinite(span->ready_us) && isfinite(span->launch_us) && isfinite(span->start_us) &&
                      isfinite(span->end_us);
        if (!finite || span->end_us < span->start_us || (unsigned)span->kind > STARLIN__SPAN_ROWWISE)
            return starlin__error(
                STARLIN_ERR_INVALID, "report: span %zu (operator %llu, chunk %u) runs from %g to %g us", i,
                (unsigned long long)span->sequence, span->chunk, span->start_us, span->end_us);
    }
    starlin_report_t *report = report_alloc(input);
    if (report == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "report: no memory for %zu spans", input->nspans);
    report->options = input->options;
    if (report->options.operators_per_step == 0)
        report->options.operators_per_step = 1;
    for (size_t i = 0; i < input->nspans; i++)
        report->ones[i].span = input->spans[i];
    put_in_order(report);
    fill(report);
    *report_p = report;
    return STARLIN_SUCCESS;
}

void starlin_report_destroy(starlin_report_t *report)
{
    starlin__free(report);
}

starlin_status_t starlin_report_set_arrivals(starlin_report_t *report, const double *arrival_us,
                                             size_t narrivals)
{
    if (report == NULL || arrival_us == NULL || narrivals != report->nspans)
        return starlin__error(STARLIN_ERR_INVALID, "report: %zu arrivals for %zu spans", narrivals,
                              report != NULL ? report->nspans : 0);
    for (size_t i = 0; i < narrivals; i++)
        report->ones[i].arrival_us = arrival_us[i];
    fill(report);
    return STARLIN_SUCCESS;
}

/* --------------------------------------------------------------- reading */

#define COUNT(entries, field)                                                                                \
    size_t starlin_report_##entries(const starlin_report_t *report)                                          \
    {                                                                                                        \
        return report != NULL ? report->field : 0;                                                           \
    }
COUNT(nsteps, summary.nsteps)
COUNT(nlanes, nlanes)
COUNT(ncollectives, ncollectives)
COUNT(nspans, nspans)

/* Fills in a caller's struct from entry i of n. */
static starlin_status_t give(const void *ours, size_t nbytes, size_t i, size_t n, void *theirs)
{
    if (i >= n || theirs == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: no entry %zu, there are %zu%s", i, n,
                              theirs == NULL ? "; and NULL to fill in" : "");
    return starlin__struct_fill(theirs, ours, nbytes, "report entry");
}

starlin_status_t starlin_report_summary(const starlin_report_t *report, starlin_report_summary_t *summary_p)
{
    return give(report != NULL ? &report->summary : NULL, sizeof *summary_p, 0, report != NULL, summary_p);
}

starlin_status_t starlin_report_step(const starlin_report_t *report, size_t i, starlin_report_step_t *step_p)
{
    if (report != NULL && i == STARLIN_REPORT_MEAN)
        return give(&report->mean.out, sizeof *step_p, 0, 1, step_p);
    size_t n = starlin_report_nsteps(report);
    return give(i < n ? &report->steps[i].out : NULL, sizeof *step_p, i, n, step_p);
}

starlin_status_t starlin_report_lane(const starlin_report_t *report, size_t i, starlin_report_lane_t *lane_p)
{
    size_t n = starlin_report_nlanes(report);
    return give(i < n ? &report->lanes[i].out : NULL, sizeof *lane_p, i, n, lane_p);
}

starlin_status_t starlin_report_collective(const starlin_report_t *report, size_t i,
                                           starlin_report_collective_t *collective_p)
{
    size_t n = starlin_report_ncollectives(report);
    return give(i < n ? &report->collectives[i] : NULL, sizeof *collective_p, i, n, collective_p);
}

starlin_status_t starlin_report_span(const starlin_report_t *report, size_t i, starlin_report_span_t *span_p)
{
    _Static_assert((int)STARLIN__SPAN_COLLECTIVE == (int)STARLIN_REPORT_COLLECTIVE &&
                       (int)STARLIN__SPAN_ROWWISE == (int)STARLIN_REPORT_ROWWISE,
                   "kinds are numbered alike");
    starlin_report_span_t ours = {0};
    size_t n = starlin_report_nspans(report);
    if (i < n) {
        const starlin__span_t *span = &report->ones[i].span;
        ours = (starlin_report_span_t){.kind = (starlin_report_kind_t)span->kind,
                                       .op = span->op,
                                       .stage = span->name,
                                       .lane = span->lane,
                                       .is_link = span->lane >= STARLIN__LANE_LINK,
                                       .sequence = span->sequence,
                                       .chunk = span->chunk,
                                       .grid = span->grid,
                                       .rows = span->rows,
                                       .nbytes = span->nbytes,
                                       .ready_us = span->ready_us,
                                       .launch_us = span->launch_us,
                                       .start_us = span->start_us,
                                       .end_us = span->end_us};
    }
    return give(&ours, sizeof ours, i, n, span_p);
}

double starlin_report_exposed_us(const starlin_report_t *report, size_t step, starlin_cause_t cause)
{
    bool is_mean = report != NULL && step == STARLIN_REPORT_MEAN;
    if ((unsigned)cause >= STARLIN_NCAUSES || (!is_mean && step >= starlin_report_nsteps(report)))
        return NAN;
    return (is_mean ? &report->mean : &report->steps[step])->exposed_us[cause];
}
