/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress engine: one thread (or who lends it a hand) that starts collectives in submission order, tests
 * them, and lets their tasks end. It occupies no worker, so a collective never blocks a gemm. */
#ifndef STARLIN_PROGRESS_H
#define STARLIN_PROGRESS_H

#include "comm/comm.h"

typedef struct starlin__progress starlin__progress_t;
typedef struct starlin__work starlin__work_t;

/* One collective, or one device event that a task waits for. Lives in the operator's record. */
struct starlin__work {
    starlin__collective_t request; /* the buffers are set at the latest in on_start */
    uint64_t sequence;             /* of its operator */
    bool is_watch;                 /* no collective: ends when request.done has passed, in no order */
    bool ends_at_launch;           /* device: on_end comes when the collective is launched */
    void (*on_start)(starlin__work_t *work);    /* may be NULL; just before the start, on its thread */
    void (*on_launched)(starlin__work_t *work); /* may be NULL; just behind it, on the same thread */
    void (*on_end)(starlin__work_t *work);      /* may free or reuse the work; called without locks */
    void *owner;
    double ready_us, start_us, end_us;
    /* private to progress.c */
    starlin__work_t *next;
    bool is_ready;
};

typedef struct starlin__progress_setup {
    starlin__comm_t *comm;
    starlin__bootstrap_t *bootstrap;
    starlin__device_t *device; /* may be NULL */
    unsigned timeout_ms;
    bool has_core;             /* may spin: the thread has a core of its own */
    double pause_us;           /* between looks where it has none */
    void (*attach)(void *arg); /* called once by the thread when it begins (binding) */
    void (*failed)(void *arg, const starlin__notice_t *notice); /* a failure, local or a peer's */
    void *arg;
} starlin__progress_setup_t;

starlin_status_t starlin__progress_create(const starlin__progress_setup_t *setup,
                                          starlin__progress_t **progress_p);
void starlin__progress_destroy(starlin__progress_t *progress); /* joins the thread; NULL does nothing */

/* Appends the work; collectives start in the order of these calls. Called when its task is submitted. */
void starlin__progress_submit(starlin__progress_t *progress, starlin__work_t *work);
/* Its data is ready (its task's dependencies are satisfied). */
void starlin__progress_ready(starlin__progress_t *progress, starlin__work_t *work);
/* A task of this rank failed. The first failure by sequence counts: the peers are told soon, and have heard
 * it before this rank takes part in a collective of that sequence or a later one. Any thread, also in
 * callbacks. */
void starlin__progress_fail(starlin__progress_t *progress, const starlin__notice_t *notice);

/* Starts the work at once, on the caller's thread, if it ends at launch and no other work has been submitted
 * that is not started. False, and nothing is done, otherwise. */
bool starlin__progress_start_now(starlin__progress_t *progress, starlin__work_t *work);

/* Hears of peers' failures. For who waits for a device: after works that ended at launch the engine's thread
 * looks only now and then. Cheap with one rank. */
void starlin__progress_listen(starlin__progress_t *progress);
/* The device has finished all that was launched: no peer's failure can follow from it. */
void starlin__progress_settled(starlin__progress_t *progress);

/* Goes through a round on the caller's thread (an idle worker's), where the engine's thread has no core of
 * its own. Cheap when there is nothing to do. False: nothing is in flight. */
bool starlin__progress_advance(starlin__progress_t *progress);

#endif
