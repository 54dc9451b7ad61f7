/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration. Ranks measure the same points in step and take the slowest rank's time, so that all plan from
 * the same figures. Sizes grow until the time budget is spent; beyond, the curve's last slope serves. */
#include "calibrate.h"

#include <string.h>

/* Budget for the gemms and for the collectives of one layer; half of it is the last point's. */
static const double budget_us = 80e3;
/* Gemm tasks smaller than this are never planned. */
enum { SMALLEST_ROWS_HOST = 16, SMALLEST_ROWS_DEVICE = 256, ROW_QUANTUM_DEVICE = 256, REPETITIONS = 3 };
/* Cost of one more chunk: two tasks, wake-up and launch. Measured on 2 cores with StarPU 1.3.10 (host)
 * and on an H200 with 1.4.10 (device). */
static const double task_host_us = 12.0, task_device_us = 6.0;

typedef struct buffers {
    void *x, *w, *y;
} buffers_t;

/* Every rank goes on with the slowest rank's figure. */
static starlin_status_t agree_max(starlin_context_t *context, double *value)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    double *all;
    starlin_status_t status;

    if (bootstrap->nranks == 1)
        return STARLIN_SUCCESS;
    all = starlin__alloc((size_t)bootstrap->nranks * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "calibration");
    status = bootstrap->ops->allgather(bootstrap, value, sizeof *value, all, context->config.timeout_ms);
    for (int i = 0; status == STARLIN_SUCCESS && i < bootstrap->nranks; i++)
        *value = all[i] > *value ? all[i] : *value;
    starlin__free(all);
    return status;
}

static starlin_status_t buffer_alloc(starlin_context_t *context, size_t nbytes, void **memory_p)
{
    if (context->device != NULL)
        return context->device->ops->alloc(context->device, nbytes + 1, memory_p);
    *memory_p = starlin__alloc(nbytes + 1);
    return *memory_p != NULL
               ? STARLIN_SUCCESS
               : starlin__error(STARLIN_ERR_NO_MEMORY, "calibration buffer of %zu bytes", nbytes);
}

static void buffer_free(starlin_context_t *context, void *memory)
{
    if (context->device != NULL && memory != NULL)
        context->device->ops->free(context->device, memory);
    else if (context->device == NULL)
        starlin__free(memory);
}

/* Values matter on a device: products of zeros draw less power and run faster. */
static starlin_status_t buffer_fill(starlin_context_t *context, void *memory, size_t nbytes)
{
    enum { PATTERN = 1 << 20 };
    uint16_t *pattern;
    uint64_t state = 88172645463325252ull;
    starlin_status_t status = STARLIN_SUCCESS;

    if (context->device == NULL)
        return STARLIN_SUCCESS;
    pattern = starlin__alloc(PATTERN);
    if (pattern == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "calibration");
    for (size_t i = 0; i < PATTERN / sizeof *pattern; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        /* as bf16: magnitudes between 0.5 and 2, both signs; harmless numbers in the other dtypes too */
        pattern[i] = (uint16_t)((state & 0x80ffu) | 0x3f00u);
    }
    for (size_t done = 0; done < nbytes && status == STARLIN_SUCCESS; done += PATTERN) {
        size_t part = nbytes - done < PATTERN ? nbytes - done : PATTERN;
        status =
            context->device->ops->copy(context->device, (char *)memory + done, part, pattern, part, part, 1);
    }
    starlin__free(pattern);
    return status;
}

static starlin_status_t gemm_once(starlin_context_t *context, const starlin__gemm_t *gemm)
{
    STARLIN__FORWARD(context->compute->ops->gemm(context->compute, 0, gemm));
    return context->device != NULL ? context->device->ops->synchronize(context->device) : STARLIN_SUCCESS;
}

