/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress engine: one thread, and who lends it a hand. Invariants:
 *   - works are started in the order of their submission, whatever order they become ready in;
 *   - a rank on which a task failed has told its peers, and each has heard it, before the rank takes part in
 *     any collective of that sequence or a later one, and it takes part all the same. The notice goes out as
 *     soon as the engine looks, whether or not a collective comes;
 *   - a collective that cannot start, fails or takes too long breaks the communicator: every later work ends
 *     at once, so that no wait hangs. The time limit of a started work begins anew when another one ends: it
 *     does not cover the backlog;
 *   - callbacks are called without the lock, since ending a task may make the next work ready.
 * Rounds are gone through by the engine's thread where it has a core of its own. Elsewhere waking it up on a
 * busy core could take as long as a gemm: workers go through a round when data becomes ready and while they
 * are idle, and the thread only looks after what they leave. */
#define _POSIX_C_SOURCE 200809L
#include "progress/progress.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* How often an idle engine with collectives to come looks for a peer's failure. */
static const double notice_pause_us = 1000.0;
/* And one without: the last stage of a peer may fail. */
static const double idle_pause_us = 20000.0;

typedef struct list {
    starlin__work_t *head, *tail;
} list_t;

struct starlin__progress {
    starlin__progress_setup_t setup;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    list_t submitted;          /* collectives, not started */
    list_t watches;            /* ready, not looked at yet */
    bool sleeps;               /* the thread, until it is called */
    bool untold;               /* `failure` has not been sent to the peers */
    starlin__notice_t failure; /* first failure of this rank, by sequence */
    /* under `round`: held by the thread that goes through a round */
    pthread_mutex_t round;
    list_t running;    /* started collectives, and watches */
    unsigned nwatches; /* of those */
    double ended_us;   /* when one of those ended last */
    bool broken;       /* nothing more is started */
    bool heard;        /* all peers have the failure that was sent last */
    atomic_bool stop;
    atomic_uint active; /* works submitted and not ended: nothing to do for anybody at 0 */
    atomic_bool owes;   /* collectives have ended at launch: a peer that fails before one waits for our ear */
};

static void append(list_t *list, starlin__work_t *work)
{
    work->next = NULL;
    if (list->tail != NULL)
        list->tail->next = work;
    else
        list->head = work;
    list->tail = work;
}

static starlin__work_t *take_first(list_t *list)
{
    starlin__work_t *work = list->head;

    list->head = work->next;
    if (list->head == NULL)
        list->tail = NULL;
    return work;
}

/* --- failures */

static void give_up(starlin__progress_t *progress)
{
    if (!progress->broken && progress->setup.comm->ops->abort != NULL)
        progress->setup.comm->ops->abort(progress->setup.comm);
    progress->broken = true;
}

static void break_down(starlin__progress_t *progress, uint64_t sequence, starlin_status_t status,
                       const char *text)
{
    starlin__notice_t notice = {
        .sequence = sequence, .rank = progress->setup.bootstrap->rank, .status = status};

    snprintf(notice.text, sizeof notice.text, "%s", text);
    progress->setup.failed(progress->setup.arg, &notice);
    give_up(progress);
}

/* A peer that lost its communicator joins no further collective: waiting for it would be in vain. */
static void received(void *arg, const starlin__notice_t *notice)
{
    starlin__progress_t *progress = arg;

    progress->setup.failed(progress->setup.arg, notice);
    if (notice->status == STARLIN_ERR_COMM || notice->status == STARLIN_ERR_TIMEOUT)
        give_up(progress);
}

static void poll_notices(starlin__progress_t *progress)
{
    const starlin__bootstrap_ops_t *ops = progress->setup.bootstrap->ops;
    if (ops->poll != NULL && ops->poll(progress->setup.bootstrap, received, progress) != STARLIN_SUCCESS)
        break_down(progress, 0, STARLIN_ERR_COMM, starlin_last_error());
}

