/* SPDX-License-Identifier: BSD-3-Clause */
/* Records and insertion: gemm -> allreduce (-> cast) for every chunk, or once for all of them. */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>

#include "operators/row_linear_insert.h"

/* Where a device computes, its own memory is one piece, and what StarPU moves there comes chunk by chunk. */
static bool is_one_piece(const starlin_matrix_t *matrix)
{
    bool is_moved = matrix->context->device != NULL && matrix->events == NULL;
    return matrix->cols == 0 || (matrix->data != NULL && !is_moved);
}

bool starlin__row_linear_joins(const starlin__row_linear_t *linear)
{
    const starlin_matrix_t *y = linear->y;
    const starlin_context_t *context = y->context;
    bool is_staged = context->device != NULL && context->comm->space == STARLIN__HOST;

    return !is_staged && y->rows <= INT_MAX / y->cols && is_one_piece(linear->x) && is_one_piece(y);
}

size_t starlin__row_linear_npieces(const starlin__row_linear_t *linear)
{
    return linear->whole ? 1 : linear->y->nchunks;
}

starlin__gemm_t starlin__row_linear_gemm(const starlin__row_linear_t *linear, size_t i)
{
    const starlin_matrix_t *x = linear->x, *w = linear->w, *sum = linear->sum;

    return (starlin__gemm_t){.m = linear->whole ? x->rows : x->chunk_rows[i],
                             .n = w->rows,
                             .k = x->cols,
                             .ldx = x->ld,
                             .ldw = w->ld,
                             .ldy = sum->ld,
                             .dtype = x->dtype,
                             .out_dtype = sum->dtype};
}

/* Data that StarPU moves between host and device must be finished when a body returns. */
static bool is_synchronous(const starlin_context_t *context, const starlin__row_linear_t *linear)
{
    return context->device != NULL && (context->comm->space == STARLIN__HOST || linear->x->events == NULL ||
                                       linear->w->events == NULL || linear->y->events == NULL);
}

/* Bit set of the tasks of each piece. */
static unsigned tasks_of(const starlin_context_t *context, const starlin__row_linear_t *linear)
{
    const starlin_matrix_t *x = linear->x, *w = linear->w, *y = linear->y;
    unsigned tasks = 1u << STARLIN__TASK_GEMM | 1u << STARLIN__TASK_ALLREDUCE;

    if (context->device != NULL && context->comm->space == STARLIN__HOST)
        tasks |= 1u << STARLIN__TASK_STAGE;
    if (linear->sum != y)
        tasks |= 1u << STARLIN__TASK_CAST;
    if (y->events != NULL && !is_synchronous(context, linear) && (x->exposed || w->exposed || y->exposed))
        tasks |= 1u << STARLIN__TASK_RETIRE;
    return tasks;
}

void starlin__row_linear_release(starlin__chunk_op_t *records)
{
    while (records != NULL) {
        starlin__chunk_op_t *op = records;
        records = records->next;
        starlin__chunk_op_release(op);
    }
}

starlin_status_t starlin__row_linear_acquire(starlin_context_t *context, const starlin__row_linear_t *linear,
                                             starlin__chunk_op_t **records_p)
{
    starlin__chunk_op_t *first = NULL;
    size_t npieces = starlin__row_linear_npieces(linear);
    unsigned tasks = tasks_of(context, linear);
    starlin_status_t status = STARLIN_SUCCESS;

    for (size_t i = 0; i < npieces && status == STARLIN_SUCCESS; i++) {
        starlin__chunk_op_t *op = starlin__chunk_op_acquire(context);
        if (op == NULL) {
            status = starlin__error(STARLIN_ERR_NO_MEMORY, "row_linear of %zu pieces", npieces);
            break;
        }
        op->nchunks = linear->whole ? (unsigned)linear->y->nchunks : 1;
        op->next = first;
        first = op;
        status = starlin__buffers_reserve(op, tasks);
    }
    if (status != STARLIN_SUCCESS) {
        starlin__row_linear_release(first);
        return status;
    }
    *records_p = first;
    return STARLIN_SUCCESS;
}

