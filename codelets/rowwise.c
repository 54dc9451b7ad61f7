/* SPDX-License-Identifier: BSD-3-Clause */
/* rowwise: a row-wise function of one chunk; run by run where the chunk lies in several. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "codelets/codelet.h"

/* --- bodies */

static starlin_status_t work(starlin__task_t *task, const starlin__places_t *places)
{
    const starlin__record_t *record = task->record;
    starlin__compute_t *compute = record->context->compute;
    starlin__rowwise_args_t args = {.activation = task->stage.as.rowwise.activation,
                                    .parameter = task->stage.as.rowwise.parameter};

    for (unsigned run = 0; run < starlin__stage_nruns(&task->stage); run++) {
        starlin__stage_views(&task->stage, record->chunk, run, places, args.views);
        if (args.views[0].rows > 0 && args.views[0].cols > 0)
            STARLIN__FORWARD(compute->ops->rowwise(compute, task->stage.as.rowwise.kind, &args));
    }
    return STARLIN_SUCCESS;
}

static void rowwise_cpu(void *buffers[], void *arg)
{
    starlin__body_cpu(arg, buffers, work);
}

static void rowwise_cuda(void *buffers[], void *arg)
{
    starlin__body_cuda(arg, buffers, work);
}

/* --- performance model: time follows function and bytes */

static uint32_t footprint(struct starpu_task *task)
{
    const starlin__task_t *own = task->cl_arg;
    const starlin__stage_t *stage = &own->stage;
    int64_t key[2] = {(int64_t)starlin__stage_nbytes(stage, own->record->chunk),
                      (int64_t)stage->as.rowwise.activation};
    uint64_t hash = starlin__hash(STARLIN__HASH_INIT, key, sizeof key);

    hash = starlin__hash(hash, &stage->as.rowwise.kind, sizeof stage->as.rowwise.kind);
    return (uint32_t)(hash ^ (hash >> 32));
}

static struct starpu_perfmodel model = {
    .type = STARPU_HISTORY_BASED, .symbol = "starlin_rowwise", .footprint = footprint};

/* --- codelet */

static struct starpu_codelet codelet = {.name = "starlin_rowwise",
                                        .cpu_funcs = {rowwise_cpu},
                                        .cuda_funcs = {rowwise_cuda},
                                        .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                        .model = &model};

/* --- insert: it is short, and often finishes a chunk that others wait for, so it goes before any gemm */

void starlin__rowwise_insert(starlin__task_t *task)
{
    struct starpu_task *created = starlin__compute_task(task, &codelet);

    created->priority = starpu_sched_get_max_priority();
    starlin__task_submit(created, task->record);
}

bool starlin__rowwise_launch(starlin__task_t *task)
{
    return starlin__body_launch(task, work);
}