/* Sends the notice; with a time limit above 0 it also waits until every peer has heard it. */
static void tell_peers(starlin__progress_t *progress, const starlin__notice_t *notice, unsigned timeout_ms)
{
    const starlin__bootstrap_ops_t *ops = progress->setup.bootstrap->ops;
    starlin_status_t status = STARLIN_SUCCESS;

    if (ops->notify != NULL)
        status = ops->notify(progress->setup.bootstrap, notice, timeout_ms, received, progress);
    progress->heard = timeout_ms > 0;
    if (status != STARLIN_SUCCESS)
        break_down(progress, notice->sequence, status, starlin_last_error());
}

/* Tells the peers of this rank's failure if they were not told, and waits until they have heard it if it is
 * not of a later sequence than the collective that is about to start (NULL: none is). */
static void tell_failure(starlin__progress_t *progress, const starlin__work_t *collective)
{
    starlin__notice_t notice;
    bool untold, waits;

    pthread_mutex_lock(&progress->lock);
    notice = progress->failure;
    untold = progress->untold;
    progress->untold = false;
    pthread_mutex_unlock(&progress->lock);
    if (notice.status == STARLIN_SUCCESS || progress->broken)
        return;
    waits = collective != NULL && notice.sequence <= collective->sequence;
    if (untold || (waits && !progress->heard))
        tell_peers(progress, &notice, waits ? progress->setup.timeout_ms : 0);
}

void starlin__progress_fail(starlin__progress_t *progress, const starlin__notice_t *notice)
{
    pthread_mutex_lock(&progress->lock);
    if (progress->failure.status == STARLIN_SUCCESS || starlin__notice_precedes(notice, &progress->failure)) {
        progress->failure = *notice;
        progress->untold = true;
        pthread_cond_signal(&progress->changed);
    }
    pthread_mutex_unlock(&progress->lock);
}

/* --- a round: starts what can start, tests what runs */

static void end(starlin__progress_t *progress, starlin__work_t *work)
{
    work->end_us = starlin__now_us();
    /* first: the callback may give the work to its next user */
    atomic_fetch_sub(&progress->active, 1);
    work->on_end(work);
}

static void start_failed(starlin__progress_t *progress, uint64_t sequence, starlin_status_t status)
{
    starlin__notice_t notice = {
        .sequence = sequence, .rank = progress->setup.bootstrap->rank, .status = STARLIN_ERR_COMM};

    snprintf(notice.text, sizeof notice.text, "%s", starlin_last_error());
    tell_peers(progress, &notice, progress->setup.timeout_ms);
    break_down(progress, sequence, status, notice.text);
}

static void start(starlin__progress_t *progress, starlin__work_t *work)
{
    starlin_status_t status;

    tell_failure(progress, work);
    work->start_us = starlin__now_us();
    if (!progress->broken) {
        if (work->on_start != NULL)
            work->on_start(work);
        status = progress->setup.comm->ops->start(progress->setup.comm, &work->request);
        if (work->on_launched != NULL)
            work->on_launched(work);
        if (status != STARLIN_SUCCESS)
            start_failed(progress, work->sequence, status);
    }
    if (!progress->broken && !work->ends_at_launch) {
        append(&progress->running, work);
        return;
    }
    if (progress->setup.bootstrap->nranks > 1)
        atomic_store(&progress->owes, true);
    end(progress, work);
}

/* The collectives that are ready at the head of the queue; watches go among what runs. */
static void start_ready(starlin__progress_t *progress)
{
    for (;;) {
        starlin__work_t *work = NULL;

        pthread_mutex_lock(&progress->lock);
        for (; progress->watches.head != NULL; progress->nwatches++)
            append(&progress->running, take_first(&progress->watches));
        if (progress->submitted.head != NULL && progress->submitted.head->is_ready)
            work = take_first(&progress->submitted);
        pthread_mutex_unlock(&progress->lock);
        if (work == NULL)
            return;
        start(progress, work);
    }
}

/* When it is too late for a started work: a time limit behind its start and whatever ended last. */
static double deadline_us(const starlin__progress_t *progress, const starlin__work_t *work)
{
    double begin_us = work->start_us > progress->ended_us ? work->start_us : progress->ended_us;
    return begin_us + 1e3 * progress->setup.timeout_ms;
}

