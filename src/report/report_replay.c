/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a step took longer than its ideal: the step is replayed with one cause after the other taken away.
 * What a cause cost is what its removal gains, so the parts add up to the whole by construction. A span
 * starts when those that it had to wait for have ended, plus a lag; lags and durations are sums of parts
 * with one cause each. Nothing else is assumed about the schedule: every lane keeps its order. */
#include <math.h>
#include <string.h>

#include "report/report_work.h"

/* The lanes' last spans while walking by start. The lanes are few; a plain list will do. */
typedef struct lanes {
    size_t n;
    double *scratch; /* pairs: lane, index of its last span */
} lanes_t;

static size_t lane_exchange(lanes_t *lanes, unsigned lane, size_t index)
{
    for (size_t i = 0; i < lanes->n; i++) {
        if (lanes->scratch[2 * i] != (double)lane)
            continue;
        size_t last = (size_t)lanes->scratch[2 * i + 1];
        lanes->scratch[2 * i + 1] = (double)index;
        return last;
    }
    lanes->scratch[2 * lanes->n] = (double)lane;
    lanes->scratch[2 * lanes->n + 1] = (double)index;
    lanes->n++;
    return STARLIN__NO_SPAN;
}

static bool is_before(const starlin__report_work_t *work, size_t index, size_t other)
{
    return other != STARLIN__NO_SPAN && work->step_of[other] == work->step_of[index] &&
           work->spans[other].end_us <= work->spans[index].start_us;
}

/* The span whose result this one uses: gemm -> collective -> cast -> gemm of the next operator. */
static size_t span_source(const starlin__report_work_t *work, size_t index)
{
    const starlin__work_span_t *one = &work->spans[index];
    if (one->span->kind != STARLIN__SPAN_GEMM) {
        bool same = index > 0 && work->spans[index - 1].span->sequence == one->span->sequence &&
                    work->spans[index - 1].span->chunk == one->span->chunk;
        return same ? index - 1 : STARLIN__NO_SPAN;
    }
    /* the same chunk of the operator before, if it was over when this one became ready */
    for (size_t i = index; i-- > 0;) {
        const starlin__work_span_t *other = &work->spans[i];
        if (other->span->sequence + 1 < one->span->sequence)
            break;
        if (other->span->sequence == one->span->sequence || other->span->chunk != one->span->chunk)
            continue;
        return other->end_us <= one->ready_us ? i : STARLIN__NO_SPAN;
    }
    return STARLIN__NO_SPAN;
}

static void span_lag(const starlin__report_work_t *work, starlin__work_span_t *one, double from_us)
{
    double launch_us = work->input->launch_us;
    double lag_us = one->start_us - from_us;
    if (one->span->kind == STARLIN__SPAN_ALLREDUCE) {
        double patient_us = fmin(from_us + launch_us, one->start_us);
        one->core_us = starlin__union_between(&work->gemm, patient_us, one->start_us);
    } else {
        /* where nobody recorded when it became ready, a short gap is launch latency */
        bool unknown = one->ready_us >= one->start_us;
        double ready_us = fmax(from_us, unknown ? one->start_us - launch_us : one->ready_us);
        double patient_us = fmin(fmax(ready_us, one->launch_us + launch_us), one->start_us);
        one->idle_us = ready_us - from_us;
        one->core_us = starlin__union_between(&work->comm, patient_us, one->start_us);
    }
    one->launch_lag_us = lag_us - one->idle_us - one->core_us;
}

void starlin__replay_prepare(starlin__report_work_t *work)
{
    lanes_t lanes = {.scratch = work->scratch};
    size_t queue = STARLIN__NO_SPAN;
    for (size_t k = 0; k < work->nspans; k++) {
        size_t index = work->by_start[k];
        starlin__work_span_t *one = &work->spans[index];
        size_t candidates[3] = {lane_exchange(&lanes, one->span->lane, index), span_source(work, index),
                                STARLIN__NO_SPAN};
        if (one->span->kind == STARLIN__SPAN_ALLREDUCE) {
            candidates[2] = queue;
            queue = index;
        }
        double from_us = work->step_first[work->step_of[index]];
        for (int i = 0; i < 3; i++) {
            one->before[i] = is_before(work, index, candidates[i]) ? candidates[i] : STARLIN__NO_SPAN;
            if (one->before[i] != STARLIN__NO_SPAN)
                from_us = fmax(from_us, work->spans[one->before[i]].end_us);
        }
        span_lag(work, one, from_us);
    }
}

