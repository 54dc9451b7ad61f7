/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: pool, failure, spans, and what bodies of all kinds need. In steady state records are only taken
 * from and given back to the pool. */
#define _POSIX_C_SOURCE 200809L
#include "graph/record.h"

#include <stdio.h>

enum { SMALLEST_BLOCK = 64, MOST_RESERVED = 4096 };

/* --- pool */

/* Records are allocated by the block and freed with the context. */
typedef struct starlin__record_block {
    struct starlin__record_block *next;
    size_t count;
    starlin__record_t records[];
} block_t;

static void give_back(starlin_context_t *context, starlin__record_t *record)
{
    record->next = context->free_records;
    context->free_records = record;
    context->nfree_records++;
}

/* Doubles the pool. */
static void grow(starlin_context_t *context)
{
    size_t count = context->nrecords > SMALLEST_BLOCK ? context->nrecords : SMALLEST_BLOCK;
    block_t *block = starlin__alloc(sizeof *block + count * sizeof *block->records);

    if (block == NULL)
        return;
    block->next = context->record_blocks;
    block->count = count;
    context->record_blocks = block;
    context->nrecords += count;
    for (size_t i = 0; i < count; i++)
        give_back(context, &block->records[i]);
}

/* How many records there should be. How many are in flight varies with the timing of a step; what is
 * submitted between two waits does not, so that no step after the first ones has to allocate. */
static size_t reserve(const starlin_context_t *context)
{
    size_t count = context->window + context->window_before;
    return count < MOST_RESERVED ? count : MOST_RESERVED;
}

starlin__record_t *starlin__record_acquire(starlin_context_t *context)
{
    starlin__record_t *record;

    pthread_mutex_lock(&context->lock);
    context->window++;
    if (context->nfree_records == 0 || reserve(context) > context->nrecords)
        grow(context);
    record = context->free_records;
    if (record != NULL) {
        context->free_records = record->next;
        context->nfree_records--;
    }
    pthread_mutex_unlock(&context->lock);
    if (record != NULL) {
        record->context = context;
        record->next = NULL;
    }
    return record;
}

void starlin__records_release(starlin__record_t *records)
{
    while (records != NULL) {
        starlin__record_t *record = records;
        starlin_context_t *context = record->context;
        records = record->next;
        pthread_mutex_lock(&context->lock);
        give_back(context, record);
        pthread_mutex_unlock(&context->lock);
    }
}

void starlin__records_free(starlin_context_t *context)
{
    while (context->record_blocks != NULL) {
        block_t *block = context->record_blocks;
        context->record_blocks = block->next;
        for (size_t i = 0; i < block->count; i++) {
            for (int j = 0; j < STARLIN__MOST_STAGES; j++)
                starlin__collective_release(&block->records[i].tasks[j].work.request);
        }
        starlin__free(block);
    }
}

void starlin__record_ended(void *arg)
{
    starlin__record_t *record = arg;
    starlin_context_t *context = record->context;
    bool wakes;

    if (atomic_fetch_sub(&record->pending, 1) != 1)
        return;
    pthread_mutex_lock(&context->lock);
    context->inflight--;
    /* waits are for whole matrices or the whole context: wake them only when one could be over */
    wakes = context->inflight == 0;
    for (unsigned i = 0; i < record->nmatrices; i++)
        wakes = --record->matrices[i]->inflight == 0 || wakes;
    give_back(context, record);
    if (wakes)
        pthread_cond_broadcast(&context->idle);
    pthread_mutex_unlock(&context->lock);
}

/* --- failure */

void starlin__record_fail(starlin__record_t *record, starlin_status_t status, const char *text)
{
    starlin_context_t *context = record->context;
    starlin__notice_t notice = {.sequence = record->sequence,
                                .rank = context->bootstrap->rank,
                                .chunk = record->chunk,
                                .status = (int32_t)status};

    snprintf(notice.text, sizeof notice.text, "%s", text);
    starlin__context_fail(context, &notice);
    starlin__progress_fail(context->progress, &notice);
}