/* Shortest of a few runs, after one that is not counted. */
static starlin_status_t time_gemm(starlin_context_t *context, const starlin__gemm_t *gemm, double *time_us)
{
    double best_us = 1e300;

    STARLIN__FORWARD(context->compute->ops->prepare(context->compute, gemm));
    STARLIN__FORWARD(gemm_once(context, gemm));
    for (int i = 0; i < REPETITIONS; i++) {
        double start_us = starlin__now_us(), spent_us;
        STARLIN__FORWARD(gemm_once(context, gemm));
        spent_us = starlin__now_us() - start_us;
        best_us = spent_us < best_us ? spent_us : best_us;
    }
    *time_us = best_us;
    return agree_max(context, time_us);
}

static starlin_status_t allreduce_once(starlin_context_t *context, starlin__allreduce_t *request)
{
    starlin__comm_t *comm = context->comm;
    double deadline_us = starlin__now_us() + 1e3 * context->config.timeout_ms;
    bool done = false;

    STARLIN__FORWARD(comm->ops->allreduce_start(comm, request));
    for (;;) {
        STARLIN__FORWARD(comm->ops->allreduce_test(comm, request, &done));
        if (done)
            return STARLIN_SUCCESS;
        if (starlin__now_us() > deadline_us)
            return starlin__error(STARLIN_ERR_TIMEOUT,
                                  "a collective took longer than %u ms while it was measured",
                                  context->config.timeout_ms);
    }
}

static starlin_status_t time_allreduce(starlin_context_t *context, starlin__allreduce_t *request,
                                       double *time_us)
{
    double best_us = 1e300;

    STARLIN__FORWARD(allreduce_once(context, request));
    for (int i = 0; i < REPETITIONS; i++) {
        double start_us = starlin__now_us(), spent_us;
        STARLIN__FORWARD(allreduce_once(context, request));
        spent_us = starlin__now_us() - start_us;
        best_us = spent_us < best_us ? spent_us : best_us;
    }
    *time_us = best_us;
    return agree_max(context, time_us);
}

static starlin_status_t measure_gemm(starlin_context_t *context, const starlin__gemm_t *shape,
                                     starlin__curve_t *curve)
{
    int64_t smallest = context->device != NULL ? SMALLEST_ROWS_DEVICE : SMALLEST_ROWS_HOST;
    starlin__gemm_t gemm = *shape;
    double spent_us = 0.0, time_us = 0.0;

    for (int64_t rows = smallest < shape->m ? smallest : shape->m;; rows *= 2) {
        gemm.m = rows < shape->m ? rows : shape->m;
        STARLIN__FORWARD(time_gemm(context, &gemm, &time_us));
        starlin__curve_add(curve, (double)gemm.m, time_us);
        spent_us += (REPETITIONS + 1) * time_us;
        if (gemm.m == shape->m || spent_us + 2 * (REPETITIONS + 1) * time_us > budget_us)
            return STARLIN_SUCCESS;
    }
}

static starlin_status_t measure_comm(starlin_context_t *context, const starlin__gemm_t *shape, void *buffer,
                                     starlin__allreduce_t *request, starlin__curve_t *curve)
{
    starlin__comm_t *comm = context->comm;
    double nbytes_per_row = (double)shape->n * (double)starlin_dtype_nbytes(shape->out_dtype);
    double spent_us = 0.0, time_us;

    if (comm->ops->predict_us != NULL) {
        for (int64_t rows = 1; rows < 2 * shape->m; rows = rows == shape->m ? 2 * shape->m : shape->m) {
            double nbytes = nbytes_per_row * (double)rows;
            starlin__curve_add(curve, nbytes, comm->ops->predict_us(comm, nbytes));
        }
        return STARLIN_SUCCESS;
    }
    request->buffer = buffer;
    request->dtype = shape->out_dtype;
    for (int64_t rows = (shape->m + 31) / 32;; rows *= 2) {
        rows = rows < shape->m ? rows : shape->m;
        request->count = (size_t)(rows * shape->n);
        STARLIN__FORWARD(time_allreduce(context, request, &time_us));
        starlin__curve_add(curve, nbytes_per_row * (double)rows, time_us);
        spent_us += (REPETITIONS + 1) * time_us;
        if (rows == shape->m || spent_us + 2 * (REPETITIONS + 1) * time_us > budget_us)
            return STARLIN_SUCCESS;
    }
}

