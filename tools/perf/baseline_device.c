/* SPDX-License-Identifier: BSD-3-Clause */
/* The hand-written loop of GPU programs: one compute stream, one communication stream of high priority,
 * events made beforehand; gemm i, event, collective i, gemm i+1, ... and one wait at the end. */
#include "baseline.h"
#include "layer.h"

typedef struct baseline_device {
    perf_baseline_t base;
    perf_layer_t layer;
    starlin__event_t *after[PERF_BASELINE_MAX_CHUNKS], *done[PERF_BASELINE_MAX_CHUNKS];
} baseline_device_t;

static bool device_fits(const starlin_context_t *context)
{
    return context->device != NULL && context->comm->space == STARLIN__DEVICE;
}

static void device_destroy(perf_baseline_t *base)
{
    baseline_device_t *loop = (baseline_device_t *)base;

    if (loop == NULL)
        return;
    for (size_t i = 0; i < PERF_BASELINE_MAX_CHUNKS; i++) {
        const starlin__device_ops_t *ops = loop->layer.context->device->ops;
        if (loop->after[i] != NULL)
            ops->event_destroy(loop->layer.context->device, loop->after[i]);
        if (loop->done[i] != NULL)
            ops->event_destroy(loop->layer.context->device, loop->done[i]);
    }
    perf_layer_release(&loop->layer);
    starlin__free(loop);
}

static starlin_status_t create_events(baseline_device_t *loop)
{
    starlin__device_t *device = loop->layer.context->device;

    for (size_t i = 0; i < PERF_BASELINE_MAX_CHUNKS; i++) {
        STARLIN__FORWARD(device->ops->event_create(device, &loop->after[i]));
        STARLIN__FORWARD(device->ops->event_create(device, &loop->done[i]));
    }
    return STARLIN_SUCCESS;
}

/* Every chunk count's algorithms are chosen before anything is timed. */
static starlin_status_t prepare(baseline_device_t *loop)
{
    starlin__compute_t *compute = loop->layer.context->compute;

    for (size_t count = 1; count <= PERF_BASELINE_MAX_CHUNKS; count *= 2) {
        int64_t rows[PERF_BASELINE_MAX_CHUNKS];
        size_t nchunks = starlin__plan_equal(loop->layer.problem->m, count, rows);
        for (size_t i = 0; i < nchunks; i++) {
            starlin__gemm_t gemm = perf_layer_gemm(&loop->layer, 0, rows[i]);
            STARLIN__FORWARD(compute->ops->prepare(compute, &gemm));
        }
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t device_create(starlin_context_t *context, const perf_problem_t *problem,
                                      const void *x, const void *w, perf_baseline_t **baseline_p)
{
    baseline_device_t *loop = starlin__alloc(sizeof(*loop));
    starlin_status_t status;

    if (loop == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "baseline");
    loop->base.ops = &perf_baseline_device_ops;
    status = perf_layer_open(context, problem, x, w, &loop->layer);
    if (status == STARLIN_SUCCESS)
        status = create_events(loop);
    if (status == STARLIN_SUCCESS)
        status = prepare(loop);
    if (status != STARLIN_SUCCESS) {
        device_destroy(&loop->base);
        return status;
    }
    *baseline_p = &loop->base;
    return STARLIN_SUCCESS;
}

static starlin_status_t launch_collective(baseline_device_t *loop, size_t i, void *buffer, int64_t count)
{
    starlin__comm_t *comm = loop->layer.context->comm;
    starlin__allreduce_t request = {.buffer = buffer,
                                    .count = (size_t)count,
                                    .dtype = loop->layer.sum_dtype,
                                    .after = loop->after[i],
                                    .done = loop->done[i]};
    return comm->ops->allreduce_start(comm, &request);
}

/* The cast of a chunk follows its collective, on the compute stream. */
static starlin_status_t launch_cast(baseline_device_t *loop, size_t i, int64_t first, int64_t nrows)
{
    starlin_context_t *context = loop->layer.context;
    starlin__cast_t cast = perf_layer_cast(&loop->layer, first, nrows);

    STARLIN__FORWARD(
        context->device->ops->event_wait(context->device, loop->done[i], STARLIN__STREAM_COMPUTE));
    return context->compute->ops->cast(context->compute, 0, &cast);
}

static starlin_status_t run_chunks(baseline_device_t *loop, unsigned nchunks)
{
    starlin_context_t *context = loop->layer.context;
    starlin__device_t *device = context->device;
    int64_t rows[PERF_BASELINE_MAX_CHUNKS], first = 0;
    size_t count = starlin__plan_equal(loop->layer.problem->m, nchunks, rows);

    for (size_t i = 0; i < count; first += rows[i], i++) {
        starlin__gemm_t gemm = perf_layer_gemm(&loop->layer, first, rows[i]);
        STARLIN__FORWARD(context->compute->ops->gemm(context->compute, 0, &gemm));
        STARLIN__FORWARD(device->ops->event_record(device, loop->after[i], STARLIN__STREAM_COMPUTE));
        STARLIN__FORWARD(launch_collective(loop, i, gemm.y, rows[i] * loop->layer.problem->n));
    }
    first = 0;
    for (size_t i = 0; perf_layer_has_cast(&loop->layer) && i < count; first += rows[i], i++)
        STARLIN__FORWARD(launch_cast(loop, i, first, rows[i]));
    return device->ops->synchronize(device);
}

static starlin_status_t device_run(perf_baseline_t *base, perf_baseline_kind_t kind, unsigned nchunks)
{
    baseline_device_t *loop = (baseline_device_t *)base;
    starlin__device_t *device = loop->layer.context->device;

    if (kind == PERF_BASELINE_GEMM) {
        starlin__gemm_t gemm = perf_layer_gemm(&loop->layer, 0, loop->layer.problem->m);
        STARLIN__FORWARD(loop->layer.context->compute->ops->gemm(loop->layer.context->compute, 0, &gemm));
        return device->ops->synchronize(device);
    }
    if (kind == PERF_BASELINE_COMM) {
        STARLIN__FORWARD(launch_collective(loop, 0, starlin_matrix_data(loop->layer.zeros),
                                           loop->layer.problem->m * loop->layer.problem->n));
        return device->ops->synchronize(device);
    }
    return run_chunks(loop, kind == PERF_BASELINE_SERIAL ? 1 : nchunks);
}

static starlin_matrix_t *device_output(perf_baseline_t *base)
{
    return ((baseline_device_t *)base)->layer.y;
}

const perf_baseline_ops_t perf_baseline_device_ops = {
    .name = "device",
    .fits = device_fits,
    .create = device_create,
    .destroy = device_destroy,
    .run = device_run,
    .output = device_output,
};