/* Has the communicator completed it, or the device passed the watched event? */
static starlin_status_t test(starlin__progress_t *progress, starlin__work_t *work, bool *done_p)
{
    starlin__comm_t *comm = progress->setup.comm;
    starlin__device_t *device = progress->setup.device;

    if (!work->is_watch)
        return comm->ops->test(comm, &work->request, done_p);
    STARLIN__FORWARD(device->ops->event_query(device, work->request.done, done_p));
    return *done_p || comm->ops->check == NULL ? STARLIN_SUCCESS : comm->ops->check(comm);
}

/* Failures count as over: no task waits for ever. */
static bool is_over(starlin__progress_t *progress, starlin__work_t *work)
{
    bool done = false;
    starlin_status_t status;

    if (progress->broken)
        return true;
    status = test(progress, work, &done);
    if (status == STARLIN_SUCCESS && !done && starlin__now_us() > deadline_us(progress, work))
        status = starlin__error(STARLIN_ERR_TIMEOUT, "%s within %u ms (STARLIN_TIMEOUT_MS sets the limit)",
                                work->is_watch ? "the device did not finish a chunk"
                                               : "a collective did not complete",
                                progress->setup.timeout_ms);
    if (status != STARLIN_SUCCESS)
        break_down(progress, work->sequence, status, starlin_last_error());
    return done || progress->broken;
}

static bool test_running(starlin__progress_t *progress)
{
    starlin__work_t **link = &progress->running.head, *work, *last = NULL;
    bool ended = false;

    while ((work = *link) != NULL) {
        if (!is_over(progress, work)) {
            last = work;
            link = &work->next;
            continue;
        }
        *link = work->next;
        if (progress->running.tail == work)
            progress->running.tail = last;
        progress->nwatches -= work->is_watch;
        progress->ended_us = starlin__now_us();
        /* a peer that failed has told us before it joined this collective: hear it before the wait does */
        poll_notices(progress);
        end(progress, work);
        ended = true;
    }
    return ended;
}

/* With `round` held. True if a work ended. */
static bool go_round(starlin__progress_t *progress)
{
    bool ended;

    start_ready(progress);
    tell_failure(progress, NULL);
    ended = test_running(progress);
    if (!ended)
        poll_notices(progress);
    return ended;
}

/* --- what works and their owners call */

bool starlin__progress_start_now(starlin__progress_t *progress, starlin__work_t *work)
{
    bool is_next;

    pthread_mutex_lock(&progress->round);
    pthread_mutex_lock(&progress->lock);
    is_next = progress->submitted.head == NULL && work->ends_at_launch;
    if (is_next && progress->sleeps && progress->setup.bootstrap->nranks > 1)
        pthread_cond_signal(&progress->changed); /* from now on peers may have something to tell */
    pthread_mutex_unlock(&progress->lock);
    if (is_next) {
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
        (void)go_round(progress);
        pthread_mutex_unlock(&progress->round);
    }
    return true;
}

void starlin__progress_submit(starlin__progress_t *progress, starlin__work_t *work)
{
    work->is_ready = false;
    atomic_fetch_add(&progress->active, 1);
    if (work->is_watch)
        return;
    pthread_mutex_lock(&progress->lock);
    append(&progress->submitted, work);
    /* awake by the time that the data is ready */
    if (progress->sleeps)
        pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
}

void starlin__progress_ready(starlin__progress_t *progress, starlin__work_t *work)
{
    bool rounds;

    work->ready_us = work->start_us = starlin__now_us();
    pthread_mutex_lock(&progress->lock);
    work->is_ready = true;
    if (work->is_watch)
        append(&progress->watches, work);
    /* who does not hold the round may not touch the engine any more once it has let go of the lock: the work
     * could end, and with it the context. A round that is held elsewhere, perhaps by this very thread further
     * up, may have looked at this work already. */
    rounds = !progress->setup.has_core && pthread_mutex_trylock(&progress->round) == 0;
    if (progress->setup.has_core ? work->is_watch || progress->submitted.head == work : !rounds)
        pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    if (rounds) {
        (void)go_round(progress);
        pthread_mutex_unlock(&progress->round);
    }
}

/* --- the thread, from its creation to its end */

