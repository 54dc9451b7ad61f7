/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress engine. Invariants:
 *   - works are started in the order of their submission, whatever order they become ready in;
 *   - a rank whose gemm failed tells its peers before it starts that gemm's collective, and takes part in it
 *     all the same;
 *   - a collective that cannot start, fails or takes too long breaks the communicator: every later work ends
 *     at once, so that no wait hangs;
 *   - callbacks are called without the lock, since ending a task may make the next work ready.
 * Rounds are gone through by the engine's thread where it has a core of its own. Elsewhere waking it up on a
 * busy core could take as long as a gemm: workers go through a round when data becomes ready and while they
 * are idle, and the thread only looks after what they leave. */
#define _POSIX_C_SOURCE 200809L
#include "progress/progress_private.h"

#include <stdio.h>

static void end(starlin__progress_t *progress, starlin__work_t *work)
{
    work->end_us = starlin__now_us();
    /* first: the callback may give the work to its next user */
    atomic_fetch_sub(&progress->active, 1);
    work->on_end(work);
}

static void report(starlin__progress_t *progress, uint64_t sequence, starlin_status_t status,
                   const char *text)
{
    starlin__notice_t notice = {
        .sequence = sequence, .rank = progress->setup.bootstrap->rank, .status = status};
    snprintf(notice.text, sizeof notice.text, "%s", text);
    progress->setup.failed(progress->setup.arg, &notice);
}

/* Gives up on the communicator: nothing more is started on it. */
static void break_down(starlin__progress_t *progress, uint64_t sequence, starlin_status_t status,
                       const char *text)
{
    report(progress, sequence, status, text);
    if (!progress->broken && progress->setup.comm->ops->abort != NULL)
        progress->setup.comm->ops->abort(progress->setup.comm);
    progress->broken = true;
}

/* A peer that lost its communicator joins no further collective: waiting for it would be in vain. */
static void received(void *arg, const starlin__notice_t *notice)
{
    starlin__progress_t *progress = arg;

    progress->setup.failed(progress->setup.arg, notice);
    if (notice->status == STARLIN_ERR_COMM || notice->status == STARLIN_ERR_TIMEOUT) {
        if (!progress->broken && progress->setup.comm->ops->abort != NULL)
            progress->setup.comm->ops->abort(progress->setup.comm);
        progress->broken = true;
    }
}

static void poll_notices(starlin__progress_t *progress)
{
    const starlin__bootstrap_ops_t *ops = progress->setup.bootstrap->ops;
    if (ops->poll != NULL && ops->poll(progress->setup.bootstrap, received, progress) != STARLIN_SUCCESS)
        break_down(progress, 0, STARLIN_ERR_COMM, starlin_last_error());
}

static void tell_peers(starlin__progress_t *progress, const starlin__notice_t *notice)
{
    const starlin__bootstrap_ops_t *ops = progress->setup.bootstrap->ops;
    starlin_status_t status;

    if (progress->told || ops->notify == NULL)
        return;
    progress->told = true;
    status = ops->notify(progress->setup.bootstrap, notice, progress->setup.timeout_ms, received, progress);
    if (status != STARLIN_SUCCESS)
        break_down(progress, notice->sequence, status, starlin_last_error());
}

static void start_failed(starlin__progress_t *progress, uint64_t sequence, starlin_status_t status)
{
    starlin__notice_t notice = {
        .sequence = sequence, .rank = progress->setup.bootstrap->rank, .status = STARLIN_ERR_COMM};

    snprintf(notice.text, sizeof notice.text, "%s", starlin_last_error());
    progress->told = false;
    tell_peers(progress, &notice);
    break_down(progress, sequence, status, notice.text);
}

