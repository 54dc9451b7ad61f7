/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy `starlin`: one queue per scheduling context, ordered along the critical path by the priorities
 * that the library (or an application) gave.
 *
 * A worker that finds nothing waits: it looks at the queue again when a push has picked it. A push picks one
 * waiting worker, at best the one that wrote the task's data last, else one on the same memory node. The
 * picked one may be busy with what the policy does not see (a task pinned to it, another context), so a
 * waiting worker also looks from time to time of its own accord while there are tasks: nothing starves.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "policy/policy.h"

/* ------------------------------------------------------------- ready tasks */

#define BINS 64

typedef struct workers {
    bool has[STARPU_NMAXWORKERS];
} workers_t;

/* Ready tasks that the same workers may run: a worker compares the first tasks of the bins it belongs to, and
 * never sifts through tasks of others. A bin is a pairing heap: push in O(1), pop in O(log n) amortised. The
 * tasks' own `prev` (first child) and `next` (next sibling), which a policy owns while it holds a task, link
 * them, so nothing is allocated. No child comes before its parent. */
typedef struct bin {
    workers_t workers;
    int32_t where; /* of its tasks when that alone decided on the set of workers; 0: something else did */
    struct starpu_task *first;
} bin_t;

/* bins[0] is open to every worker: it takes tasks that have no bin of their own. */
typedef struct queue {
    unsigned nbins;
    bin_t bins[BINS];
} queue_t;

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
    struct starpu_task *first = comes_before(b, a) ? b : a, *second = first == a ? b : a;
    second->next = first->prev;
    first->prev = second;
    return first;
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

static bin_t *bin_push(bin_t *bin, struct starpu_task *task)
{
    task->prev = task->next = NULL;
    bin->first = meld(bin->first, task);
    return bin;
}

static struct starpu_task *bin_pop(bin_t *bin)
{
    struct starpu_task *task = bin->first;
    bin->first = meld_siblings(task->prev);
    task->prev = task->next = NULL;
    return task;
}

/* Workers of a type that is unknown here may try every task: StarPU then refuses. */
static bool may_run(const struct starpu_task *task, unsigned worker)
{
    enum starpu_worker_archtype type = starpu_worker_get_type((int)worker);
    uint64_t mask = type == STARPU_CPU_WORKER    ? STARPU_CPU
                    : type == STARPU_CUDA_WORKER ? STARPU_CUDA
                                                 : ~STARPU_NOWHERE;
    if (((uint64_t)task->where & mask) == 0)
        return false;
    return task->workerids_len == 0 ||
           (worker / 32 < task->workerids_len && (task->workerids[worker / 32] >> (worker % 32) & 1));
}

/* The bin for (workers, where): one that is there, a new one, an empty one that is given up for it, or else
 * the one that is open to all, as it is where nobody is in the set. */
static bin_t *bin_for(queue_t *queue, const workers_t *workers, int32_t where)
{
    static const workers_t nobody;
    bin_t *spare = NULL;
    if (memcmp(workers, &nobody, sizeof(nobody)) == 0)
        return queue->bins;
    for (unsigned i = 1; i < queue->nbins; i++) {
        bin_t *bin = &queue->bins[i];
        if (bin->where == where && memcmp(&bin->workers, workers, sizeof(*workers)) == 0)
            return bin;
        if (bin->first == NULL)
            spare = bin;
    }
    if (queue->nbins < BINS)
        spare = &queue->bins[queue->nbins++];
    if (spare == NULL)
        return queue->bins;
    spare->workers = *workers;
    spare->where = where;
    return spare;
}

/* `sched_data` holds the place in the order of submission. */
static bin_t *queue_push(queue_t *queue, struct starpu_task *task)
{
    if (task->workerids_len == 0) /* nearly always: no need to look at every worker */
        for (unsigned i = 1; i < queue->nbins; i++)
            if (queue->bins[i].where == task->where)
                return bin_push(&queue->bins[i], task);
    workers_t workers = {{false}};
    for (unsigned worker = 0; worker < starpu_worker_get_count(); worker++)
        workers.has[worker] = may_run(task, worker);
    return bin_push(bin_for(queue, &workers, task->workerids_len == 0 ? task->where : 0), task);
}

