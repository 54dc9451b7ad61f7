/* SPDX-License-Identifier: BSD-3-Clause */
/* retire: ends when the device has finished a chunk. It holds the chunk's data, inputs and output, so that no
 * task of the application sees them while kernels that were only launched still run. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "codelets/codelet.h"

/* --- end, on the progress thread */

static void on_end(starlin__work_t *work)
{
    starlin__record_t *record = work->owner;
    starpu_task_end_dep_release(record->retire.task);
}

/* --- codelet */

static void ready(void *arg)
{
    starlin__record_t *record = arg;
    starlin__progress_ready(record->context->progress, &record->retire.work);
}

static struct starpu_codelet codelet = {
    .where = STARPU_NOWHERE, .name = "starlin_retire", .nbuffers = STARPU_VARIABLE_NBUFFERS};

/* --- insert */

static void add_handle(struct starpu_task *task, starpu_data_handle_t handle,
                       enum starpu_data_access_mode mode)
{
    int i = 0;

    while (i < task->nbuffers && task->handles[i] != handle)
        i++;
    if (i == task->nbuffers) {
        task->handles[i] = handle;
        task->modes[i] = mode;
        task->nbuffers++;
    } else {
        task->modes[i] |= mode;
    }
}

/* All that the record's stages touch: at most STARPU_NMAXBUFS handles. */
static void add_handles(const starlin__record_t *record, struct starpu_task *task)
{
    task->nbuffers = 0;
    for (unsigned i = 0; i < record->ntasks; i++) {
        const starlin__stage_t *stage = &record->tasks[i].stage;
        for (unsigned j = 0; j < stage->naccesses; j++) {
            const starlin__access_t *access = &stage->accesses[j];
            if (access->matrix == NULL)
                continue;
            add_handle(task, access->matrix->handles[access->matrix->nchunks > 1 ? record->chunk : 0],
                       access->mode == STARLIN__READ ? STARPU_R : STARPU_RW);
        }
    }
}

/* The last stage's work on what it writes. */
static starlin__event_t *last_event(const starlin__record_t *record)
{
    const starlin__stage_t *stage = &record->tasks[record->ntasks - 1].stage;
    const starlin_matrix_t *matrix = NULL;
    const starlin__chunk_events_t *events;

    for (unsigned i = 0; i < stage->naccesses; i++) {
        if (stage->accesses[i].matrix != NULL && stage->accesses[i].mode != STARLIN__READ)
            matrix = stage->accesses[i].matrix;
    }
    events = &matrix->events[matrix->nchunks > 1 ? record->chunk : 0];
    return stage->kind == STARLIN__STAGE_COLLECTIVE ? events->comm : events->compute;
}

void starlin__retire_insert(starlin__record_t *record)
{
    struct starpu_task *task = starpu_task_create();
    starlin__work_t *work = &record->retire.work;

    *work =
        (starlin__work_t){.sequence = record->sequence, .is_watch = true, .on_end = on_end, .owner = record};
    work->request.done = last_event(record);
    record->retire.task = task;
    task->cl = &codelet;
    add_handles(record, task);
    task->prologue_callback_pop_func = ready;
    task->prologue_callback_pop_arg = record;
    starpu_task_end_dep_add(task, 1);
    starlin__progress_submit(record->context->progress, work);
    starlin__task_submit(task, record);
}
