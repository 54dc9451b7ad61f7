/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration. Ranks measure the same points in step and take the slowest rank's time, so that all plan from
 * the same figures. Sizes grow until the time budget is spent; beyond, the curve's last slope serves. */
#include "calibrate.h"

#include <string.h>

/* Budget for the gemms and for the collectives of one layer; half of it is the last point's. */
static const double budget_us = 80e3;
/* Gemm tasks smaller than this are never planned. */
enum { SMALLEST_ROWS_HOST = 16, SMALLEST_ROWS_DEVICE = 128, REPETITIONS = 2 };
/* Cost of one more chunk: two tasks, wake-up and launch. Measured on 2 cores with StarPU 1.3.10 (host)
 * and on an H200 with 1.4.10 (device). */
static const double task_host_us = 12.0, task_device_us = 6.0;
/* Both kernels share the device's processors and memory: fitted to two-stream loops with collectives of 8
 * CTAs on an H200. */
static const double device_gemm_slowdown = 1.02, device_comm_slowdown = 1.05;
/* A gemm's blocks stay to its end, so a collective that comes later waits for it: as good as for ever. */
static const double device_comm_delay_us = 1e9;

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
    return starlin__agree_max(context, time_us, 1);
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
    return starlin__agree_max(context, time_us, 1);
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
        if (gemm.m == shape->m)
            return STARLIN_SUCCESS;
        if (spent_us + 2 * (REPETITIONS + 1) * time_us > budget_us) {
            /* more of the same: safer than a slope between two points */
            starlin__curve_add(curve, (double)shape->m, time_us * (double)shape->m / (double)gemm.m);
            return STARLIN_SUCCESS;
        }
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

static starlin_status_t measure(starlin_context_t *context, const starlin__scratch_t *scratch,
                                starlin__plan_input_t *input)
{
    starlin__device_t *device = context->device;
    starlin__allreduce_t request = {0};
    starlin_status_t status = STARLIN_SUCCESS;

    if (device != NULL) {
        STARLIN__FORWARD(device->ops->event_create(device, &request.after));
        status = device->ops->event_create(device, &request.done);
    }
    if (status == STARLIN_SUCCESS)
        status = measure_gemm(context, &scratch->gemm, &input->gemm);
    if (status == STARLIN_SUCCESS)
        status = measure_comm(context, &scratch->gemm, scratch->gemm.y, &request, &input->comm);
    if (request.after != NULL)
        device->ops->event_destroy(device, request.after);
    if (request.done != NULL)
        device->ops->event_destroy(device, request.done);
    return status;
}

/* Chunks in multiples of what keeps the gemm's tiles full: on a device sizes that are no multiple of 512
 * cost a large gemm 3 to 7% (H200). */
static int64_t row_quantum(const starlin_context_t *context, int64_t m)
{
    if (context->device == NULL)
        return SMALLEST_ROWS_HOST;
    return m >= 4096 ? 512 : m >= 1024 ? 256 : 128;
}

starlin_status_t starlin__calibrate(starlin_context_t *context, const starlin__scratch_t *scratch,
                                    starlin__plan_input_t *input_p)
{
    const starlin__gemm_t *gemm = &scratch->gemm;
    starlin_status_t status;

    memset(input_p, 0, sizeof *input_p);
    input_p->m = gemm->m;
    input_p->nbytes_per_row = (double)gemm->n * (double)starlin_dtype_nbytes(gemm->out_dtype);
    input_p->task_us = context->device != NULL ? task_device_us : task_host_us;
    input_p->gemm_slowdown = context->device != NULL ? device_gemm_slowdown : 1.0;
    input_p->comm_slowdown = context->device != NULL ? device_comm_slowdown : 1.0;
    input_p->comm_delay_us = context->device != NULL ? device_comm_delay_us : 0.0;
    input_p->comm_uses_core = context->comm->uses_core && !context->share.comm_has_core;
    input_p->row_quantum = row_quantum(context, gemm->m);
    input_p->min_gain = 0.01;
    /* collectives of operators in flight would meet those that are measured */
    STARLIN__FORWARD(starlin_context_wait(context));
    starlin__context_pause(context);
    status = measure(context, scratch, input_p);
    starlin__context_resume(context);
    return status;
}
