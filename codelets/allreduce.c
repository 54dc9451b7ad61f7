/* SPDX-License-Identifier: BSD-3-Clause */
/* allreduce: the sum over the ranks of one chunk, or of all chunks in one piece. The task runs nowhere: when
 * its data is ready the progress engine takes it, in submission order, and the task ends when the collective
 * is over (or, where events carry the order, when it is launched). No worker is occupied. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "graph/operator.h"
#include "record/ranges.h"

/* --- start and end, on the thread that goes through a round */

static double nbytes_of(const starlin__work_t *work)
{
    return (double)work->request.count * (double)starlin_dtype_nbytes(work->request.dtype);
}

/* On a device, when the collective ran is found out later. */
static starlin__launch_t *mark_begin(starlin__work_t *work)
{
    starlin__chunk_op_t *op = work->owner;
    starlin__launch_t what = {.span = {.kind = STARLIN__SPAN_ALLREDUCE,
                                       .lane = STARLIN__LANE_LINK,
                                       .sequence = op->sequence,
                                       .chunk = op->chunk,
                                       .nbytes = nbytes_of(work),
                                       .rows = op->gemm.m},
                              .nchunks = op->nchunks,
                              .reads = op->sum,
                              .writes = op->sum};
    return starlin__activity_begin(op->context->activity, &what, work->request.after);
}

static void on_start(starlin__work_t *work)
{
    starlin__chunk_op_t *op = work->owner;
    size_t ld;

    starlin__range_begin("allreduce", op->sequence, op->chunk);
    if (op->context->comm->space == STARLIN__DEVICE) {
        /* the buffer is the matrix's own memory */
        op->mark = starlin__timeline_enabled(op->context->timeline) ? mark_begin(work) : NULL;
        return;
    }
    work->request.buffer = starlin__buffer_data(
        starpu_data_get_interface_on_node(op->sum->handles[op->chunk], STARPU_MAIN_RAM), &ld);
}

/* The request records the first chunk's event. Later operators may ask for any chunk's alone. */
static void record_others(starlin__chunk_op_t *op)
{
    starlin__device_t *device = op->context->device;

    for (unsigned i = op->chunk + 1; i <= starlin__chunk_op_last(op); i++) {
        starlin_status_t status =
            device->ops->event_record(device, op->sum->events[i].comm, STARLIN__STREAM_COMM);
        if (status != STARLIN_SUCCESS)
            starlin__chunk_op_fail(op, status, starlin_last_error());
    }
}

static void on_launched(starlin__work_t *work)
{
    starlin__chunk_op_t *op = work->owner;

    if (op->mark != NULL)
        starlin__activity_end(op->context->activity, op->mark);
    op->mark = NULL;
    starlin__range_end();
    if (op->context->comm->space == STARLIN__DEVICE)
        record_others(op);
}

static void on_end(starlin__work_t *work)
{
    starlin__chunk_op_t *op = work->owner;
    starlin_context_t *context = op->context;

    if (context->comm->space != STARLIN__DEVICE && starlin__timeline_enabled(context->timeline)) {
        starlin__span_t span = {.kind = STARLIN__SPAN_ALLREDUCE,
                                .lane = STARLIN__LANE_LINK,
                                .sequence = op->sequence,
                                .chunk = op->chunk,
                                .ready_us = work->ready_us,
                                .launch_us = work->start_us,
                                .start_us = work->start_us,
                                .end_us = work->end_us,
                                .nbytes = nbytes_of(work),
                                .rows = op->gemm.m};
        starlin__timeline_add(context->timeline, &span);
    }
    if (op->collective_task != NULL)
        starpu_task_end_dep_release(op->collective_task);
    else
        starlin__chunk_op_ended(op);
}

/* --- codelet */

static void ready(void *arg)
{
    starlin__chunk_op_t *op = arg;
    starlin__progress_ready(op->context->progress, &op->collective,
                            op->failure.status != STARLIN_SUCCESS ? &op->failure : NULL);
}

static struct starpu_codelet codelet = {
    .where = STARPU_NOWHERE, .name = "starlin_allreduce", .nbuffers = STARPU_VARIABLE_NBUFFERS};

/* --- insert */

static void describe(starlin__chunk_op_t *op)
{
    starlin__allreduce_t *request = &op->collective.request;
    const starlin_matrix_t *sum = op->sum;

    request->count = (size_t)(op->gemm.m * op->gemm.n);
    request->dtype = sum->dtype;
    /* in a step that is waited for, nothing is left that the last one could get in the way of */
    request->ctas = starlin__chunk_op_last(op) + 1u < op->y->nchunks ? op->y->ctas : 0;
    op->collective.sequence = op->sequence;
    op->collective.owner = op;
    op->collective.on_start = on_start;
    op->collective.on_launched = on_launched;
    op->collective.on_end = on_end;
    op->mark = NULL;
    op->collective.is_watch = false;
    op->collective.ends_at_launch = false;
    if (op->context->comm->space != STARLIN__DEVICE)
        return;
    request->buffer = starlin__matrix_chunk_data(sum, op->chunk);
    request->after = sum->events[op->chunk].compute;
    request->done = sum->events[op->chunk].comm;
    op->collective.ends_at_launch = !op->synchronous;
}

bool starlin__allreduce_launch(starlin__chunk_op_t *op)
{
    if (op->failure.status != STARLIN_SUCCESS) /* the peers have to hear of it first */
        return false;
    describe(op);
    op->collective_task = NULL;
    return starlin__progress_start_now(op->context->progress, &op->collective);
}

void starlin__allreduce_insert(starlin__chunk_op_t *op)
{
    struct starpu_task *task = starpu_task_create();

    describe(op);
    op->collective_task = task;
    task->cl = &codelet;
    starlin__buffers_open(op, STARLIN__TASK_ALLREDUCE, task);
    starlin__buffers_add(op, task, op->sum, STARPU_RW);
    task->prologue_callback_pop_func = ready;
    task->prologue_callback_pop_arg = op;
    starpu_task_end_dep_add(task, 1);
    starlin__progress_submit(op->context->progress, &op->collective);
    starlin__task_submit(task, op);
}