static void start(starlin__progress_t *progress, starlin__work_t *work)
{
    starlin_status_t status;

    if (work->failed_before_start) {
        starlin__notice_t notice;
        pthread_mutex_lock(&progress->lock);
        notice = progress->failure;
        pthread_mutex_unlock(&progress->lock);
        tell_peers(progress, &notice);
    }
    work->start_us = starlin__now_us();
    work->next = NULL;
    if (!progress->broken) {
        if (work->on_start != NULL)
            work->on_start(work);
        status = progress->setup.comm->ops->allreduce_start(progress->setup.comm, &work->request);
        if (work->on_launched != NULL)
            work->on_launched(work);
        if (status != STARLIN_SUCCESS)
            start_failed(progress, work->sequence, status);
    }
    if (progress->broken || work->ends_at_launch) {
        if (progress->setup.bootstrap->nranks > 1)
            atomic_store(&progress->owes, true);
        end(progress, work);
        return;
    }
    work->state = STARTED;
    if (progress->running_tail != NULL)
        progress->running_tail->next = work;
    else
        progress->running = work;
    progress->running_tail = work;
}

/* Starts what is ready at the head of the queue. */
static void start_ready(starlin__progress_t *progress)
{
    for (;;) {
        starlin__work_t *work;
        pthread_mutex_lock(&progress->lock);
        work = progress->head;
        if (work == NULL || work->state != READY) {
            pthread_mutex_unlock(&progress->lock);
            return;
        }
        progress->head = work->next;
        if (progress->head == NULL)
            progress->tail = NULL;
        pthread_mutex_unlock(&progress->lock);
        start(progress, work);
    }
}

/* Is the started work over? Failures count as over. */
static bool is_over(starlin__progress_t *progress, starlin__work_t *work)
{
    bool done = false;
    starlin_status_t status;

    if (progress->broken)
        return true;
    status = progress->setup.comm->ops->allreduce_test(progress->setup.comm, &work->request, &done);
    if (status != STARLIN_SUCCESS) {
        break_down(progress, work->sequence, status, starlin_last_error());
    } else if (!done && starlin__now_us() > starlin__work_deadline_us(progress, work)) {
        char text[160];
        snprintf(text, sizeof text,
                 "a collective did not complete within %u ms (STARLIN_TIMEOUT_MS sets the limit)",
                 progress->setup.timeout_ms);
        break_down(progress, work->sequence, STARLIN_ERR_TIMEOUT, text);
    }
    return done || progress->broken;
}

static bool test_running(starlin__progress_t *progress)
{
    starlin__work_t **link = &progress->running, *work, *last = NULL;
    bool ended = false;

    while ((work = *link) != NULL) {
        if (!is_over(progress, work)) {
            last = work;
            link = &work->next;
            continue;
        }
        *link = work->next;
        if (progress->running_tail == work)
            progress->running_tail = last;
        /* a peer that failed has told us before it joined this collective: hear it before the wait does */
        poll_notices(progress);
        end(progress, work);
        ended = true;
    }
    return ended;
}

/* Has the device passed the watched event? Failures count as passed: a task must not wait for ever. */
static bool is_passed(starlin__progress_t *progress, const starlin__work_t *work)
{
    const starlin__comm_ops_t *comm_ops = progress->setup.comm->ops;
    starlin__device_t *device = progress->setup.device;
    bool passed = false;
    starlin_status_t status;

    if (progress->broken)
        return true;
    status = device->ops->event_query(device, work->request.done, &passed);
    if (status == STARLIN_SUCCESS && !passed && comm_ops->check != NULL)
        status = comm_ops->check(progress->setup.comm);
    if (status == STARLIN_SUCCESS && !passed &&
        starlin__now_us() > work->ready_us + 1e3 * progress->setup.timeout_ms)
        status = starlin__error(STARLIN_ERR_TIMEOUT, "the device did not finish a chunk within %u ms",
                                progress->setup.timeout_ms);
    if (status != STARLIN_SUCCESS)
        break_down(progress, work->sequence, status, starlin_last_error());
    return passed || progress->broken;
}