/* Which causes are still there, and which kinds of span take time at all. */
typedef struct world {
    bool cause[STARLIN_NCAUSES];
    bool comm;
} world_t;

static double replay_duration(const starlin__work_span_t *one, const world_t *world)
{
    double duration_us = starlin__work_duration(one);
    if (one->span->kind == STARLIN__SPAN_GEMM)
        return world->cause[STARLIN_CAUSE_GEMM] ? duration_us : duration_us - one->excess_us;
    if (one->span->kind == STARLIN__SPAN_CAST)
        return world->cause[STARLIN_CAUSE_CAST] ? duration_us : 0;
    if (!world->comm)
        return 0;
    duration_us -= world->cause[STARLIN_CAUSE_PEER] ? 0 : one->peer_us;
    return duration_us - (world->cause[STARLIN_CAUSE_LINK] ? 0 : one->slow_us);
}

static double replay(starlin__report_work_t *work, size_t first, size_t last, double step_first_us,
                     const world_t *world)
{
    double until_us = step_first_us;
    for (size_t k = first; k < last; k++) {
        starlin__work_span_t *one = &work->spans[work->by_start[k]];
        double start_us = step_first_us;
        for (int i = 0; i < 3; i++)
            if (one->before[i] != STARLIN__NO_SPAN)
                start_us = fmax(start_us, work->spans[one->before[i]].replay_end_us);
        start_us += world->cause[STARLIN_CAUSE_CORE] ? one->core_us : 0;
        start_us += world->cause[STARLIN_CAUSE_LAUNCH] ? one->launch_lag_us : 0;
        start_us += world->cause[STARLIN_CAUSE_IDLE] ? one->idle_us : 0;
        one->replay_end_us = start_us + replay_duration(one, world);
        until_us = fmax(until_us, one->replay_end_us);
    }
    return until_us - step_first_us;
}

void starlin__replay_step(starlin__report_work_t *work, size_t step, starlin_report_step_t *out)
{
    static const starlin_cause_t order[] = {STARLIN_CAUSE_CORE, STARLIN_CAUSE_LAUNCH, STARLIN_CAUSE_IDLE,
                                            STARLIN_CAUSE_PEER, STARLIN_CAUSE_LINK,   STARLIN_CAUSE_GEMM,
                                            STARLIN_CAUSE_CAST};
    size_t first = 0, last;
    while (work->step_of[work->by_start[first]] != step)
        first++;
    for (last = first; last < work->nspans && work->step_of[work->by_start[last]] == step;)
        last++;

    world_t world = {.comm = true};
    memset(world.cause, true, sizeof world.cause);
    double time_us = out->time_us, begin_us = work->step_first[step], comm_us = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        world.cause[order[i]] = false;
        double without_us = replay(work, first, last, begin_us, &world);
        out->exposed_us[order[i]] = time_us - without_us;
        time_us = without_us;
    }
    for (size_t k = first; k < last; k++)
        if (work->spans[work->by_start[k]].span->kind == STARLIN__SPAN_ALLREDUCE)
            comm_us += replay_duration(&work->spans[work->by_start[k]], &world);
    world.comm = false;
    double pieces_us = fmax(replay(work, first, last, begin_us, &world), comm_us);
    bool compute_bound = out->gemm_us >= out->comm_us;
    out->exposed_us[compute_bound ? STARLIN_CAUSE_TAIL : STARLIN_CAUSE_HEAD] = time_us - pieces_us;
    out->exposed_us[STARLIN_CAUSE_CHUNKING] = pieces_us - out->ideal_us;
}
