/* SPDX-License-Identifier: BSD-3-Clause */
/* Sketches: the tasks of a list of operators, from their stages, at built-in speeds. These are first guesses
 * on the low side: where lists are measured, the measured times replace them. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "plan/plan.h"

/* Operations per microsecond of one worker's thread, or of the device, by dtype: f32, f64, f16, bf16. Host:
 * OpenBLAS on one core of a cloud machine with AVX-512; device: cuBLAS on an H200. */
static const double host_speed[] = {60e3, 30e3, 20e3, 20e3};
static const double device_speed[] = {45e6, 50e6, 650e6, 650e6};
/* Bytes per microsecond of a row-wise function, and between ranks: two hosts with 10 Gbit/s, two H100 by
 * NVLink. */
static const double host_memory = 5e3, device_memory = 2e6, host_link = 1e3, device_link = 220e3;
/* Microseconds of having a task (StarPU 1.4 on the same machines), and of a collective's latency. */
static const double task_us = 10, host_latency_us = 60, device_latency_us = 20;

starlin__prices_t starlin__prices_builtin(const starlin_context_t *context)
{
    double latency_us = context->device != NULL ? device_latency_us : host_latency_us;

    return (starlin__prices_t){.fixed_us = {[STARLIN__STAGE_GEMM] = task_us,
                                            [STARLIN__STAGE_COLLECTIVE] = latency_us,
                                            [STARLIN__STAGE_ROWWISE] = task_us},
                               .factor = {1, 1, 1}};
}

static double gemm_us(const starlin_context_t *context, const starlin__gemm_t *gemm)
{
    double operations = 2.0 * (double)gemm->m * (double)gemm->n * (double)gemm->k;

    if (context->device != NULL)
        return operations / device_speed[gemm->dtype];
    return operations /
           (host_speed[gemm->dtype] * (context->info.nblas_threads > 0 ? context->info.nblas_threads : 1));
}

/* A collective that gathers or scatters the ranks' runs moves half of what a sum on every rank does. */
static double link_us(const starlin__comm_t *comm, starlin__collective_kind_t kind, double nbytes)
{
    double share = (starlin__collective_moves_runs(kind) ? 1.0 : 2.0) * (comm->nranks - 1) / comm->nranks;

    return share * nbytes / (comm->device != NULL ? device_link : host_link);
}

static void price(const starlin_context_t *context, const starlin__stage_t *stage, size_t chunk,
                  starlin__sketch_task_t *task)
{
    const starlin__comm_t *comm = context->comm;
    const starlin_matrix_t *matrix;
    double nbytes;

    task->kind = stage->kind;
    if (stage->kind == STARLIN__STAGE_GEMM) {
        starlin__gemm_t gemm = starlin__stage_gemm(stage, chunk);
        task->nominal_us = gemm_us(context, &gemm);
        return;
    }
    nbytes = starlin__stage_nbytes(stage, chunk);
    if (stage->kind == STARLIN__STAGE_ROWWISE) {
        task->nominal_us = nbytes / (context->device != NULL ? device_memory : host_memory);
        return;
    }
    task->is_exact = comm->ops->predict_us != NULL;
    task->nominal_us = task->is_exact ? comm->ops->predict_us(comm, stage->as.collective, nbytes)
                                      : link_us(comm, stage->as.collective, nbytes);
    matrix = stage->accesses[0].matrix;
    if (comm->most_elements > 0 &&
        (double)matrix->rows->chunk_rows[chunk] * (double)matrix->cols > (double)comm->most_elements)
        task->nominal_us = INFINITY; /* refused */
}

/* For each chunk of each matrix: number of the last task that wrote and of the last that read, plus 1. */
typedef struct touched {
    unsigned writer, reader;
} touched_t;

static void depend(starlin__sketch_task_t *task, unsigned self, unsigned number)
{
    if (number > 0 && number != self)
        task->predecessors[task->npredecessors++] = number - 1;
}

static void link_task(const starlin__operands_t *operands, const starlin__stage_t *stage, size_t nchunks,
                      size_t chunk, unsigned number, touched_t *touched, starlin__sketch_task_t *task)
{
    for (unsigned i = 0; i < stage->naccesses; i++) {
        const starlin__access_t *access = &stage->accesses[i];
        touched_t *last;
        size_t at = 0;
        if (access->matrix == NULL)
            continue;
        while (operands->matrices[at] != access->matrix)
            at++;
        last = &touched[at * nchunks + (access->matrix->rows != NULL ? chunk : 0)];
        depend(task, number, last->writer);
        if (access->mode != STARLIN__READ) {
            depend(task, number, last->reader);
            last->writer = number;
            last->reader = 0;
        } else {
            last->reader = number;
        }
    }
}

static void draw(const starlin__operands_t *operands, size_t nchunks, touched_t *touched,
                 starlin__sketch_t *sketch)
{
    for (size_t c = 0; c < operands->ncalls; c++) {
        const starlin__call_t *call = &operands->calls[c];
        for (size_t chunk = 0; chunk < nchunks; chunk++) {
            starlin__stage_t stages[STARLIN__MOST_STAGES];
            size_t nstages = call->kind->stages(call, chunk, stages);
            for (size_t i = 0; i < nstages; i++) {
                starlin__sketch_task_t *task = &sketch->tasks[sketch->ntasks++];
                price(call->context, &stages[i], chunk, task);
                link_task(operands, &stages[i], nchunks, chunk, (unsigned)sketch->ntasks, touched, task);
            }
        }
    }
}

starlin_status_t starlin__sketch_create(const starlin__job_t *job, const starlin__candidate_t *list,
                                        starlin__sketch_t **sketch_p)
{
    size_t nchunks = list->told.nchunks, most = job->noperations * nchunks * STARLIN__MOST_STAGES;
    const starlin_context_t *context = job->context;
    starlin__operands_t operands;
    starlin__sketch_t *sketch;
    touched_t *touched;

    STARLIN__FORWARD(starlin__operands_create(job, list->rows, nchunks, false, &operands));
    sketch = starlin__alloc(sizeof *sketch + most * sizeof *sketch->tasks);
    touched = starlin__alloc(operands.nmatrices * nchunks * sizeof *touched);
    if (sketch != NULL && touched != NULL) {
        sketch->nservers =
            context->device != NULL || context->info.nworkers == 0 ? 1 : context->info.nworkers;
        draw(&operands, nchunks, touched, sketch);
        *sketch_p = sketch;
    } else {
        starlin__free(sketch);
        sketch = NULL;
    }
    starlin__free(touched);
    starlin__operands_destroy(&operands);
    return sketch != NULL ? STARLIN_SUCCESS
                          : starlin__error(STARLIN_ERR_NO_MEMORY, "a sketch of %zu tasks", most);
}
