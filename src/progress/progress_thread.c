/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress engine's thread, from its creation to its end. */
#define _POSIX_C_SOURCE 200809L
#include "progress/progress_private.h"

#include <sched.h>
#include <time.h>

/* How often an idle engine with collectives to come looks for a peer's failure. */
static const double notice_pause_us = 1000.0;

/* When the next look is worth while; negative: only after a change. */
static double next_look_us(const starlin__progress_t *progress)
{
    const starlin__comm_ops_t *ops = progress->setup.comm->ops;
    double now_us = starlin__now_us(), wake_us, deadline_us;

    if (progress->watches != NULL)
        return now_us;
    /* a core of its own is there to be used: waking up would cost more than many collectives take */
    if (progress->setup.has_core && progress->head != NULL && progress->running == NULL)
        return now_us;
    if (progress->running != NULL) {
        wake_us =
            ops->wake_us != NULL ? ops->wake_us(progress->setup.comm, &progress->running->request) : 0.0;
        deadline_us = starlin__work_deadline_us(progress, progress->running);
        if (wake_us > now_us)
            return wake_us < deadline_us ? wake_us : deadline_us;
        return progress->setup.has_core ? now_us : now_us + progress->setup.pause_us;
    }
    if ((progress->head != NULL && progress->setup.bootstrap->nranks > 1) || atomic_load(&progress->owes))
        return now_us + (progress->setup.has_core ? notice_pause_us : progress->setup.pause_us);
    return -1.0;
}

static void rest(starlin__progress_t *progress)
{
    double look_us;

    pthread_mutex_lock(&progress->round); /* for a look at what runs */
    pthread_mutex_lock(&progress->lock);
    look_us = next_look_us(progress);
    pthread_mutex_unlock(&progress->round);
    if (progress->stop || (progress->head != NULL && progress->head->state == READY)) {
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

static bool is_finished(starlin__progress_t *progress)
{
    bool finished;
    pthread_mutex_lock(&progress->lock);
    finished = progress->stop && atomic_load(&progress->active) == 0;
    pthread_mutex_unlock(&progress->lock);
    return finished;
}

static void *progress_main(void *arg)
{
    starlin__progress_t *progress = arg;

    if (progress->setup.attach != NULL)
        progress->setup.attach(progress->setup.arg);
    while (!is_finished(progress)) {
        bool ended;
        pthread_mutex_lock(&progress->round);
        ended = starlin__progress_round(progress);
        pthread_mutex_unlock(&progress->round);
        if (!ended)
            rest(progress);
    }
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
    atomic_init(&progress->active, 0);
    atomic_init(&progress->owes, false);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    ret = pthread_create(&progress->thread, NULL, progress_main, progress);
    if (ret != 0) {
        pthread_cond_destroy(&progress->changed);
        pthread_mutex_destroy(&progress->round);
        pthread_mutex_destroy(&progress->lock);
        starlin__free(progress);
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
    progress->stop = true;
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    /* a worker may still be on its way out of the round in which the last work ended */
    pthread_mutex_lock(&progress->round);
    pthread_mutex_unlock(&progress->round);
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->round);
    pthread_mutex_destroy(&progress->lock);
    starlin__free(progress);
}