bool starlin__record_skips(const starlin__record_t *record)
{
    starlin_context_t *context = record->context;
    bool skips;

    pthread_mutex_lock(&context->lock);
    skips = context->failure.status != STARLIN_SUCCESS && context->failure.sequence <= record->sequence;
    pthread_mutex_unlock(&context->lock);
    return skips;
}

/* --- spans */

static const starlin__span_kind_t span_kinds[STARLIN__NSTAGE_KINDS] = {
    [STARLIN__STAGE_GEMM] = STARLIN__SPAN_GEMM,
    [STARLIN__STAGE_COLLECTIVE] = STARLIN__SPAN_COLLECTIVE,
    [STARLIN__STAGE_ROWWISE] = STARLIN__SPAN_ROWWISE,
};

starlin__span_t starlin__task_span(const starlin__task_t *task, double start_us)
{
    const starlin__record_t *record = task->record;
    const starlin__comm_t *comm = record->context->comm;
    const starlin__stage_t *stage = &task->stage;
    const starlin_matrix_t *rows = stage->accesses[0].matrix;
    bool is_collective = stage->kind == STARLIN__STAGE_COLLECTIVE;
    starlin__span_t span = {.kind = span_kinds[stage->kind],
                            .name = stage->name,
                            .op = record->op,
                            .lane = is_collective ? STARLIN__LANE_LINK : (unsigned)starpu_worker_get_id(),
                            .sequence = record->sequence,
                            .chunk = record->chunk,
                            .ready_us = start_us,
                            .launch_us = start_us,
                            .start_us = start_us,
                            .nbytes = is_collective ? starlin__stage_nbytes(stage, record->chunk) : 0.0,
                            .rows = rows->rows != NULL ? rows->rows->chunk_rows[record->chunk]
                                                       : rows->local_rows};

    if (is_collective && comm->ops->predict_us != NULL)
        span.planned_us = comm->ops->predict_us(comm, stage->as.collective, span.nbytes);
    if (stage->kind == STARLIN__STAGE_GEMM) {
        starlin__gemm_t gemm = starlin__stage_gemm(stage, record->chunk);
        span.flop = 2.0 * (double)gemm.m * (double)gemm.n * (double)gemm.k;
    }
    return span;
}

void starlin__task_ran(const starlin__task_t *task, double start_us)
{
    starlin__timeline_t *timeline = task->record->context->timeline;
    starlin__span_t span;

    if (!starlin__timeline_enabled(timeline))
        return;
    span = starlin__task_span(task, start_us);
    span.end_us = starlin__now_us();
    starlin__timeline_add(timeline, &span);
}

starlin__launch_t *starlin__task_mark(const starlin__task_t *task, starlin__event_t *after)
{
    const starlin__record_t *record = task->record;
    const starlin__stage_t *stage = &task->stage;
    starlin__launch_t what = {.nchunks = 1};

    if (!starlin__timeline_enabled(record->context->timeline))
        return NULL;
    what.span = starlin__task_span(task, 0.0);
    if (stage->kind != STARLIN__STAGE_COLLECTIVE)
        what.span.lane = 0;
    for (unsigned i = 0; i < stage->naccesses; i++) {
        const starlin__access_t *access = &stage->accesses[i];
        if (access->matrix == NULL)
            continue;
        if (access->mode != STARLIN__READ)
            what.writes = access->matrix->root;
        if (access->mode != STARLIN__WRITE && what.reads == NULL)
            what.reads = access->matrix->root;
    }
    return starlin__activity_begin(record->context->activity, &what, after);
}

/* --- StarPU */

static const enum starpu_data_access_mode modes[] = {
    [STARLIN__READ] = STARPU_R, [STARLIN__WRITE] = STARPU_W, [STARLIN__UPDATE] = STARPU_RW};

struct starpu_task *starlin__task_create(starlin__task_t *task, struct starpu_codelet *codelet)
{
    struct starpu_task *created = starpu_task_create();
    int count = 0;

