/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two halves of the progress engine share: rounds (progress.c) and the thread (progress_thread.c).
 */
#ifndef STARLIN_PROGRESS_PRIVATE_H
#define STARLIN_PROGRESS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "progress/progress.h"

enum { WAITING, READY, STARTED };

struct starlin__progress {
    starlin__progress_setup_t setup;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    starlin__work_t *head, *tail; /* submitted collectives, not started */
    starlin__work_t *watches;     /* ready watches */
    bool stop;
    bool sleeps;               /* the thread, until it is called */
    starlin__notice_t failure; /* first failure of this rank, by sequence */
    /* under `round`: held by the thread that goes through a round */
    pthread_mutex_t round;
    starlin__work_t *running, *running_tail; /* started, in order */
    bool broken;
    bool told;          /* peers know of a failure of this rank */
    atomic_uint active; /* works submitted and not ended: nothing to do for anybody at 0 */
    atomic_bool owes;   /* collectives have ended at launch: a peer that fails before one waits for our ear */
};

/* One round: starts what can start, tests what runs. With `round` held. True if a work ended. */
bool starlin__progress_round(starlin__progress_t *progress);

/* When a started work has taken too long. */
static inline double starlin__work_deadline_us(const starlin__progress_t *progress,
                                               const starlin__work_t *work)
{
    return work->start_us + 1e3 * progress->setup.timeout_ms;
}

#endif
