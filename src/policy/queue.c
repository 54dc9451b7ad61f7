/* SPDX-License-Identifier: BSD-3-Clause */
/* Bins of ready tasks. Each bin is a pairing heap: push in O(1), pop in O(log n) amortised, two pointers per
 * task. Invariant: `prev` is a task's first child, `next` its next sibling; no child comes before its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "policy/queue.h"

#include <string.h>

static bool comes_before(const struct starpu_task *a, const struct starpu_task *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return (intptr_t)((uintptr_t)a->sched_data - (uintptr_t)b->sched_data) < 0;
}

static struct starpu_task *meld(struct starpu_task *a, struct starpu_task *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (comes_before(b, a)) {
        struct starpu_task *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->prev;
    a->prev = b;
    return a;
}

/* Melds siblings in pairs from left to right, then the pairs from right to left. */
static struct starpu_task *meld_siblings(struct starpu_task *first)
{
    struct starpu_task *pairs = NULL, *root = NULL;
    while (first != NULL) {
        struct starpu_task *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = NULL;
        if (b != NULL)
            b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct starpu_task *rest = pairs->next;
        pairs->next = NULL;
        root = meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static starlin__bin_t *bin_push(starlin__bin_t *bin, struct starpu_task *task)
{
    task->prev = NULL;
    task->next = NULL;
    bin->first = meld(bin->first, task);
    return bin;
}

struct starpu_task *starlin__bin_pop(starlin__bin_t *bin)
{
    struct starpu_task *task = bin->first;
    bin->first = meld_siblings(task->prev);
    task->prev = NULL;
    task->next = NULL;
    return task;
}

void starlin__queue_init(starlin__queue_t *queue)
{
    memset(queue, 0, sizeof(*queue));
    memset(&queue->bins[0].workers, 0xff, sizeof(queue->bins[0].workers));
    queue->nbins = 1;
}

/* StarPU's mask of a worker's type. Types unknown here may try every task: StarPU then refuses. */
static int32_t worker_mask(unsigned worker)
{
    switch (starpu_worker_get_type((int)worker)) {
    case STARPU_CPU_WORKER:
        return (int32_t)STARPU_CPU;
    case STARPU_CUDA_WORKER:
        return (int32_t)STARPU_CUDA;
    default:
        return ~(int32_t)STARPU_NOWHERE;
    }
}

static bool names_worker(const struct starpu_task *task, unsigned worker)
{
    if (task->workerids_len == 0)
        return true;
    return worker / 32 < task->workerids_len && (task->workerids[worker / 32] >> (worker % 32) & 1);
}

static starlin__workers_t workers_of(const struct starpu_task *task)
{
    starlin__workers_t set = {{0}};
    for (unsigned worker = 0; worker < starpu_worker_get_count(); worker++)
        if ((task->where & worker_mask(worker)) && names_worker(task, worker))
            starlin__workers_add(&set, worker);
    return set;
}

/* The bin for (workers, where): one that is there, a new one, an empty one that is given up for it, or else
 * the one that is open to all. */
static starlin__bin_t *bin_for(starlin__queue_t *queue, const starlin__workers_t *workers, int32_t where)
{
    starlin__bin_t *spare = NULL;
    for (unsigned i = 1; i < queue->nbins; i++) {
        starlin__bin_t *bin = &queue->bins[i];
        if (bin->where == where && memcmp(&bin->workers, workers, sizeof(*workers)) == 0)
            return bin;
        if (bin->first == NULL)
            spare = bin;
    }
    if (queue->nbins < STARLIN__QUEUE_BINS)
        spare = &queue->bins[queue->nbins++];
    if (spare == NULL)
        return &queue->bins[0];
    spare->workers = *workers;
    spare->where = where;
    return spare;
}

starlin__bin_t *starlin__queue_push(starlin__queue_t *queue, struct starpu_task *task)
{
    if (task->workerids_len == 0) /* nearly always: no need to look at every worker */
        for (unsigned i = 1; i < queue->nbins; i++)
            if (queue->bins[i].where == task->where)
                return bin_push(&queue->bins[i], task);
    starlin__workers_t workers = workers_of(task);
    return bin_push(bin_for(queue, &workers, task->workerids_len == 0 ? task->where : 0), task);
}

starlin__bin_t *starlin__queue_push_for(starlin__queue_t *queue, struct starpu_task *task,
                                        const starlin__workers_t *workers)
{
    static const starlin__workers_t nobody;
    if (memcmp(workers, &nobody, sizeof(nobody)) == 0)
        return bin_push(&queue->bins[0], task);
    return bin_push(bin_for(queue, workers, 0), task);
}

starlin__bin_t *starlin__queue_find(starlin__queue_t *queue, unsigned worker, bool open)
{
    starlin__bin_t *best = NULL;
    for (unsigned i = open ? 0 : 1; i < queue->nbins; i++) {
        starlin__bin_t *bin = &queue->bins[i];
        if (bin->first != NULL && starlin__workers_has(&bin->workers, worker) &&
            (best == NULL || comes_before(bin->first, best->first)))
            best = bin;
    }
    return best;
}