    created->cl = codelet;
    created->cl_arg = task;
    created->cl_arg_size = 0;
    for (unsigned i = 0; i < task->stage.naccesses; i++) {
        const starlin__access_t *access = &task->stage.accesses[i];
        starpu_data_handle_t handle;
        int at = 0;
        if (access->matrix == NULL)
            continue;
        handle = access->matrix->handles[access->matrix->nchunks > 1 ? task->record->chunk : 0];
        while (at < count && created->handles[at] != handle)
            at++;
        task->buffer[i] = (unsigned char)at;
        if (at < count) { /* read twice; or read and written element by element */
            created->modes[at] |= modes[access->mode];
            continue;
        }
        created->handles[count] = handle;
        created->modes[count++] = modes[access->mode];
    }
    created->nbuffers = count;
    return created;
}

void starlin__task_submit(struct starpu_task *task, starlin__record_t *record)
{
    int ret;

    task->callback_func = starlin__record_ended;
    task->callback_arg = record;
    ret = starpu_task_submit(task);
    if (ret != 0) {
        char text[96];
        snprintf(text, sizeof text, "starpu_task_submit of %s returned %d: no worker can run it",
                 task->cl->name, ret);
        starlin__record_fail(record, STARLIN_ERR_RUNTIME, text);
        task->destroy = 0;
        starpu_task_destroy(task);
        starlin__record_ended(record);
    }
}

/* --- a stage's operands */

starlin__places_t starlin__task_places(const starlin__task_t *task, void *buffers[])
{
    starlin__places_t places = {{NULL}, {0}};

    for (unsigned i = 0; i < task->stage.naccesses; i++) {
        const starlin_matrix_t *matrix = task->stage.accesses[i].matrix;
        if (matrix == NULL)
            continue;
        if (matrix->cols == 0 || starlin__matrix_chunk_rows(matrix, task->record->chunk) == 0)
            continue; /* an empty chunk's handle has not even an interface with an id */
        if (buffers != NULL && starlin__matrix_is_contiguous(matrix))
            places.base[i] = starlin__buffer_data(buffers[task->buffer[i]], &places.ld[i]);
        else
            places.base[i] = starlin__matrix_chunk_data(matrix, task->record->chunk);
    }
    return places;
}

unsigned starlin__stage_nruns(const starlin__stage_t *stage)
{
    for (unsigned i = 0; i < stage->naccesses; i++) {
        const starlin__access_t *access = &stage->accesses[i];
        if (access->matrix != NULL && !access->own_run && !starlin__matrix_is_contiguous(access->matrix))
            return access->matrix->rows->nblocks;
    }
    return 1;
}

void starlin__stage_views(const starlin__stage_t *stage, size_t chunk, unsigned run,
                          const starlin__places_t *places, starlin__view_t views[STARLIN__MOST_ACCESSES])
{
    unsigned nruns = starlin__stage_nruns(stage);

    for (unsigned i = 0; i < STARLIN__MOST_ACCESSES; i++) {
        const starlin__access_t *access = &stage->accesses[i];
        const starlin_matrix_t *matrix = i < stage->naccesses ? access->matrix : NULL;
        if (matrix == NULL)
            views[i] = (starlin__view_t){0};
        else if (access->own_run)
            views[i] = starlin__matrix_run(matrix, chunk, matrix->rows->block, matrix->rows->nblocks,
                                           places->base[i], places->ld[i]);
        else
            views[i] = starlin__matrix_run(matrix, chunk, run, nruns, places->base[i], places->ld[i]);
    }
}