/* The bin with the first task for the worker; NULL where there is none. */
static bin_t *queue_find(queue_t *queue, unsigned worker)
{
    bin_t *best = NULL;
    for (unsigned i = 0; i < queue->nbins; i++) {
        bin_t *bin = &queue->bins[i];
        if (bin->first != NULL && bin->workers.has[worker] &&
            (best == NULL || comes_before(bin->first, best->first)))
            best = bin;
    }
    return best;
}

/* --------------------------------------------------------------- contexts */

#define WRITERS 256 /* a power of two */
#define NOBODY  (-1)

/* Who wrote data last: a hint, so collisions and stale entries do no harm. */
typedef struct writer {
    starpu_data_handle_t handle;
    int worker;
} writer_t;

#define PATIENCE_MIN 8
#define PATIENCE_MAX 1024

typedef struct worker_state {
    atomic_bool waiting; /* changed under the lock, read without it by the worker itself */
    unsigned polls;      /* since it last looked; this and the next one are the worker's own */
    unsigned patience;   /* polls until it looks uncalled; doubles while it finds nothing it may run */
    char padding[64 - 3 * sizeof(unsigned)];
} worker_state_t;

typedef struct policy_data {
    starpu_pthread_mutex_t lock;
    queue_t queue;
    atomic_uint ntasks; /* in the queue */
    workers_t members;  /* workers of the context; only these wait */
    unsigned nworkers;  /* one more than the highest of them so far */
    writer_t writers[WRITERS];
    worker_state_t workers[STARPU_NMAXWORKERS];
} policy_data_t;

/* Place of the next task in the order of submission. */
static atomic_uintptr_t submitted;

/* StarPU cannot be told that there is no memory, so nothing is allocated. */
static policy_data_t contexts[STARPU_NMAX_SCHED_CTXS];