/* When the next look is worth while; negative: only after a change. With both locks held. */
static double next_look_us(const starlin__progress_t *progress)
{
    const starlin__progress_setup_t *setup = &progress->setup;
    const starlin__work_t *running = progress->running.head;
    bool expects = progress->submitted.head != NULL;
    double now_us = starlin__now_us(), wake_us = 0.0, limit_us;

    if (running == NULL && !(setup->has_core && expects)) {
        if (setup->bootstrap->nranks == 1)
            return -1.0;
        if (!expects && !atomic_load(&progress->owes))
            return now_us + idle_pause_us;
        return now_us + (setup->has_core ? notice_pause_us : setup->pause_us);
    }
    /* a core of its own is there to be used: waking up would cost more than many collectives take */
    if (running == NULL || progress->nwatches > 0)
        return now_us;
    if (setup->comm->ops->wake_us != NULL)
        wake_us = setup->comm->ops->wake_us(setup->comm, &running->request);
    limit_us = deadline_us(progress, running);
    if (wake_us > now_us)
        return wake_us < limit_us ? wake_us : limit_us;
    return setup->has_core ? now_us : now_us + setup->pause_us;
}

/* Until there is something to do: a change, or the time of the next look. */
static void rest(starlin__progress_t *progress)
{
    double look_us;

    pthread_mutex_lock(&progress->round); /* for a look at what runs */
    pthread_mutex_lock(&progress->lock);
    look_us = next_look_us(progress);
    pthread_mutex_unlock(&progress->round);
    if (atomic_load(&progress->stop) || progress->untold || progress->watches.head != NULL ||
        (progress->submitted.head != NULL && progress->submitted.head->is_ready)) {
        /* there is something to do */
    } else if (look_us < 0.0) {
        progress->sleeps = true;
        pthread_cond_wait(&progress->changed, &progress->lock);
        progress->sleeps = false;
    } else if (look_us > starlin__now_us()) {
        struct timespec until = {.tv_sec = (time_t)(look_us / 1e6)};
        until.tv_nsec = (long)((look_us - 1e6 * (double)until.tv_sec) * 1e3);
        pthread_cond_timedwait(&progress->changed, &progress->lock, &until);
    } else {
        pthread_mutex_unlock(&progress->lock);
        sched_yield();
        return;
    }
    pthread_mutex_unlock(&progress->lock);
}

static void destroy(starlin__progress_t *progress)
{
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->round);
    pthread_mutex_destroy(&progress->lock);
    starlin__free(progress);
}

static void *progress_main(void *arg)
{
    starlin__progress_t *progress = arg;

    if (progress->setup.attach != NULL)
        progress->setup.attach(progress->setup.arg);
    while (!atomic_load(&progress->stop) || atomic_load(&progress->active) > 0) {
        bool ended;
        pthread_mutex_lock(&progress->round);
        ended = go_round(progress);
        pthread_mutex_unlock(&progress->round);
        if (!ended)
            rest(progress);
    }
    pthread_mutex_lock(&progress->round);
    tell_failure(progress, NULL);
    pthread_mutex_unlock(&progress->round);
    return NULL;
}

starlin_status_t starlin__progress_create(const starlin__progress_setup_t *setup,
                                          starlin__progress_t **progress_p)
{
    starlin__progress_t *progress = starlin__alloc(sizeof *progress);
    pthread_condattr_t attributes;
    int ret;

    if (progress == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "progress engine");
    progress->setup = *setup;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_mutex_init(&progress->round, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    ret = pthread_create(&progress->thread, NULL, progress_main, progress);
    if (ret != 0) {
        destroy(progress);
        return starlin__error(STARLIN_ERR_RUNTIME, "pthread_create returned %d", ret);
    }
    *progress_p = progress;
    return STARLIN_SUCCESS;
}

void starlin__progress_destroy(starlin__progress_t *progress)
{
    if (progress == NULL)
        return;
    pthread_mutex_lock(&progress->lock);
    atomic_store(&progress->stop, true);
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    /* a worker may still be on its way out of the round in which the last work ended */
    pthread_mutex_lock(&progress->round);
    pthread_mutex_unlock(&progress->round);
    destroy(progress);
}
