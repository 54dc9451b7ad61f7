/* SPDX-License-Identifier: BSD-3-Clause */
/* The records that an operator's tasks share: pool, failure, submission. In steady state records are only
 * taken from and given back to the pool. */
#define _POSIX_C_SOURCE 200809L
#include "graph/operator.h"

#include <stdio.h>

enum { SMALLEST_BLOCK = 64, MOST_RESERVED = 4096 };

/* Records are allocated by the block and freed with the context. */
typedef struct starlin__chunk_op_block {
    struct starlin__chunk_op_block *next;
    size_t count;
    starlin__chunk_op_t ops[];
} block_t;

static void give_back(starlin_context_t *context, starlin__chunk_op_t *op)
{
    op->next = context->free_ops;
    context->free_ops = op;
    context->nfree_ops++;
}

/* Doubles the pool. */
static void grow(starlin_context_t *context)
{
    size_t count = context->nops > SMALLEST_BLOCK ? context->nops : SMALLEST_BLOCK;
    block_t *block = starlin__alloc(sizeof *block + count * sizeof *block->ops);

    if (block == NULL)
        return;
    block->next = context->op_blocks;
    block->count = count;
    context->op_blocks = block;
    context->nops += count;
    for (size_t i = 0; i < count; i++)
        give_back(context, &block->ops[i]);
}

/* How many records there should be. How many are in flight varies with the timing of a step; what is
 * submitted between two waits does not, so that no step after the first ones has to allocate. */
static size_t reserve(const starlin_context_t *context)
{
    size_t count = context->window + context->window_before;
    return count < MOST_RESERVED ? count : MOST_RESERVED;
}

starlin__chunk_op_t *starlin__chunk_op_acquire(starlin_context_t *context)
{
    starlin__chunk_op_t *op;

    pthread_mutex_lock(&context->lock);
    context->window++;
    if (context->nfree_ops == 0 || reserve(context) > context->nops)
        grow(context);
    op = context->free_ops;
    if (op != NULL) {
        context->free_ops = op->next;
        context->nfree_ops--;
    }
    pthread_mutex_unlock(&context->lock);
    if (op == NULL)
        return NULL;
    op->context = context;
    op->failure.status = STARLIN_SUCCESS;
    atomic_init(&op->pending, 0);
    return op;
}

void starlin__chunk_op_release(starlin__chunk_op_t *op)
{
    starlin_context_t *context = op->context;

    pthread_mutex_lock(&context->lock);
    give_back(context, op);
    pthread_mutex_unlock(&context->lock);
}

void starlin__chunk_op_free_all(starlin_context_t *context)
{
    while (context->op_blocks != NULL) {
        block_t *block = context->op_blocks;
        context->op_blocks = block->next;
        for (size_t i = 0; i < block->count; i++)
            starlin__buffers_release(&block->ops[i]);
        starlin__free(block);
    }
}

int64_t starlin__chunk_op_piece_rows(const starlin__chunk_op_t *op)
{
    bool has_pieces = op->y->piece_rows > 0 && op->y->piece_rows < op->gemm.m;
    return has_pieces && op->nchunks == 1 ? op->y->piece_rows : op->gemm.m;
}

void starlin__chunk_op_ended(void *arg)
{
    starlin__chunk_op_t *op = arg;
    starlin_context_t *context = op->context;

    if (atomic_fetch_sub(&op->pending, 1) != 1)
        return;
    pthread_mutex_lock(&context->lock);
    op->x->inflight--;
    op->w->inflight--;
    op->y->inflight--;
    context->inflight--;
    give_back(context, op);
    /* waits are for whole matrices or the whole context: wake them only when one could be over */
    if (context->inflight == 0 || op->x->inflight == 0 || op->w->inflight == 0 || op->y->inflight == 0)
        pthread_cond_broadcast(&context->idle);
    pthread_mutex_unlock(&context->lock);
}

void starlin__chunk_op_fail(starlin__chunk_op_t *op, starlin_status_t status, const char *text)
{
    op->failure.sequence = op->sequence;
    op->failure.rank = op->context->bootstrap->rank;
    op->failure.chunk = op->chunk;
    op->failure.status = status;
    snprintf(op->failure.text, sizeof op->failure.text, "%s", text);
    starlin__context_fail(op->context, &op->failure);
}

void starlin__chunk_op_ran(const starlin__chunk_op_t *op, starlin__span_kind_t kind, double start_us)
{
    starlin__timeline_t *timeline = op->context->timeline;
    starlin__span_t span = {.kind = kind,
                            .lane = (unsigned)starpu_worker_get_id(),
                            .sequence = op->sequence,
                            .chunk = op->chunk,
                            .ready_us = start_us,
                            .launch_us = start_us,
                            .start_us = start_us,
                            .rows = op->gemm.m};

    if (!starlin__timeline_enabled(timeline))
        return;
    span.end_us = starlin__now_us();
    starlin__timeline_add(timeline, &span);
}

bool starlin__chunk_op_skips(const starlin__chunk_op_t *op)
{
    starlin_context_t *context = op->context;
    bool skips;

    pthread_mutex_lock(&context->lock);
    skips = context->failure.status != STARLIN_SUCCESS && context->failure.sequence <= op->sequence;
    pthread_mutex_unlock(&context->lock);
    return skips;
}

uint32_t starlin__compute_where(const starlin_context_t *context)
{
    return context->device != NULL ? STARPU_CUDA : STARPU_CPU;
}

void starlin__task_submit(struct starpu_task *task, starlin__chunk_op_t *op)
{
    int ret;

    task->callback_func = starlin__chunk_op_ended;
    task->callback_arg = op;
    ret = starpu_task_submit(task);
    if (ret != 0) {
        char text[96];
        snprintf(text, sizeof text, "starpu_task_submit of %s returned %d: no worker can run it",
                 task->cl->name, ret);
        starlin__chunk_op_fail(op, STARLIN_ERR_RUNTIME, text);
        task->destroy = 0;
        starpu_task_destroy(task);
        starlin__chunk_op_ended(op);
    }
}