/* Earlier operators first, then earlier chunks: the order in which the link can be kept busy. Policies
 * with few levels get the order of the chunks. */
static int gemm_priority(const starlin_context_t *context, unsigned chunk)
{
    int64_t lowest = starpu_sched_get_min_priority(), highest = starpu_sched_get_max_priority();
    int64_t place =
        highest - lowest > INT_MAX ? (int64_t)(context->ntasks % INT_MAX) + 1 : (int64_t)chunk + 1;
    return (int)(highest - (place < highest - lowest ? place : highest - lowest));
}

/* Nothing that runs or waits could come before this piece, so it needs neither a dependency nor a decision of
 * the policy: its gemm is launched here. A worker would have to wake up first, which costs a step on a
 * device tens of microseconds. */
static bool is_first(const starlin_context_t *context, const starlin__chunk_op_t *op)
{
    bool exposes = op->x->exposed || op->w->exposed || op->y->exposed;
    return op->y->events != NULL && !op->synchronous && !exposes && atomic_load(&context->inflight) == 0;
}

static void count_tasks(starlin_context_t *context, unsigned tasks)
{
    pthread_mutex_lock(&context->lock);
    for (int i = 0; i < STARLIN__NTASKS; i++)
        context->ntasks += tasks >> i & 1;
    pthread_mutex_unlock(&context->lock);
}

static void insert_piece(starlin_context_t *context, starlin__chunk_op_t *op, unsigned tasks)
{
    static void (*const insert[STARLIN__NTASKS])(starlin__chunk_op_t *) = {
        [STARLIN__TASK_GEMM] = starlin__gemm_insert,
        [STARLIN__TASK_STAGE] = starlin__stage_insert,
        [STARLIN__TASK_ALLREDUCE] = starlin__allreduce_insert,
        [STARLIN__TASK_CAST] = starlin__cast_insert,
        [STARLIN__TASK_RETIRE] = starlin__retire_insert};
    bool launches_gemm = is_first(context, op);
    bool launches_all = launches_gemm && op->nchunks == op->y->nchunks;
    unsigned nsteps = 0;

    for (int i = 0; i < STARLIN__NTASKS; i++)
        nsteps += tasks >> i & 1;
    atomic_store(&op->pending, nsteps);
    op->priority = gemm_priority(context, op->chunk);
    pthread_mutex_lock(&context->lock);
    op->x->inflight++;
    op->w->inflight++;
    op->y->inflight++;
    context->inflight++;
    pthread_mutex_unlock(&context->lock);
    /* with its last step the record may be gone */
    if (launches_gemm) {
        starlin__gemm_launch(op);
        tasks &= ~(1u << STARLIN__TASK_GEMM);
    }
    context->settled = false;
    if (launches_all && starlin__allreduce_launch(op))
        tasks &= ~(1u << STARLIN__TASK_ALLREDUCE);
    count_tasks(context, tasks);
    for (int i = 0; i < STARLIN__NTASKS; i++) {
        if (tasks >> i & 1)
            insert[i](op);
    }
}

void starlin__row_linear_insert(starlin_context_t *context, const starlin__row_linear_t *linear,
                                starlin__chunk_op_t *records)
{
    bool synchronous = is_synchronous(context, linear);
    unsigned tasks = tasks_of(context, linear);

    for (size_t i = 0; records != NULL; i++) {
        starlin__chunk_op_t *op = records;
        records = op->next;
        op->sequence = context->sequence;
        op->chunk = (unsigned)i;
        op->x = linear->x;
        op->w = linear->w;
        op->y = linear->y;
        op->sum = linear->sum;
        op->gemm = starlin__row_linear_gemm(linear, i);
        op->synchronous = synchronous;
        insert_piece(context, op, tasks);
    }
}