static policy_data_t *data_of(unsigned context)
{
    return &contexts[context];
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

/* Gets a worker to call pop; without the lock. Does that settle it? Idle workers poll unless StarPU was built
 * with blocking drivers; there, nobody looks of his own accord, so one worker that may be busy is not enough.
 */
static bool rouse(int worker)
{
#ifdef STARPU_NON_BLOCKING_DRIVERS
    (void)worker;
    return true;
#else
    starpu_wake_worker_relax_light(worker);
    return false;
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

static bool is_candidate(const policy_data_t *data, const workers_t *workers, int worker)
{
    return atomic_load_explicit(&data->workers[worker].waiting, memory_order_relaxed) && workers->has[worker];
}

/* The waiting worker of the set that suits best a task whose data was written by `writer`. */
static int best_waiting(const policy_data_t *data, const workers_t *workers, int writer)
{
    int best = NOBODY;
    if (writer != NOBODY && is_candidate(data, workers, writer))
        return writer;
    for (int worker = 0; worker < (int)data->nworkers; worker++) {
        if (!is_candidate(data, workers, worker))
            continue;
        if (writer == NOBODY || starpu_worker_get_memory_node((unsigned)worker) ==
                                    starpu_worker_get_memory_node((unsigned)writer))
            return worker;
        if (best == NOBODY)
            best = worker;
    }
    return best;
}

/* Ends the waiting of one worker, which the caller rouses after unlocking. */
static int pick(policy_data_t *data, const workers_t *workers, int writer)
{
    int worker = best_waiting(data, workers, writer);
    if (worker != NOBODY)
        atomic_store_explicit(&data->workers[worker].waiting, false, memory_order_release);
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
    workers_t workers = queue_push(&data->queue, task)->workers;
    atomic_fetch_add_explicit(&data->ntasks, 1, memory_order_relaxed);
    int writer = last_writer(data, task);
    int worker = pick(data, &workers, writer);
    starpu_push_task_end(task); /* the task may be gone once the lock is */
    unlock(data);
    while (worker != NOBODY && !rouse(worker)) {
        lock(data);
        worker = pick(data, &workers, writer);
        unlock(data);
    }
    return 0;
}

/* StarPU refuses the task on this worker (its can_execute, or an implementation that is missing): only the
 * others see it from now on. A task that nobody is left for is open to everyone again. */
static int refuse(policy_data_t *data, workers_t workers, struct starpu_task *task, unsigned refusing)
{
    workers.has[refusing] = false;
    for (unsigned i = 0; i < STARPU_NMAXWORKERS; i++)
        workers.has[i] &= data->members.has[i];
    return pick(data, &bin_push(bin_for(&data->queue, &workers, 0), task)->workers, NOBODY);
}

/* The first task that the worker may run. Fills `roused` with workers to rouse after unlocking. */
static struct starpu_task *take(policy_data_t *data, unsigned worker, workers_t *roused)
{
    struct starpu_task *found = NULL, *aside = NULL;
    bin_t *bin;
    while (found == NULL && (bin = queue_find(&data->queue, worker)) != NULL) {
        unsigned implementation;
        struct starpu_task *task = bin_pop(bin);
        if (starpu_worker_can_execute_task_first_impl(worker, task, &implementation)) {
            starpu_task_set_implementation(task, implementation);
            found = task;
        } else if (bin == data->queue.bins) {
            task->next = aside;
            aside = task;
        } else {
            int other = refuse(data, bin->workers, task, worker);
            if (other != NOBODY)
                roused->has[other] = true;
        }
    }
    while (aside != NULL) {
        struct starpu_task *task = aside;
        aside = task->next;
        bin_push(data->queue.bins, task);
    }
    return found;
}

/* A waiting worker that nobody has called: is it time to look all the same? */
static bool loses_patience(policy_data_t *data, worker_state_t *state)
{
    if (atomic_load_explicit(&data->ntasks, memory_order_relaxed) == 0 || ++state->polls < state->patience)
        return false;
    if (state->patience < PATIENCE_MAX)
        state->patience *= 2;
    return true;
}

static struct starpu_task *pop(unsigned context)
{
    policy_data_t *data = data_of(context);
    unsigned worker = (unsigned)starpu_worker_get_id_check();
    worker_state_t *state = &data->workers[worker];
    if (atomic_load_explicit(&state->waiting, memory_order_acquire) && !loses_patience(data, state))
        return NULL;

    workers_t roused = {{false}};
    state->polls = 0;
    lock(data);
    struct starpu_task *task = take(data, worker, &roused);
    if (task != NULL) {
        note_writer(data, task, (int)worker);
        atomic_fetch_sub_explicit(&data->ntasks, 1, memory_order_relaxed);
        state->patience = PATIENCE_MIN;
    }
    bool waits = task == NULL && data->members.has[worker];
    atomic_store_explicit(&state->waiting, waits, memory_order_relaxed);
    unsigned nworkers = data->nworkers;
    unlock(data);
    for (unsigned other = 0; other < nworkers; other++)
        if (roused.has[other])
            rouse((int)other);
    return task;
}

static void add_workers(unsigned context, int *workers, unsigned nworkers)
{
    policy_data_t *data = data_of(context);
    lock(data);
    for (unsigned i = 0; i < nworkers; i++) {
        data->members.has[workers[i]] = true;
        atomic_store(&data->workers[workers[i]].waiting, false);
        data->workers[workers[i]].patience = PATIENCE_MIN;
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
        data->members.has[workers[i]] = false;
        atomic_store(&data->workers[workers[i]].waiting, false);
    }
    unlock(data);
}

static void init(unsigned context)
{
    policy_data_t *data = data_of(context);
    memset(data, 0, sizeof(*data)); /* its number may have been another context's before */
    STARPU_PTHREAD_MUTEX_INIT(&data->lock, NULL);
    memset(&data->queue.bins[0].workers, true, sizeof(data->queue.bins[0].workers));
    data->queue.nbins = 1;
    /* any priority is fine */
    if (!starpu_sched_ctx_min_priority_is_set(context))
        starpu_sched_ctx_set_min_priority(context, INT_MIN);
    if (!starpu_sched_ctx_max_priority_is_set(context))
        starpu_sched_ctx_set_max_priority(context, INT_MAX);
}

static void deinit(unsigned context)
{
    STARPU_PTHREAD_MUTEX_DESTROY(&data_of(context)->lock);
}

const struct starpu_sched_policy starlin__policy = {
    .init_sched = init,
    .deinit_sched = deinit,
    .add_workers = add_workers,
    .remove_workers = remove_workers,
    .submit_hook = submit,
    .push_task = push,
    .pop_task = pop,
    .policy_name = STARLIN__POLICY_NAME,
    .policy_description = "by priority along the critical path, equal ones in order of submission",
    .worker_type = STARPU_WORKER_LIST,
};
