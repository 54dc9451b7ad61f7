/* SPDX-License-Identifier: BSD-3-Clause */
/* collective: one chunk's data crosses the ranks. The task runs nowhere: when its data is ready the progress
 * engine takes it, in submission order, and the task ends when the collective is over (or, where events carry
 * the order, when it is launched). No worker is occupied. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "codelets/codelet.h"

static bool on_device(const starlin__task_t *task)
{
    return task->record->context->comm->space == STARLIN__DEVICE;
}

/* The matrix that is read, and the one that is written; the same in place. */
static starlin_matrix_t *sent(const starlin__task_t *task)
{
    return task->stage.accesses[0].matrix;
}

static starlin_matrix_t *received(const starlin__task_t *task)
{
    return task->stage.accesses[task->stage.naccesses - 1].matrix;
}

/* --- start and end, on the thread that goes through a round */

static void *host_data(const starlin_matrix_t *matrix, unsigned chunk)
{
    int64_t ld;

    if (matrix->cols == 0 || starlin__matrix_chunk_rows(matrix, chunk) == 0)
        return starlin__matrix_chunk_data(matrix, chunk);
    return starlin__buffer_data(starpu_data_get_interface_on_node(matrix->handles[chunk], STARPU_MAIN_RAM),
                                &ld);
}

static void on_start(starlin__work_t *work)
{
    starlin__task_t *task = work->owner;
    starlin__record_t *record = task->record;
    unsigned chunk = record->chunk;

    starlin__range_begin(task->stage.name, record->sequence, chunk);
    if (!on_device(task)) {
        work->request.send = host_data(sent(task), chunk);
        work->request.recv = host_data(received(task), chunk);
        return;
    }
    /* when it ran is found out later */
    task->mark = starlin__task_mark(task, work->request.after);
}

/* The request waits for what made the data that is sent, and records what is received. What still reads the
 * memory that is received into, and who may write again what was sent, need events of their own. */
static void order_others(starlin__task_t *task, bool behind)
{
    starlin__record_t *record = task->record;
    starlin__device_t *device = record->context->device;
    starlin__event_t *event =
        behind ? sent(task)->events[record->chunk].comm : received(task)->events[record->chunk].compute;
    starlin_status_t status = behind ? device->ops->event_record(device, event, STARLIN__STREAM_COMM)
                                     : device->ops->event_wait(device, event, STARLIN__STREAM_COMM);

    if (status != STARLIN_SUCCESS)
        starlin__record_fail(record, status, starlin_last_error());
}

static void on_start_device(starlin__work_t *work)
{
    starlin__task_t *task = work->owner;

    if (sent(task) != received(task))
        order_others(task, false);
    on_start(work);
}

static void on_launched(starlin__work_t *work)
{
    starlin__task_t *task = work->owner;

    if (task->mark != NULL)
        starlin__activity_end(task->record->context->activity, task->mark);
    task->mark = NULL;
    starlin__range_end();
    if (on_device(task) && sent(task) != received(task))
        order_others(task, true);
}

static void on_end(starlin__work_t *work)
{
    starlin__task_t *task = work->owner;
    starlin__record_t *record = task->record;
    starlin__timeline_t *timeline = record->context->timeline;

    if (!on_device(task) && starlin__timeline_enabled(timeline)) {
        starlin__span_t span = starlin__task_span(task, work->start_us);
        span.ready_us = work->ready_us;
        span.end_us = work->end_us;
        starlin__timeline_add(timeline, &span);
    }
    if (task->task != NULL)
        starpu_task_end_dep_release(task->task);
    else
        starlin__record_ended(record);
}

/* --- codelet */

static void ready(void *arg)
{
    starlin__task_t *task = arg;
    starlin__progress_ready(task->record->context->progress, &task->work);
}

static struct starpu_codelet codelet = {
    .where = STARPU_NOWHERE, .name = "starlin_collective", .nbuffers = STARPU_VARIABLE_NBUFFERS};

/* Brings the chunk from the device to main memory, for a communicator that works on the host. Nothing runs;
 * StarPU's coherence does the copy. */
static struct starpu_codelet stage_codelet = {.where = STARPU_NOWHERE,
                                              .name = "starlin_stage",
                                              .nbuffers = 1,
                                              .modes = {STARPU_RW},
                                              .specific_nodes = 1,
                                              .nodes = {STARPU_MAIN_RAM}};

/* --- insert, launch */

static void describe(starlin__task_t *task)
{
    starlin__record_t *record = task->record;
    starlin__work_t *work = &task->work;
    const starlin_matrix_t *send = sent(task), *recv = received(task);
    const starlin__rows_t *rows = recv->rows;
    bool is_runs = starlin__collective_moves_runs(task->stage.as.collective);
    bool device = on_device(task);

    work->request.kind = task->stage.as.collective;
    work->request.rows = is_runs && rows->nblocks > 1 ? &rows->run_rows[record->chunk * rows->nblocks] : NULL;
    work->request.count = rows->chunk_rows[record->chunk];
    work->request.cols = recv->cols;
    work->request.dtype = recv->dtype;
    work->sequence = record->sequence;
    work->owner = task;
    work->on_start = device ? on_start_device : on_start;
    work->on_launched = on_launched;
    work->on_end = on_end;
    work->is_watch = false;
    work->ends_at_launch = device && !record->synchronous;
    task->mark = NULL;
    if (!device)
        return;
    work->request.send = starlin__matrix_chunk_data(send, record->chunk);
    work->request.recv = starlin__matrix_chunk_data(recv, record->chunk);
    work->request.after = send->events[record->chunk].compute;
    work->request.done = recv->events[record->chunk].comm;
}

bool starlin__collective_launch(starlin__task_t *task)
{
    if (starlin__record_skips(task->record)) /* the peers have to hear of it first */
        return false;
    describe(task);
    task->task = NULL;
    /* it ends the record's part itself, as a task would */
    atomic_fetch_add(&task->record->pending, 1);
    if (starlin__progress_start_now(task->record->context->progress, &task->work))
        return true;
    atomic_fetch_sub(&task->record->pending, 1);
    return false;
}

static void insert_staging(starlin__task_t *task)
{
    for (unsigned i = 0; i < task->stage.naccesses; i++) {
        const starlin__access_t *access = &task->stage.accesses[i];
        struct starpu_task *staging = starpu_task_create();
        staging->cl = &stage_codelet;
        staging->handles[0] = access->matrix->handles[task->record->chunk];
        atomic_fetch_add(&task->record->pending, 1);
        starlin__task_submit(staging, task->record);
    }
}

void starlin__collective_insert(starlin__task_t *task)
{
    starlin_context_t *context = task->record->context;
    struct starpu_task *created;

    if (context->device != NULL && !on_device(task))
        insert_staging(task);
    describe(task);
    created = starlin__task_create(task, &codelet);
    task->task = created;
    created->prologue_callback_pop_func = ready;
    created->prologue_callback_pop_arg = task;
    starpu_task_end_dep_add(created, 1);
    starlin__progress_submit(context->progress, &task->work);
    starlin__task_submit(created, task->record);
}
