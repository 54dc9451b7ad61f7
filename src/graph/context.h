/* SPDX-License-Identifier: BSD-3-Clause */
/* What the layers from the graph up share: the opened layers below, and the operators in flight. Made and
 * destroyed by the context layer. */
#ifndef STARLIN_CONTEXT_H
#define STARLIN_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/config.h"
#include "comm/comm.h"
#include "compute/compute.h"
#include "machine/device.h"
#include "machine/topology.h"
#include "progress/progress.h"
#include "ranks/agreement.h"
#include "ranks/bootstrap.h"
#include "record/activity.h"
#include "record/timeline.h"

/* Instrumentation for tests: called on the worker before a gemm; returns false to make it fail. */
typedef bool (*starlin__gemm_hook_fn_t)(void *arg, int rank, uint64_t sequence, unsigned chunk);
extern starlin__gemm_hook_fn_t starlin__gemm_hook;
extern void *starlin__gemm_hook_arg;

struct starlin_context {
    starlin__config_t config;
    starlin__bootstrap_t *bootstrap;
    starlin__topology_t *topology;
    starlin__share_t share;
    starlin__binding_t *caller_binding; /* NULL when the caller was not rebound */
    starlin__device_t *device;          /* NULL: computes on the host */
    starlin__compute_t *compute;
    starlin__comm_t *comm;
    starlin__progress_t *progress;
    const struct starlin__codelets *codelets;
    int idle_hook; /* with StarPU, for workers without a task; negative: none */
    starlin__timeline_t *timeline;
    starlin__activity_t *activity;   /* device: where its spans come from; NULL until recording is on */
    bool owns_starpu;                /* else the application started it */
    bool starpu_started;             /* by this context */
    starlin__event_t *stream_end[2]; /* device: for host waits, by starlin__stream_t */
    bool settled;                    /* device: nothing was launched since it was last seen idle */
    unsigned memory_node;            /* StarPU's node of the matrices' memory */
    starlin_context_info_t info;
    char starpu_version[32];
    char host[256];

    struct starlin__group *group; /* the caller's thread: the open group, or NULL */

    pthread_mutex_t lock; /* everything below */
    pthread_cond_t idle;  /* a record's last task has ended */
    uint64_t sequence;    /* operators submitted */
    uint64_t ntasks;      /* tasks submitted, all kinds */
    atomic_uint inflight; /* records not ended; changed under the lock */
    unsigned nmatrices;
    starlin__notice_t failure;            /* of the smallest failed sequence; status 0: none */
    bool failed;                          /* a wait has returned the failure: no more operators */
    struct starlin__record *free_records; /* to reuse */
    struct starlin__record_block *record_blocks;
    size_t nrecords, nfree_records; /* in all, and free */
    size_t window, window_before;   /* taken since the last wait, and between that and the one before */
    uint64_t *agreed;               /* keys of calls that the ranks have compared, sorted */
    size_t nagreed, agreed_room;
    uint64_t history; /* hash of all operators so far */
};

/* Stores a failure unless one that precedes it is stored already. Thread-safe. */
void starlin__context_fail(starlin_context_t *context, const starlin__notice_t *notice);

/* The failure that a wait for operators up to `sequence` has to report, as status and last error. */
starlin_status_t starlin__context_failure(starlin_context_t *context, uint64_t sequence);

/* A wait is over: what is submitted from now on is counted anew. Under the lock. */
void starlin__context_waited(starlin_context_t *context);
/* Waits until no chunk of any operator is in flight: no collective runs then, and no worker computes. */
void starlin__context_drain(starlin_context_t *context);

/* Waits until the device has finished what was launched; no more than the time limit. */
starlin_status_t starlin__context_synchronize(starlin_context_t *context);

/* Moves what the device has recorded into the timeline, unless something is in flight. */
void starlin__context_collect(starlin_context_t *context);

#endif