static starlin_status_t measure(starlin_context_t *context, const starlin__gemm_t *shape,
                                starlin__plan_input_t *input)
{
    starlin__device_t *device = context->device;
    size_t nbytes = starlin_dtype_nbytes(shape->dtype);
    size_t x_nbytes = (size_t)(shape->m * shape->k) * nbytes,
           w_nbytes = (size_t)(shape->n * shape->k) * nbytes;
    size_t y_nbytes = (size_t)(shape->m * shape->n) * starlin_dtype_nbytes(shape->out_dtype);
    starlin__allreduce_t request = {0};
    starlin__gemm_t gemm = *shape;
    buffers_t buffers = {0};
    starlin_status_t status;

    status = buffer_alloc(context, x_nbytes, &buffers.x);
    if (status == STARLIN_SUCCESS)
        status = buffer_alloc(context, w_nbytes, &buffers.w);
    if (status == STARLIN_SUCCESS)
        status = buffer_alloc(context, y_nbytes, &buffers.y);
    if (status == STARLIN_SUCCESS)
        status = buffer_fill(context, buffers.x, x_nbytes);
    if (status == STARLIN_SUCCESS)
        status = buffer_fill(context, buffers.w, w_nbytes);
    if (status == STARLIN_SUCCESS && device != NULL)
        status = device->ops->event_create(device, &request.after);
    if (status == STARLIN_SUCCESS && device != NULL)
        status = device->ops->event_create(device, &request.done);
    gemm.x = buffers.x;
    gemm.w = buffers.w;
    gemm.y = buffers.y;
    if (status == STARLIN_SUCCESS)
        status = measure_gemm(context, &gemm, &input->gemm);
    if (status == STARLIN_SUCCESS)
        status = measure_comm(context, &gemm, buffers.y, &request, &input->comm);
    if (request.after != NULL)
        device->ops->event_destroy(device, request.after);
    if (request.done != NULL)
        device->ops->event_destroy(device, request.done);
    buffer_free(context, buffers.x);
    buffer_free(context, buffers.w);
    buffer_free(context, buffers.y);
    return status;
}

starlin_status_t starlin__calibrate(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                    starlin__plan_input_t *input_p)
{
    bool wide = shape->reduction == STARLIN_REDUCTION_F32 && starlin_dtype_nbytes(shape->dtype) == 2;
    starlin__gemm_t gemm = {.m = shape->m,
                            .n = shape->n,
                            .k = shape->k_local,
                            .ldx = shape->k_local,
                            .ldw = shape->k_local,
                            .ldy = shape->n,
                            .dtype = shape->dtype,
                            .out_dtype = wide ? STARLIN_F32 : shape->dtype};
    starlin_status_t status;

    memset(input_p, 0, sizeof *input_p);
    input_p->m = shape->m;
    input_p->nbytes_per_row = (double)shape->n * (double)starlin_dtype_nbytes(gemm.out_dtype);
    input_p->task_us = context->device != NULL ? task_device_us : task_host_us;
    input_p->gemm_slowdown = context->device != NULL ? 1.08 : 1.0;
    input_p->comm_slowdown = context->device != NULL ? 1.5 : 1.0;
    input_p->comm_uses_core = context->comm->uses_core && !context->share.comm_has_core;
    input_p->row_quantum = context->device != NULL ? ROW_QUANTUM_DEVICE : SMALLEST_ROWS_HOST;
    input_p->min_gain = 0.01;
    starlin__context_pause(context);
    status = measure(context, &gemm, input_p);
    starlin__context_resume(context);
    return status;
}
