/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of one chunk of one call: its stages as tasks. What graph and codelets share.
 *
 * On a device, tasks of the library end when their work is launched; events on the two streams carry the real
 * order, so that no edge waits for the host. Where the application could see the data, a retire task holds it
 * back until the device has finished. */
#ifndef STARLIN_RECORD_H
#define STARLIN_RECORD_H

#include "graph/stage.h"

typedef struct starlin__record starlin__record_t;

/* A stage that has become a task; the argument of its bodies. */
typedef struct starlin__task {
    starlin__record_t *record;
    starlin__stage_t stage;
    unsigned char buffer[STARLIN__MOST_ACCESSES]; /* of each access, in the order of the task's handles */
    starlin__work_t work;                         /* of a collective; of the retire task a watch */
    struct starpu_task *task;                     /* NULL: launched without one */
    starlin__launch_t *mark; /* device, recording: of a collective while it is launched */
} starlin__task_t;

/* Reused, never freed before its context. */
struct starlin__record {
    starlin__record_t *next; /* in the free list, or the next chunk's */
    starlin_context_t *context;
    uint64_t sequence; /* of the operator */
    const char *op;    /* its name */
    unsigned chunk;
    unsigned ntasks;
    starlin__task_t tasks[STARLIN__MOST_STAGES];
    starlin__task_t retire;
    unsigned nmatrices;
    starlin_matrix_t *matrices[STARLIN__MOST_OPERANDS + STARLIN__MOST_SCRATCH];
    bool synchronous; /* device: bodies wait for their kernels (data that StarPU moves) */
    bool gives_way;   /* device: the next chunk's gemm is long, so this one's collective goes first */
    int priority;
    atomic_uint pending; /* tasks that have not ended */
};

/* One per kind of stage, in codelets/. */
typedef struct starlin__codelets {
    /* Submits one task; a task that StarPU refuses is a failure of the operator. */
    void (*insert[STARLIN__NSTAGE_KINDS])(starlin__task_t *task);
    /* The same without a task, on the caller's thread, on a device where nothing is in flight before this
     * chunk and the application has no handle of its matrices: waking a worker up costs more than a launch.
     * False: the task has to be inserted. */
    bool (*launch[STARLIN__NSTAGE_KINDS])(starlin__task_t *task);
    void (*insert_retire)(starlin__record_t *record);
    void (*attach_workers)(void); /* once, when the workers run */
} starlin__codelets_t;
extern const starlin__codelets_t starlin__codelets;

/* A record from the context's pool, counted as in flight; NULL when out of memory. */
starlin__record_t *starlin__record_acquire(starlin_context_t *context);
/* Gives back a list of records that no task was inserted for. */
void starlin__records_release(starlin__record_t *records);
/* At the context's end. */
void starlin__records_free(starlin_context_t *context);
/* Callback of every task: the last one gives the record back. */
void starlin__record_ended(void *record);

/* A stage of this record failed: stored in the context, and told to the peers. */
void starlin__record_fail(starlin__record_t *record, starlin_status_t status, const char *text);
/* Later tasks of a failed context skip their work. */
bool starlin__record_skips(const starlin__record_t *record);

/* The span of a stage that began at start_us: identity and sizes, not the end. */
starlin__span_t starlin__task_span(const starlin__task_t *task, double start_us);
/* On the worker of a body that began at start_us and has done its work: one span of the timeline. */
void starlin__task_ran(const starlin__task_t *task, double start_us);
/* Device: marks a launch where spans are recorded. `after` may be NULL. */
starlin__launch_t *starlin__task_mark(const starlin__task_t *task, starlin__event_t *after);

/* A new task with the stage's handles in it. */
struct starpu_task *starlin__task_create(starlin__task_t *task, struct starpu_codelet *codelet);
/* Submits; on refusal records the failure and ends the task. */
void starlin__task_submit(struct starpu_task *task, starlin__record_t *record);

/* Where the buffers of a stage's accesses lie. */
typedef struct starlin__places {
    void *base[STARLIN__MOST_ACCESSES];
    int64_t ld[STARLIN__MOST_ACCESSES];
} starlin__places_t;
/* From a codelet's buffers; NULL: in the matrices' own memory. */
starlin__places_t starlin__task_places(const starlin__task_t *task, void *buffers[]);
/* In how many runs the stage's chunk has to be computed, and the views of one of them. */
unsigned starlin__stage_nruns(const starlin__stage_t *stage);
void starlin__stage_views(const starlin__stage_t *stage, size_t chunk, unsigned run,
                          const starlin__places_t *places, starlin__view_t views[STARLIN__MOST_ACCESSES]);
/* The gemm of one run. */
starlin__gemm_t starlin__stage_gemm_run(const starlin__stage_t *stage, unsigned run,
                                        const starlin__view_t views[STARLIN__MOST_ACCESSES]);

/* Device: the stage's work waits on the compute stream for the collectives of its matrices; behind it, events
 * tell the collectives. Waits for the device where the record is synchronous. */
starlin_status_t starlin__task_order_before(const starlin__task_t *task);
starlin_status_t starlin__task_order_after(const starlin__task_t *task);

#endif
