/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of codelets, and the frame around the bodies of those that compute. */
#define _POSIX_C_SOURCE 200809L
#include "codelets/codelet.h"

void starlin__body_cpu(starlin__task_t *task, void *buffers[], starlin__work_fn_t work)
{
    starlin__record_t *record = task->record;
    starlin__places_t places;
    double start_us = starlin__now_us();
    starlin_status_t status;

    if (starlin__record_skips(record))
        return;
    places = starlin__task_places(task, buffers);
    starlin__range_begin(task->stage.name, record->sequence, record->chunk);
    status = work(task, &places);
    starlin__range_end();
    if (status != STARLIN_SUCCESS)
        starlin__record_fail(record, status, starlin_last_error());
    else
        starlin__task_ran(task, start_us);
}

/* `waits`: earlier work of the streams may not have passed. */
static starlin_status_t launch(starlin__task_t *task, const starlin__places_t *places, bool waits,
                               starlin__work_fn_t work)
{
    starlin__launch_t *mark;
    starlin_status_t status;

    if (waits)
        STARLIN__FORWARD(starlin__task_order_before(task));
    mark = starlin__task_mark(task, NULL);
    status = work(task, places);
    if (mark != NULL)
        starlin__activity_end(task->record->context->activity, mark);
    STARLIN__FORWARD(status);
    return starlin__task_order_after(task);
}

static void launch_or_fail(starlin__task_t *task, const starlin__places_t *places, bool waits,
                           starlin__work_fn_t work)
{
    starlin__record_t *record = task->record;
    starlin_status_t status;

    starlin__range_begin(task->stage.name, record->sequence, record->chunk);
    status = launch(task, places, waits, work);
    starlin__range_end();
    if (status != STARLIN_SUCCESS)
        starlin__record_fail(record, status, starlin_last_error());
}

void starlin__body_cuda(starlin__task_t *task, void *buffers[], starlin__work_fn_t work)
{
    starlin__places_t places;

    if (starlin__record_skips(task->record))
        return;
    places = starlin__task_places(task, buffers);
    launch_or_fail(task, &places, true, work);
}

bool starlin__body_launch(starlin__task_t *task, starlin__work_fn_t work)
{
    starlin__places_t places = starlin__task_places(task, NULL);

    if (!starlin__record_skips(task->record))
        launch_or_fail(task, &places, !task->record->context->settled, work);
    return true;
}

struct starpu_task *starlin__compute_task(starlin__task_t *task, struct starpu_codelet *codelet)
{
    struct starpu_task *created = starlin__task_create(task, codelet);

    created->where = task->record->context->device != NULL ? STARPU_CUDA : STARPU_CPU;
    return created;
}

/* Bodies launch on streams of the library. Asking for the worker's own stream once tells StarPU that its
 * streams are known about; otherwise it warns at every worker's first task. */
static void attach(void *arg)
{
    (void)arg;
#ifdef STARPU_USE_CUDA
    (void)starpu_cuda_get_local_stream();
#endif
}

static void attach_workers(void)
{
    starpu_execute_on_each_worker(attach, NULL, STARPU_CUDA);
}

const starlin__codelets_t starlin__codelets = {
    .insert = {[STARLIN__STAGE_GEMM] = starlin__gemm_insert,
               [STARLIN__STAGE_COLLECTIVE] = starlin__collective_insert,
               [STARLIN__STAGE_ROWWISE] = starlin__rowwise_insert},
    .launch = {[STARLIN__STAGE_GEMM] = starlin__gemm_launch,
               [STARLIN__STAGE_COLLECTIVE] = starlin__collective_launch,
               [STARLIN__STAGE_ROWWISE] = starlin__rowwise_launch},
    .insert_retire = starlin__retire_insert,
    .attach_workers = attach_workers,
};