static bool test_watches(starlin__progress_t *progress)
{
    starlin__work_t *list, *work;
    bool ended = false;

    pthread_mutex_lock(&progress->lock);
    list = progress->watches;
    progress->watches = NULL;
    pthread_mutex_unlock(&progress->lock);
    while ((work = list) != NULL) {
        list = work->next;
        if (is_passed(progress, work)) {
            end(progress, work);
            ended = true;
            continue;
        }
        pthread_mutex_lock(&progress->lock);
        work->next = progress->watches;
        progress->watches = work;
        pthread_mutex_unlock(&progress->lock);
    }
    return ended;
}

bool starlin__progress_round(starlin__progress_t *progress)
{
    bool ended;

    start_ready(progress);
    ended = test_running(progress);
    ended |= test_watches(progress);
    if (!ended)
        poll_notices(progress);
    return ended;
}

bool starlin__progress_start_now(starlin__progress_t *progress, starlin__work_t *work)
{
    bool is_next;

    pthread_mutex_lock(&progress->round);
    pthread_mutex_lock(&progress->lock);
    is_next = progress->head == NULL && work->ends_at_launch;
    if (is_next && progress->sleeps && progress->setup.bootstrap->nranks > 1)
        pthread_cond_signal(&progress->changed); /* from now on peers may have something to tell */
    pthread_mutex_unlock(&progress->lock);
    if (is_next) {
        work->failed_before_start = false;
        work->ready_us = starlin__now_us();
        atomic_fetch_add(&progress->active, 1);
        start(progress, work);
    }
    pthread_mutex_unlock(&progress->round);
    return is_next;
}

void starlin__progress_listen(starlin__progress_t *progress)
{
    if (progress->setup.bootstrap->nranks == 1 || pthread_mutex_trylock(&progress->round) != 0)
        return;
    poll_notices(progress);
    pthread_mutex_unlock(&progress->round);
}

void starlin__progress_settled(starlin__progress_t *progress)
{
    atomic_store(&progress->owes, false);
}

bool starlin__progress_advance(starlin__progress_t *progress)
{
    if (progress->setup.has_core || atomic_load_explicit(&progress->active, memory_order_relaxed) == 0)
        return false;
    if (pthread_mutex_trylock(&progress->round) == 0) {
        (void)starlin__progress_round(progress);
        pthread_mutex_unlock(&progress->round);
    }
    return true;
}

void starlin__progress_submit(starlin__progress_t *progress, starlin__work_t *work)
{
    work->state = WAITING;
    work->failed_before_start = false;
    work->next = NULL;
    atomic_fetch_add(&progress->active, 1);
    if (work->is_watch)
        return;
    pthread_mutex_lock(&progress->lock);
    if (progress->tail != NULL)
        progress->tail->next = work;
    else
        progress->head = work;
    progress->tail = work;
    /* awake by the time that the data is ready */
    if (progress->sleeps)
        pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
}

void starlin__progress_ready(starlin__progress_t *progress, starlin__work_t *work,
                             const starlin__notice_t *failure)
{
    bool rounds;

    work->ready_us = starlin__now_us();
    pthread_mutex_lock(&progress->lock);
    if (failure != NULL) {
        work->failed_before_start = true;
        if (progress->failure.status == STARLIN_SUCCESS ||
            starlin__notice_precedes(failure, &progress->failure))
            progress->failure = *failure;
    }
    work->state = READY;
    if (work->is_watch) {
        work->next = progress->watches;
        progress->watches = work;
    }
    /* who does not hold the round may not touch the engine any more once it has let go of the lock: the work
     * could end, and with it the context. A round that is held elsewhere, perhaps by this very thread further
     * up, may have looked at this work already. */
    rounds = !progress->setup.has_core && pthread_mutex_trylock(&progress->round) == 0;
    if (progress->setup.has_core ? work->is_watch || progress->head == work : !rounds)
        pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    if (rounds) {
        (void)starlin__progress_round(progress);
        pthread_mutex_unlock(&progress->round);
    }
}
