/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready tasks by priority, then by submission, for workers that may not all run every task.
 *
 * Tasks that the same workers may run share a bin, and a bin is a heap: a worker compares the first tasks of
 * the bins it belongs to, and never sifts through tasks of others. The heaps link the tasks through their
 * own fields `prev` and `next` (a policy owns these while it holds a task), so nothing is allocated.
 * No locks: the policy holds one around every call. */
#ifndef STARLIN_POLICY_QUEUE_H
#define STARLIN_POLICY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <starpu.h>

#define STARLIN__WORKER_WORDS ((STARPU_NMAXWORKERS + 63) / 64)
#define STARLIN__QUEUE_BINS   64

typedef struct starlin__workers {
    uint64_t words[STARLIN__WORKER_WORDS];
} starlin__workers_t;

static inline bool starlin__workers_has(const starlin__workers_t *set, unsigned worker)
{
    return set->words[worker / 64] >> (worker % 64) & 1;
}

static inline void starlin__workers_add(starlin__workers_t *set, unsigned worker)
{
    set->words[worker / 64] |= UINT64_C(1) << (worker % 64);
}

static inline void starlin__workers_remove(starlin__workers_t *set, unsigned worker)
{
    set->words[worker / 64] &= ~(UINT64_C(1) << (worker % 64));
}

typedef struct starlin__bin {
    starlin__workers_t workers;
    int32_t where; /* of its tasks when that alone decided on the set of workers; 0: something else did */
    struct starpu_task *first;
} starlin__bin_t;

/* bins[0] is open to every worker: it takes tasks that have no bin of their own. */
typedef struct starlin__queue {
    unsigned nbins;
    starlin__bin_t bins[STARLIN__QUEUE_BINS];
} starlin__queue_t;

void starlin__queue_init(starlin__queue_t *queue);

/* Adds the task, whose `sched_data` holds its place in the order of submission; returns its bin. */
starlin__bin_t *starlin__queue_push(starlin__queue_t *queue, struct starpu_task *task);

/* Adds the task for this set of workers only; an empty set means that anyone may try. */
starlin__bin_t *starlin__queue_push_for(starlin__queue_t *queue, struct starpu_task *task,
                                        const starlin__workers_t *workers);

/* The bin with the first task for the worker; NULL when there is none. `open`: look into bins[0], too. */
starlin__bin_t *starlin__queue_find(starlin__queue_t *queue, unsigned worker, bool open);

/* Takes the first task out of a bin that is not empty. */
struct starpu_task *starlin__bin_pop(starlin__bin_t *bin);

#endif
