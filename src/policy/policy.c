/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy `starlin`: one queue per scheduling context, ordered along the critical path by the priorities
 * that the library (or an application) gave.
 *
 * A worker that finds nothing notes that it waits, and looks at the queue again only when a push has picked
 * it: pushing wakes exactly one waiting worker, at best the one that wrote the task's data last, else one on
 * the same memory node. Invariants, under the lock: a task in a bin is either seen by the next pop of a
 * worker that runs, or a waiting worker has been woken for it; `woken` holds those that were picked and have
 * not looked yet. If such a worker starts something else first (a task pinned to it), it passes the call on.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "policy.h"
#include "queue.h"

#define WRITERS 256 /* a power of two */
#define NOBODY  (-1)

/* Who wrote a piece of data last: a hint, so collisions and stale entries do no harm. */
typedef struct writer {
    starpu_data_handle_t handle;
    int worker;
} writer_t;

typedef struct policy_data {
    starpu_pthread_mutex_t lock;
    starlin__queue_t queue;
    /* set and cleared under the lock, read without it by the worker itself */
    atomic_bool waiting[STARPU_NMAXWORKERS];
    atomic_bool woken[STARPU_NMAXWORKERS];
    starlin__workers_t members; /* workers of the context; only these wait */
    unsigned nworkers;          /* one more than the highest of them so far */
    writer_t writers[WRITERS];
} policy_data_t;

/* Place of the next task in the order of submission. */
static atomic_uintptr_t submitted;

static policy_data_t *data_of(unsigned context)
{
    return starpu_sched_ctx_get_policy_data(context);
}

/* The way to take a lock inside a policy: others may change the worker's contexts while it waits. */
static void lock(policy_data_t *data)
{
    starpu_worker_relax_on();
    STARPU_PTHREAD_MUTEX_LOCK(&data->lock);
    starpu_worker_relax_off();
}

static void unlock(policy_data_t *data)
{
    STARPU_PTHREAD_MUTEX_UNLOCK(&data->lock);
}

/* Gets a worker to call pop. Where StarPU was built with blocking drivers it may be asleep; without the lock.
 */
static void rouse(int worker)
{
#ifndef STARPU_NON_BLOCKING_DRIVERS
    if (worker != NOBODY)
        starpu_wake_worker_relax_light(worker);
#else
    (void)worker;
#endif
}

