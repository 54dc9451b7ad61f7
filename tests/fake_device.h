/* SPDX-License-Identifier: BSD-3-Clause */
/* A device and a compute backend that only tell the time, in the place of a context's own. Streams are busy
 * until some time; an event passes when its stream is idle. A gemm beside a collective takes half as long
 * again, and the collective is held up by a quarter of what it still has to do. Include check.h first. */
#ifndef STARLIN_TESTS_FAKE_DEVICE_H
#define STARLIN_TESTS_FAKE_DEVICE_H

#include <stdlib.h>

#include "plan/scratch.h"
#include "plan/tune.h"

struct starlin__event {
    starlin__stream_t stream;
};
static double busy_until_us[2];
static size_t nevents, ncomm_first, ngemm_first;

static starlin_status_t event_create(starlin__device_t *device, starlin__event_t **event_p)
{
    (void)device;
    *event_p = calloc(1, sizeof **event_p);
    nevents++;
    return *event_p != NULL ? STARLIN_SUCCESS : STARLIN_ERR_NO_MEMORY;
}

static void event_destroy(starlin__device_t *device, starlin__event_t *event)
{
    (void)device;
    free(event);
    nevents--;
}

static starlin_status_t event_record(starlin__device_t *device, starlin__event_t *event,
                                     starlin__stream_t stream)
{
    (void)device;
    event->stream = stream;
    return STARLIN_SUCCESS;
}

static starlin_status_t event_query(starlin__device_t *device, starlin__event_t *event, bool *passed_p)
{
    (void)device;
    *passed_p = starlin__now_us() >= busy_until_us[event->stream];
    return STARLIN_SUCCESS;
}

static starlin_status_t compute_prepare(starlin__compute_t *compute, const starlin__gemm_t *gemm)
{
    (void)compute;
    CHECK_EQ_INT(gemm->m, 2); /* a quarter */
    return STARLIN_SUCCESS;
}

static starlin_status_t compute_gemm(starlin__compute_t *compute, unsigned worker,
                                     const starlin__gemm_t *gemm)
{
    double now_us = starlin__now_us(), rest_us = busy_until_us[STARLIN__STREAM_COMM] - now_us;

    (void)compute;
    (void)worker;
    (void)gemm;
    ncomm_first += rest_us > 0.0;
    busy_until_us[STARLIN__STREAM_COMPUTE] = now_us + (rest_us > 0.0 ? 6000.0 : 4000.0);
    if (rest_us > 0.0)
        busy_until_us[STARLIN__STREAM_COMM] += rest_us / 4.0;
    return STARLIN_SUCCESS;
}

typedef void (*device_fn_t)(starlin_context_t *context, const starlin__scratch_t *scratch,
                            starlin__tune_entry_t *entry);

static void with_device(starlin_context_t *context, device_fn_t function, starlin__tune_entry_t *entry)
{
    static const starlin__device_ops_t device_ops = {.event_create = event_create,
                                                     .event_destroy = event_destroy,
                                                     .event_record = event_record,
                                                     .event_query = event_query};
    static const starlin__compute_ops_t compute_ops = {
        .name = "fake", .prepare = compute_prepare, .gemm = compute_gemm};
    starlin__device_t device = {.ops = &device_ops, .nprocessors = 132};
    starlin__compute_t compute = {.ops = &compute_ops}, *own_compute = context->compute;
    float y[8 * 8] = {0};
    starlin__scratch_t scratch = {
        .gemm = {.m = 8, .n = 8, .k = 8, .y = y, .ldy = 8, .out_dtype = STARLIN_F32}};

    context->device = context->comm->device = &device;
    context->comm->space = STARLIN__DEVICE;
    context->compute = &compute;
    function(context, &scratch, entry);
    context->device = context->comm->device = NULL;
    context->comm->space = STARLIN__HOST;
    context->compute = own_compute;
}

#endif
