/* SPDX-License-Identifier: BSD-3-Clause */
/* retire: ends when the device has finished a chunk. It holds the chunk's data, inputs and output, so that
 * no task of the application sees them while kernels that were only launched still run. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "graph/operator.h"

/* --- end, on the progress thread */

static void on_end(starlin__work_t *work)
{
    starlin__chunk_op_t *op = work->owner;
    starpu_task_end_dep_release(op->retire_task);
}

/* --- codelet */

static void ready(void *arg)
{
    starlin__chunk_op_t *op = arg;
    starlin__progress_ready(op->context->progress, &op->retire, NULL);
}

static struct starpu_codelet codelet = {
    .where = STARPU_NOWHERE, .name = "starlin_retire", .nbuffers = STARPU_VARIABLE_NBUFFERS};

/* --- insert */

void starlin__retire_insert(starlin__chunk_op_t *op)
{
    struct starpu_task *task = starpu_task_create();
    starlin__chunk_events_t *events = &op->y->events[op->chunk];

    op->retire = (starlin__work_t){.sequence = op->sequence, .is_watch = true, .on_end = on_end, .owner = op};
    op->retire.request.done = op->sum == op->y ? events->comm : events->compute;
    op->retire_task = task;
    task->cl = &codelet;
    starlin__buffers_open(op, STARLIN__TASK_RETIRE, task);
    starlin__buffers_add(op, task, op->x, STARPU_R);
    starlin__buffers_add_weight(op, task);
    starlin__buffers_add(op, task, op->y, STARPU_RW);
    task->prologue_callback_pop_func = ready;
    task->prologue_callback_pop_arg = op;
    starpu_task_end_dep_add(task, 1);
    starlin__progress_submit(op->context->progress, &op->retire);
    starlin__task_submit(task, op);
}