starlin__gemm_t starlin__stage_gemm_run(const starlin__stage_t *stage, unsigned run,
                                        const starlin__view_t views[STARLIN__MOST_ACCESSES])
{
    const starlin__view_t *a = &views[0], *b = &views[1], *c = &views[2];
    bool transpose_a = stage->as.gemm.transpose_a;

    return (starlin__gemm_t){.transpose_a = transpose_a,
                             .transpose_b = stage->as.gemm.transpose_b,
                             .m = c->rows,
                             .n = c->cols,
                             .k = transpose_a ? a->rows : a->cols,
                             .a = a->data,
                             .b = b->data,
                             .c = c->data,
                             .lda = a->ld,
                             .ldb = b->ld,
                             .ldc = c->ld,
                             .dtype = a->dtype,
                             .out_dtype = c->dtype,
                             /* the runs of a product over rows add up */
                             .beta = transpose_a && run > 0 ? 1.0 : stage->as.gemm.beta,
                             .epilogue = {.activation = stage->as.gemm.activation,
                                          .bias = views[3].data,
                                          .residual = views[4].data,
                                          .ld_residual = views[4].ld}};
}

starlin__gemm_t starlin__stage_gemm(const starlin__stage_t *stage, size_t chunk)
{
    starlin__view_t views[STARLIN__MOST_ACCESSES];
    starlin__places_t places = {{NULL}, {0}};
    starlin__gemm_t gemm = {.m = -1};

    for (unsigned run = 0; run < starlin__stage_nruns(stage); run++) {
        starlin__gemm_t other;
        starlin__stage_views(stage, chunk, run, &places, views);
        other = starlin__stage_gemm_run(stage, run, views);
        if (gemm.m < 0 || other.m * other.k > gemm.m * gemm.k)
            gemm = other;
    }
    return gemm;
}

double starlin__stage_nbytes(const starlin__stage_t *stage, size_t chunk)
{
    double nbytes = 0.0;

    for (unsigned i = 0; i < stage->naccesses; i++) {
        const starlin_matrix_t *matrix = stage->accesses[i].matrix;
        double size;
        if (matrix == NULL)
            continue;
        size = (double)matrix->cols * (double)starlin_dtype_nbytes(matrix->dtype);
        if (stage->kind == STARLIN__STAGE_COLLECTIVE)
            return size * (double)matrix->rows->chunk_rows[chunk];
        nbytes += size * (double)starlin__matrix_chunk_rows(matrix, chunk);
    }
    return nbytes;
}

/* --- order on a device */

starlin_status_t starlin__task_order_before(const starlin__task_t *task)
{
    starlin__device_t *device = task->record->context->device;

    for (unsigned i = 0; i < task->stage.naccesses; i++) {
        const starlin_matrix_t *matrix = task->stage.accesses[i].matrix;
        if (matrix == NULL || matrix->events == NULL || !matrix->root->is_sent)
            continue;
        STARLIN__FORWARD(device->ops->event_wait(
            device, matrix->events[matrix->nchunks > 1 ? task->record->chunk : 0].comm,
            STARLIN__STREAM_COMPUTE));
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__task_order_after(const starlin__task_t *task)
{
    const starlin__record_t *record = task->record;
    starlin__device_t *device = record->context->device;
    starlin__event_t *written = NULL;
    bool is_visible = true;

    for (unsigned i = 0; i < task->stage.naccesses; i++) {
        const starlin__access_t *access = &task->stage.accesses[i];
        const starlin_matrix_t *matrix = access->matrix;
        starlin__event_t *event;
        if (matrix == NULL || (access->mode == STARLIN__READ && !matrix->root->is_received))
            continue;
        if (matrix->events == NULL) {
            is_visible = is_visible && access->mode == STARLIN__READ;
            continue;
        }
        event = matrix->events[matrix->nchunks > 1 ? record->chunk : 0].compute;
        STARLIN__FORWARD(device->ops->event_record(device, event, STARLIN__STREAM_COMPUTE));
        if (access->mode != STARLIN__READ)
            written = event;
    }
    if (record->gives_way && written != NULL && task->stage.kind == STARLIN__STAGE_GEMM)
        STARLIN__FORWARD(device->ops->give_way(device, written));
    return record->synchronous || !is_visible ? device->ops->synchronize(device) : STARLIN_SUCCESS;
}
