/* SPDX-License-Identifier: BSD-3-Clause */
/* gemm: the product of one chunk, C = op(A) op(B) + beta C with its epilogue; run by run where the chunk lies
 * in several. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "codelets/codelet.h"

starlin__gemm_hook_fn_t starlin__gemm_hook;
void *starlin__gemm_hook_arg;

/* --- bodies */

static starlin_status_t work(starlin__task_t *task, const starlin__places_t *places)
{
    const starlin__record_t *record = task->record;
    starlin__compute_t *compute = record->context->compute;
    starlin__view_t views[STARLIN__MOST_ACCESSES];

    if (starlin__gemm_hook != NULL &&
        !starlin__gemm_hook(starlin__gemm_hook_arg, record->context->bootstrap->rank, record->sequence,
                            record->chunk))
        return starlin__error(STARLIN_ERR_COMPUTE, "gemm of chunk %u failed (injected)", record->chunk);
    for (unsigned run = 0; run < starlin__stage_nruns(&task->stage); run++) {
        starlin__gemm_t gemm;
        starlin__stage_views(&task->stage, record->chunk, run, places, views);
        gemm = starlin__stage_gemm_run(&task->stage, run, views);
        STARLIN__FORWARD(compute->ops->gemm(compute, (unsigned)starpu_worker_get_id(), &gemm));
    }
    return STARLIN_SUCCESS;
}

static void gemm_cpu(void *buffers[], void *arg)
{
    starlin__body_cpu(arg, buffers, work);
}

static void gemm_cuda(void *buffers[], void *arg)
{
    starlin__body_cuda(arg, buffers, work);
}

/* --- performance model: by shape and inner size, one symbol per dtype */

static uint32_t footprint(struct starpu_task *task)
{
    const starlin__task_t *own = task->cl_arg;
    starlin__gemm_t gemm = starlin__stage_gemm(&own->stage, own->record->chunk);
    int64_t shape[4] = {gemm.m, gemm.n, gemm.k, gemm.transpose_a + 2 * gemm.transpose_b};
    uint64_t hash = starlin__hash(STARLIN__HASH_INIT, shape, sizeof shape);
    return (uint32_t)(hash ^ (hash >> 32));
}

#define GEMM_MODEL(text)                                                                                     \
    {                                                                                                        \
        .type = STARPU_HISTORY_BASED, .symbol = "starlin_gemm_" text, .footprint = footprint                 \
    }
static struct starpu_perfmodel models[4] = {GEMM_MODEL("f32"), GEMM_MODEL("f64"), GEMM_MODEL("f16"),
                                            GEMM_MODEL("bf16")};

/* --- codelet */

#define GEMM_CODELET(dtype)                                                                                  \
    {                                                                                                        \
        .name = "starlin_gemm", .cpu_funcs = {gemm_cpu}, .cuda_funcs = {gemm_cuda},                          \
        .nbuffers = STARPU_VARIABLE_NBUFFERS, .model = &models[dtype]                                        \
    }
static struct starpu_codelet codelets[4] = {GEMM_CODELET(STARLIN_F32), GEMM_CODELET(STARLIN_F64),
                                            GEMM_CODELET(STARLIN_F16), GEMM_CODELET(STARLIN_BF16)};

/* --- insert, launch */

void starlin__gemm_insert(starlin__task_t *task)
{
    struct starpu_task *created =
        starlin__compute_task(task, &codelets[task->stage.accesses[0].matrix->dtype]);

    created->priority = task->record->priority;
    starlin__task_submit(created, task->record);
}

bool starlin__gemm_launch(starlin__task_t *task)
{
    return starlin__body_launch(task, work);
}
