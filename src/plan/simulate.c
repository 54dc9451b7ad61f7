/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulation of a sketch, and its speeds from measured times. Pure: no clock, no chance. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "plan/plan.h"

enum { MOST_SERVERS = 64 };

static double cost_us(const starlin__sketch_task_t *task, const starlin__prices_t *prices)
{
    if (task->is_exact)
        return task->nominal_us;
    return prices->fixed_us[task->kind] + prices->factor[task->kind] * task->nominal_us;
}

/* When its inputs are complete; negative: one of them has not begun to be made. */
static double ready_us(const starlin__sketch_t *sketch, const starlin__sketch_task_t *task)
{
    double ready = 0;

    for (unsigned i = 0; i < task->npredecessors; i++) {
        double end_us = sketch->tasks[task->predecessors[i]].end_us;
        if (end_us < 0)
            return -1;
        ready = end_us > ready ? end_us : ready;
    }
    return ready;
}

/* The task that can begin first, and when: of those that compute any, of collectives the next. free_us: of
 * compute and link. */
static size_t next_task(const starlin__sketch_t *sketch, size_t first, const double free_us[2],
                        double *start_p)
{
    bool has_collective = false;
    size_t next = first;

    *start_p = INFINITY;
    for (size_t i = first; i < sketch->ntasks && !(has_collective && *start_p <= free_us[0]); i++) {
        const starlin__sketch_task_t *task = &sketch->tasks[i];
        bool is_collective = task->kind == STARLIN__STAGE_COLLECTIVE;
        double ready, start;
        if (task->end_us >= 0 || (is_collective && has_collective))
            continue;
        has_collective = has_collective || is_collective;
        ready = ready_us(sketch, task);
        start = ready > free_us[is_collective] ? ready : free_us[is_collective];
        if (ready < 0 || start >= *start_p)
            continue;
        *start_p = start;
        next = i;
    }
    return next;
}

double starlin__simulate(starlin__sketch_t *sketch, const starlin__prices_t *prices)
{
    double servers_us[MOST_SERVERS] = {0}, free_us[2] = {0}, last_us = 0;
    unsigned nservers = sketch->nservers < MOST_SERVERS ? sketch->nservers : MOST_SERVERS;

    for (size_t i = 0; i < sketch->ntasks; i++)
        sketch->tasks[i].end_us = -1;
    for (size_t first = 0; first < sketch->ntasks;) {
        starlin__sketch_task_t *task;
        unsigned server = 0;
        double start_us;
        for (unsigned i = 1; i < nservers; i++)
            server = servers_us[i] < servers_us[server] ? i : server;
        free_us[0] = servers_us[server];
        task = &sketch->tasks[next_task(sketch, first, free_us, &start_us)];
        task->end_us = start_us + cost_us(task, prices);
        last_us = task->end_us > last_us ? task->end_us : last_us;
        *(task->kind == STARLIN__STAGE_COLLECTIVE ? &free_us[1] : &servers_us[server]) = task->end_us;
        while (first < sketch->ntasks && sketch->tasks[first].end_us >= 0)
            first++;
    }
    return last_us;
}

/* Sum of squares of the logarithms of simulated over measured. */
static double misfit(starlin__sketch_t *const *sketches, const double *measured_us, size_t count,
                     const starlin__prices_t *prices)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        double error = log(starlin__simulate(sketches[i], prices) / measured_us[i]);
        sum += error * error;
    }
    return sum;
}

/* Tries every pair of speeds, faster or slower, by ever smaller factors: about a thousand evaluations. */
void starlin__prices_fit(starlin__sketch_t *const *sketches, const double *measured_us, size_t count,
                         starlin__prices_t *prices)
{
    enum { NKNOBS = 4, MOST_SWEEPS = 6 };
    double *const knobs[NKNOBS] = {
        &prices->factor[STARLIN__STAGE_GEMM], &prices->factor[STARLIN__STAGE_COLLECTIVE],
        &prices->fixed_us[STARLIN__STAGE_COLLECTIVE], &prices->fixed_us[STARLIN__STAGE_GEMM]};
    double best = misfit(sketches, measured_us, count, prices);

    for (double step = 8; step > 1.04; step = sqrt(step)) {
        bool is_better = true;
        for (int sweep = 0; is_better && sweep < MOST_SWEEPS; sweep++) {
            is_better = false;
            for (unsigned move = 0; move < 4 * NKNOBS * NKNOBS; move++) {
                unsigned a = move / 4 % NKNOBS, b = move / 4 / NKNOBS;
                starlin__prices_t before = *prices;
                double now;
                if (a > b)
                    continue;
                *knobs[a] *= move & 1 ? step : 1 / step;
                if (a != b)
                    *knobs[b] *= move & 2 ? step : 1 / step;
                now = misfit(sketches, measured_us, count, prices);
                is_better = is_better || now < best;
                if (now < best)
                    best = now;
                else
                    *prices = before;
            }
        }
    }
}