static writer_t *writer_of(policy_data_t *data, starpu_data_handle_t handle)
{
    return &data->writers[((uintptr_t)handle >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (WRITERS - 1)];
}

static void note_writer(policy_data_t *data, const struct starpu_task *task, int worker)
{
    for (unsigned i = 0; i < STARPU_TASK_GET_NBUFFERS(task) && i < STARPU_NMAXBUFS; i++)
        if (STARPU_TASK_GET_MODE(task, i) & STARPU_W) {
            starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
            *writer_of(data, handle) = (writer_t){handle, worker};
        }
}

static int last_writer(policy_data_t *data, const struct starpu_task *task)
{
    for (unsigned i = 0; i < STARPU_TASK_GET_NBUFFERS(task) && i < STARPU_NMAXBUFS; i++) {
        starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
        const writer_t *writer = writer_of(data, handle);
        if (writer->handle == handle)
            return writer->worker;
    }
    return NOBODY;
}

static bool is_candidate(policy_data_t *data, const starlin__bin_t *bin, int worker)
{
    return atomic_load_explicit(&data->waiting[worker], memory_order_relaxed) &&
           starlin__workers_has(&bin->workers, (unsigned)worker);
}

/* The waiting worker that suits the task best. */
static int pick(policy_data_t *data, const starlin__bin_t *bin, const struct starpu_task *task)
{
    int writer = last_writer(data, task);
    if (writer != NOBODY && is_candidate(data, bin, writer))
        return writer;
    int chosen = NOBODY;
    for (int worker = 0; worker < (int)data->nworkers; worker++) {
        if (!is_candidate(data, bin, worker))
            continue;
        if (writer == NOBODY || starpu_worker_get_memory_node((unsigned)worker) ==
                                    starpu_worker_get_memory_node((unsigned)writer))
            return worker;
        if (chosen == NOBODY)
            chosen = worker;
    }
    return chosen;
}

/* Calls one worker for a task that was added to a bin; the caller rouses it after unlocking. */
static int wake_for(policy_data_t *data, const starlin__bin_t *bin, const struct starpu_task *task)
{
    int worker = pick(data, bin, task);
    if (worker != NOBODY) {
        atomic_store_explicit(&data->woken[worker], true, memory_order_relaxed);
        atomic_store_explicit(&data->waiting[worker], false, memory_order_release);
    }
    return worker;
}

static void submit(struct starpu_task *task)
{
    task->sched_data = (void *)atomic_fetch_add_explicit(&submitted, 1, memory_order_relaxed);
}

static int push(struct starpu_task *task)
{
    policy_data_t *data = data_of(task->sched_ctx);
    lock(data);
    const starlin__bin_t *bin = starlin__queue_push(&data->queue, task);
    int worker = wake_for(data, bin, task);
    starpu_push_task_end(task); /* the task may be gone once the lock is */
    unlock(data);
    rouse(worker);
    return 0;
}

/* StarPU refuses the task on this worker (its can_execute, or an implementation that is missing): only the
 * others see it from now on. A task that nobody is left for is open to everyone again, and workers
 * keep trying instead of waiting. */
static int refuse(policy_data_t *data, starlin__workers_t workers, struct starpu_task *task,
                  unsigned refusing)
{
    starlin__workers_remove(&workers, refusing);
    for (unsigned i = 0; i < STARLIN__WORKER_WORDS; i++)
        workers.words[i] &= data->members.words[i];
    return wake_for(data, starlin__queue_push_for(&data->queue, task, &workers), task);
}

/* The first task that the worker may run. Fills `roused` with workers to rouse after unlocking. */
static struct starpu_task *take(policy_data_t *data, unsigned worker, starlin__workers_t *roused)
{
    struct starpu_task *found = NULL, *aside = NULL;
    starlin__bin_t *bin;
    while (found == NULL && (bin = starlin__queue_find(&data->queue, worker, true)) != NULL) {
        unsigned implementation;
        struct starpu_task *task = starlin__bin_pop(bin);
        if (starpu_worker_can_execute_task_first_impl(worker, task, &implementation)) {
            starpu_task_set_implementation(task, implementation);
            found = task;
        } else if (bin == &data->queue.bins[0]) {
            task->next = aside;
            aside = task;
        } else {
            int other = refuse(data, bin->workers, task, worker);
            if (other != NOBODY)
                starlin__workers_add(roused, (unsigned)other);
        }
    }
    while (aside != NULL) {
        static const starlin__workers_t anyone;
        struct starpu_task *task = aside;
        aside = task->next;
        starlin__queue_push_for(&data->queue, task, &anyone);
    }
    return found;
}

static struct starpu_task *pop(unsigned context)
{
    policy_data_t *data = data_of(context);
    unsigned worker = (unsigned)starpu_worker_get_id_check();
    if (atomic_load_explicit(&data->waiting[worker], memory_order_acquire))
        return NULL; /* nobody has called since it last looked */

    starlin__workers_t roused = {{0}};
    lock(data);
    atomic_store_explicit(&data->woken[worker], false, memory_order_relaxed);
    struct starpu_task *task = take(data, worker, &roused);
    if (task != NULL)
        note_writer(data, task, (int)worker);
    else if (data->queue.bins[0].first == NULL && starlin__workers_has(&data->members, worker))
        atomic_store_explicit(&data->waiting[worker], true, memory_order_relaxed);
    unsigned nworkers = data->nworkers;
    unlock(data);
    for (unsigned other = 0; other < nworkers; other++)
        if (starlin__workers_has(&roused, other))
            rouse((int)other);
    return task;
}

/* Calls one waiting worker for each bin that has a task. */
static void pass_on(policy_data_t *data)
{
    int called[STARLIN__QUEUE_BINS];
    lock(data);
    unsigned nbins = data->queue.nbins;
    for (unsigned i = 0; i < nbins; i++) {
        const starlin__bin_t *bin = &data->queue.bins[i];
        called[i] = bin->first != NULL ? wake_for(data, bin, bin->first) : NOBODY;
    }
    unlock(data);
    for (unsigned i = 0; i < nbins; i++)
        rouse(called[i]);
}

static void task_starts(struct starpu_task *task, unsigned context)
{
    policy_data_t *data = data_of(context);
    int worker = starpu_worker_get_id();
    (void)task;
    if (worker >= 0 && atomic_exchange_explicit(&data->woken[worker], false, memory_order_relaxed))
        pass_on(data);
}

static void add_workers(unsigned context, int *workers, unsigned nworkers)
{
    policy_data_t *data = data_of(context);
    lock(data);
    for (unsigned i = 0; i < nworkers; i++) {
        starlin__workers_add(&data->members, (unsigned)workers[i]);
        atomic_store(&data->waiting[workers[i]], false);
        if ((unsigned)workers[i] >= data->nworkers)
            data->nworkers = (unsigned)workers[i] + 1;
    }
    unlock(data);
    for (unsigned i = 0; i < nworkers; i++) {
        if (workers[i] != starpu_worker_get_id())
            starpu_wake_worker_locked(workers[i]);
        starpu_sched_ctx_worker_shares_tasks_lists(workers[i], (int)context);
    }
}

static void remove_workers(unsigned context, int *workers, unsigned nworkers)
{
    policy_data_t *data = data_of(context);
    lock(data);
    for (unsigned i = 0; i < nworkers; i++) {
        starlin__workers_remove(&data->members, (unsigned)workers[i]);
        atomic_store(&data->waiting[workers[i]], false);
        atomic_store(&data->woken[workers[i]], false);
    }
    unlock(data);
    pass_on(data); /* one of them may have been called */
}

static void init(unsigned context)
{
    policy_data_t *data = calloc(1, sizeof(*data));
    STARPU_ASSERT_MSG(data != NULL, "no memory for the scheduling policy");
    STARPU_PTHREAD_MUTEX_INIT(&data->lock, NULL);
    starlin__queue_init(&data->queue);
    starpu_sched_ctx_set_policy_data(context, data);
    /* any priority is fine */
    if (!starpu_sched_ctx_min_priority_is_set(context))
        starpu_sched_ctx_set_min_priority(context, INT_MIN);
    if (!starpu_sched_ctx_max_priority_is_set(context))
        starpu_sched_ctx_set_max_priority(context, INT_MAX);
}

static void deinit(unsigned context)
{
    policy_data_t *data = data_of(context);
    STARPU_PTHREAD_MUTEX_DESTROY(&data->lock);
    free(data);
}

const struct starpu_sched_policy starlin__policy = {
    .init_sched = init,
    .deinit_sched = deinit,
    .add_workers = add_workers,
    .remove_workers = remove_workers,
    .submit_hook = submit,
    .push_task = push,
    .pop_task = pop,
    .pre_exec_hook = task_starts,
    .policy_name = STARLIN__POLICY_NAME,
    .policy_description = "by priority along the critical path, equal ones in order of submission",
    .worker_type = STARPU_WORKER_LIST,
};
