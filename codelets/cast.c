/* SPDX-License-Identifier: BSD-3-Clause */
/* cast: rounds a chunk of summed f32 partials, or all in one piece, to the output's dtype, once. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "graph/operator.h"
#include "record/ranges.h"

/* --- bodies: the argument is the chunk's record; buffers are sum_i (R) of each
 * chunk, y_i (W) of each chunk */

static starlin_status_t run(starlin__chunk_op_t *op, void *buffers[])
{
    starlin_context_t *context = op->context;
    size_t ld;
    starlin__cast_t cast = {.src = starlin__buffer_data(buffers[0], &ld),
                            .dst = starlin__buffer_data(buffers[op->nchunks], &ld),
                            .count = (size_t)(op->gemm.m * op->gemm.n),
                            .src_dtype = op->sum->dtype,
                            .dtype = op->y->dtype};
    return context->compute->ops->cast(context->compute, (unsigned)starpu_worker_get_id(), &cast);
}

static void cast_cpu(void *buffers[], void *arg)
{
    starlin__chunk_op_t *op = arg;
    double start_us = starlin__now_us();
    starlin_status_t status;

    if (starlin__chunk_op_skips(op))
        return;
    starlin__range_begin("cast", op->sequence, op->chunk);
    status = run(op, buffers);
    starlin__range_end();
    if (status != STARLIN_SUCCESS)
        starlin__chunk_op_fail(op, status, starlin_last_error());
    else
        starlin__chunk_op_ran(op, STARLIN__SPAN_CAST, start_us);
}

/* As for a gemm. */
static starlin__launch_t *mark_begin(const starlin__chunk_op_t *op)
{
    if (!starlin__timeline_enabled(op->context->timeline))
        return NULL;
    starlin__launch_t what = {.span = {.kind = STARLIN__SPAN_CAST,
                                       .sequence = op->sequence,
                                       .chunk = op->chunk,
                                       .rows = op->gemm.m},
                              .nchunks = op->nchunks,
                              .reads = op->sum,
                              .writes = op->y};
    return starlin__activity_begin(op->context->activity, &what, NULL);
}

static starlin_status_t launch(starlin__chunk_op_t *op, void *buffers[])
{
    starlin__device_t *device = op->context->device;
    starlin__launch_t *mark;
    starlin_status_t status;

    if (op->sum->events != NULL)
        STARLIN__FORWARD(device->ops->event_wait(device, op->sum->events[starlin__chunk_op_last(op)].comm,
                                                 STARLIN__STREAM_COMPUTE));
    mark = mark_begin(op);
    status = run(op, buffers);
    if (mark != NULL)
        starlin__activity_end(op->context->activity, mark);
    STARLIN__FORWARD(status);
    if (op->y->events != NULL)
        STARLIN__FORWARD(
            device->ops->event_record(device, op->y->events[op->chunk].compute, STARLIN__STREAM_COMPUTE));
    return op->synchronous || op->y->events == NULL ? device->ops->synchronize(device) : STARLIN_SUCCESS;
}

static void cast_cuda(void *buffers[], void *arg)
{
    starlin__chunk_op_t *op = arg;
    starlin_status_t status;

    if (starlin__chunk_op_skips(op))
        return;
    starlin__range_begin("cast", op->sequence, op->chunk);
    status = launch(op, buffers);
    starlin__range_end();
    if (status != STARLIN_SUCCESS)
        starlin__chunk_op_fail(op, status, starlin_last_error());
}

/* --- performance model: time follows the bytes, which StarPU's own footprint covers */

static struct starpu_perfmodel model = {.type = STARPU_HISTORY_BASED, .symbol = "starlin_cast"};

/* --- codelet */

static struct starpu_codelet codelet = {.name = "starlin_cast",
                                        .cpu_funcs = {cast_cpu},
                                        .cuda_funcs = {cast_cuda},
                                        .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                        .model = &model};

/* --- insert: it finishes a chunk that others wait for, so it goes before any gemm */

void starlin__cast_insert(starlin__chunk_op_t *op)
{
    struct starpu_task *task = starpu_task_create();

    task->cl = &codelet;
    task->where = (int32_t)starlin__compute_where(op->context);
    starlin__buffers_open(op, STARLIN__TASK_CAST, task);
    starlin__buffers_add(op, task, op->sum, STARPU_R);
    starlin__buffers_add(op, task, op->y, STARPU_W);
    task->cl_arg = op;
    task->priority = starpu_sched_get_max_priority();
    starlin__task_submit(task, op);
}
