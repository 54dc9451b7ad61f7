/* SPDX-License-Identifier: BSD-3-Clause */
/* Records and insertion: gemm -> allreduce (-> cast) for every chunk. */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>

#include "row_linear_insert.h"

starlin__gemm_t starlin__row_linear_gemm(const starlin__row_linear_t *linear, size_t i)
{
    const starlin_matrix_t *x = linear->x, *w = linear->w, *sum = linear->sum;

    return (starlin__gemm_t){.m = x->chunk_rows[i],
                             .n = w->rows,
                             .k = x->cols,
                             .ldx = x->ld,
                             .ldw = w->ld,
                             .ldy = sum->ld,
                             .dtype = x->dtype,
                             .out_dtype = sum->dtype};
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
    size_t count = linear->y->nchunks;

    for (size_t i = 0; i < count; i++) {
        starlin__chunk_op_t *op = starlin__chunk_op_acquire(context);
        if (op == NULL) {
            starlin__row_linear_release(first);
            return starlin__error(STARLIN_ERR_NO_MEMORY, "row_linear of %zu chunks", count);
        }
        op->next = first;
        first = op;
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

/* Nothing that runs or waits could come before this chunk, so it needs neither a dependency nor a decision of
 * the policy: its gemm is launched here. A worker would have to wake up first, which costs a step on a
 * device tens of microseconds. */
static bool is_first(const starlin_context_t *context, const starlin__chunk_op_t *op)
{
    return op->y->events != NULL && !op->synchronous && atomic_load(&context->inflight) == 0;
}

static void insert_chunk(starlin_context_t *context, starlin__chunk_op_t *op)
{
    bool stages = context->device != NULL && context->comm->space == STARLIN__HOST;
    bool casts = op->sum != op->y;
    bool exposes = op->x->exposed || op->w->exposed || op->y->exposed;
    bool retires = op->y->events != NULL && !op->synchronous && exposes;
    unsigned nsteps = 2u + stages + casts + retires;
    bool launches_gemm = !exposes && is_first(context, op);
    bool launches_all = launches_gemm && op->y->nchunks == 1;

    atomic_store(&op->pending, nsteps);
    op->priority = gemm_priority(context, op->chunk);
    pthread_mutex_lock(&context->lock);
    op->x->inflight++;
    op->w->inflight++;
    op->y->inflight++;
    context->inflight++;
    context->ntasks += nsteps - launches_gemm - launches_all;
    pthread_mutex_unlock(&context->lock);

    if (launches_gemm)
        starlin__gemm_launch(op);
    else
        starlin__gemm_insert(op);
    context->settled = false;
    if (stages)
        starlin__stage_insert(op);
    if (!launches_all || !starlin__allreduce_launch(op))
        starlin__allreduce_insert(op);
    if (casts)
        starlin__cast_insert(op);
    if (retires)
        starlin__retire_insert(op);
}

/* Data that StarPU moves between host and device must be finished when a body returns. */
static bool is_synchronous(const starlin_context_t *context, const starlin__row_linear_t *linear)
{
    return context->device != NULL && (context->comm->space == STARLIN__HOST || linear->x->events == NULL ||
                                       linear->w->events == NULL || linear->y->events == NULL);
}

void starlin__row_linear_insert(starlin_context_t *context, const starlin__row_linear_t *linear,
                                starlin__chunk_op_t *records)
{
    bool synchronous = is_synchronous(context, linear);

    for (size_t i = 0; i < linear->y->nchunks; i++) {
        starlin__chunk_op_t *op = records;
        records = op->next;
        op->sequence = context->sequence;
        op->chunk = (unsigned)i;
        op->x = linear->x;
        op->w = linear->w;
        op->y = linear->y;
        op->sum = linear->sum;
        op->sum_handle = linear->sum->handles[i];
        op->gemm = starlin__row_linear_gemm(linear, i);
        op->synchronous = synchronous;
        insert_chunk(context, op);
    }
}
