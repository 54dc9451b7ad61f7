/* SPDX-License-Identifier: BSD-3-Clause */
/* What operators and codelets share: the record of one chunk of one operator, and the insert functions.
 *
 * On a device, tasks of the library end when their work is launched; events on the two streams carry the
 * real order, so that no edge waits for the host. Where the application could see the data, a retire task
 * holds it back until the device has finished. */
#ifndef STARLIN_OPERATOR_H
#define STARLIN_OPERATOR_H

#include <stdatomic.h>

#include "graph/matrix.h"

/* The tasks of a record, in the order of their insertion. */
typedef enum starlin__task {
    STARLIN__TASK_GEMM,
    STARLIN__TASK_STAGE,
    STARLIN__TASK_ALLREDUCE,
    STARLIN__TASK_CAST,
    STARLIN__TASK_RETIRE,
    STARLIN__NTASKS
} starlin__task_t;

/* Arrays for the handles of a task that has more than fit into it. */
typedef struct starlin__buffers {
    size_t capacity;
    starpu_data_handle_t *handles;
    enum starpu_data_access_mode *modes;
} starlin__buffers_t;

/* One chunk of one operator, or all of them in one piece: the argument of all its tasks. Reused, never freed
 * before its context. */
typedef struct starlin__chunk_op {
    struct starlin__chunk_op *next; /* in the free list */
    starlin_context_t *context;
    uint64_t sequence;       /* of the operator */
    unsigned chunk, nchunks; /* the first that the tasks cover, and how many: one, or all of the operator's */
    starlin_matrix_t *x, *w, *y;
    starlin_matrix_t *sum; /* where the ranks' partial sums lie: y, or its partial matrix */
    starlin__gemm_t gemm;  /* shape, of all rows covered; pointers are filled in by the task */
    bool synchronous;      /* device: bodies wait for their kernels (data that StarPU moves) */
    int priority;          /* of the gemm */
    starlin__work_t collective;
    starlin__work_t retire;
    starlin__launch_t *mark; /* device, recording: of the collective while it is launched */
    struct starpu_task *collective_task, *retire_task;
    starlin__buffers_t buffers[STARLIN__NTASKS]; /* not a task's yet */
    starlin__notice_t failure;                   /* status 0: the gemm did not fail */
    atomic_uint pending;                         /* tasks that have not ended */
} starlin__chunk_op_t;

/* Rows of the gemms that the record's is launched as: the list's pieces, where it covers one chunk. */
int64_t starlin__chunk_op_piece_rows(const starlin__chunk_op_t *op);

/* Insert functions, one per codelet, in codelets/. Each submits one task; a task that StarPU refuses is a
 * failure of the operator. */
void starlin__gemm_insert(starlin__chunk_op_t *op);
void starlin__stage_insert(starlin__chunk_op_t *op);
void starlin__allreduce_insert(starlin__chunk_op_t *op);
void starlin__cast_insert(starlin__chunk_op_t *op);
void starlin__retire_insert(starlin__chunk_op_t *op);

/* The same without a task, on the caller's thread, on a device where nothing is in flight before this chunk
 * and the application has no handle of its matrices: waking a worker up costs more than a launch. False: the
 * collective has to be inserted. */
void starlin__gemm_launch(starlin__chunk_op_t *op);
bool starlin__allreduce_launch(starlin__chunk_op_t *op);

/* The last chunk that the record covers. */
static inline unsigned starlin__chunk_op_last(const starlin__chunk_op_t *op)
{
    return op->chunk + op->nchunks - 1;
}

/* Handles of the record's tasks. Room is made for all tasks of the bit set before the first one is created:
 * ERR_NO_MEMORY. */
starlin_status_t starlin__buffers_reserve(starlin__chunk_op_t *op, unsigned tasks);
void starlin__buffers_release(starlin__chunk_op_t *op); /* at the context's end: what no task has taken */
/* Gives the task its room, before any handle is added and before StarPU makes anything of the task. Its
 * codelet has a variable number of buffers. */
void starlin__buffers_open(starlin__chunk_op_t *op, starlin__task_t kind, struct starpu_task *task);
/* Appends the matrix's chunks that the record covers; the weight's only one. */
void starlin__buffers_add(const starlin__chunk_op_t *op, struct starpu_task *task,
                          const starlin_matrix_t *matrix, enum starpu_data_access_mode mode);
void starlin__buffers_add_weight(const starlin__chunk_op_t *op, struct starpu_task *task);

/* Once, when the workers run. */
void starlin__workers_attach(void);

/* A record from the context's pool, counted as in flight; NULL when out of memory. */
starlin__chunk_op_t *starlin__chunk_op_acquire(starlin_context_t *context);
/* Gives back a record that no task was inserted for. */
void starlin__chunk_op_release(starlin__chunk_op_t *op);
/* At the context's end. */
void starlin__chunk_op_free_all(starlin_context_t *context);
void starlin__row_linear_forget(starlin_context_t *context);
/* Callback of every task: the last one gives the record back. */
void starlin__chunk_op_ended(void *op);
/* A task of this operator failed: stored in the context, and in the record for the peers. */
void starlin__chunk_op_fail(starlin__chunk_op_t *op, starlin_status_t status, const char *text);
/* On the worker of a body that began at start_us and has done its work: one span of the timeline. */
void starlin__chunk_op_ran(const starlin__chunk_op_t *op, starlin__span_kind_t kind, double start_us);
/* Later tasks of a failed context skip their work. */
bool starlin__chunk_op_skips(const starlin__chunk_op_t *op);
/* Submits; on refusal records the failure, lets the collective go on and ends the task. */
void starlin__task_submit(struct starpu_task *task, starlin__chunk_op_t *op);
/* The codelet's `where` for tasks that compute. */
uint32_t starlin__compute_where(const starlin_context_t *context);

/* Compares named texts over the ranks: ERR_MISMATCH, with the same text on every rank, names the first
 * that differs. Collective; blocks. */
typedef struct starlin__field {
    char name[32];
    char value[224];
} starlin__field_t;
starlin_status_t starlin__agree(starlin_context_t *context, const starlin__field_t *fields, size_t nfields);
void starlin__field_set(starlin__field_t *field, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
