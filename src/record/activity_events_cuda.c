/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch times by pairs of CUDA timing events, made in advance. An event passes when all before it on its
 * stream has, so the first of a pair tells when a kernel could have started; whether it then waited for SMs
 * cannot be seen. Clock: an event on a stream of its own, which nothing delays, is compared with the host's
 * clock when the times are read; differences of events come from the device's clock alone. */
#include "machine/device_cuda.h"

#include "record/activity.h"

#define NTRIES 5

typedef struct events {
    starlin__device_t *device;
    cudaStream_t stream; /* nothing but the anchor is in it */
    cudaEvent_t anchor;
    size_t capacity;
    cudaEvent_t marks[]; /* two per slot */
} events_t;

static void events_close(void *state)
{
    events_t *events = state;
    if (starlin__device_cuda_enter(events->device) == STARLIN_SUCCESS) {
        for (size_t i = 0; i < 2 * events->capacity && events->marks[i] != NULL; i++)
            (void)cudaEventDestroy(events->marks[i]);
        if (events->anchor != NULL)
            (void)cudaEventDestroy(events->anchor);
        if (events->stream != NULL)
            (void)cudaStreamDestroy(events->stream);
        (void)cudaGetLastError();
        starlin__device_cuda_leave(events->device);
    }
    starlin__free(events);
}

static starlin_status_t events_open(starlin__device_t *device, size_t capacity, void **state_p)
{
    events_t *events = starlin__alloc(sizeof *events + 2 * capacity * sizeof events->marks[0]);
    if (events == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "activity: no memory for %zu events", 2 * capacity);
    events->device = device;
    events->capacity = capacity;
    starlin_status_t status = starlin__device_cuda_enter(device);
    if (status == STARLIN_SUCCESS) {
        cudaError_t error = cudaStreamCreateWithFlags(&events->stream, cudaStreamNonBlocking);
        if (error == cudaSuccess)
            error = cudaEventCreate(&events->anchor);
        for (size_t i = 0; i < 2 * capacity && error == cudaSuccess; i++)
            error = cudaEventCreate(&events->marks[i]);
        status = starlin__device_cuda_status(error, "making timing events");
        starlin__device_cuda_leave(device);
    }
    if (status == STARLIN_SUCCESS)
        *state_p = events;
    else
        events_close(events);
    return status;
}

static bool mark(events_t *events, size_t index, starlin__stream_t stream)
{
    if (starlin__device_cuda_enter(events->device) != STARLIN_SUCCESS)
        return false;
    cudaError_t error =
        cudaEventRecord(events->marks[index], starlin__device_cuda_stream(events->device, stream));
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    starlin__device_cuda_leave(events->device);
    return error == cudaSuccess;
}

static bool events_begin(void *state, size_t slot, starlin__stream_t stream, starlin__event_t *after)
{
    events_t *events = state;
    if (after != NULL && events->device->ops->event_wait(events->device, after, stream) != STARLIN_SUCCESS)
        return false;
    return mark(events, 2 * slot, stream);
}

static bool events_end(void *state, size_t slot, starlin__stream_t stream)
{
    return mark(state, 2 * slot + 1, stream);
}

/* The host's time of a mark that has passed, by the quickest of a few tries. */
static cudaError_t find_time(events_t *events, cudaEvent_t passed, double *time_us)
{
    double best_us = 0;
    for (int i = 0; i < NTRIES; i++) {
        float since_ms = 0;
        double before_us = starlin__now_us();
        cudaError_t error = cudaEventRecord(events->anchor, events->stream);
        while (error == cudaSuccess && (error = cudaEventQuery(events->anchor)) == cudaErrorNotReady)
            error = cudaSuccess;
        double after_us = starlin__now_us();
        (void)cudaGetLastError(); /* "not ready" stays behind */
        if (error == cudaSuccess)
            error = cudaEventElapsedTime(&since_ms, passed, events->anchor);
        if (error != cudaSuccess)
            return error;
        if (i > 0 && after_us - before_us >= best_us)
            continue;
        *time_us = (before_us + after_us) / 2 - 1e3 * (double)since_ms;
        best_us = after_us - before_us;
    }
    return cudaSuccess;
}

/* Times count from the newest mark: a float holds small differences better, and clocks drift apart. */
static starlin_status_t events_resolve(void *state, starlin__launch_t *launches, size_t n)
{
    events_t *events = state;
    cudaEvent_t last = NULL;
    double last_us = 0;
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < n; i++)
        last = launches[i].broken ? last : events->marks[2 * i + 1];
    if (last == NULL)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(events->device));
    error = find_time(events, last, &last_us);
    for (size_t i = 0; i < n && error == cudaSuccess; i++) {
        float ms[2] = {0, 0};
        for (size_t j = 0; j < 2 && error == cudaSuccess && !launches[i].broken; j++)
            error = cudaEventElapsedTime(&ms[j], events->marks[2 * i + j], last);
        launches[i].span.start_us = last_us - 1e3 * (double)ms[0];
        launches[i].span.end_us = last_us - 1e3 * (double)ms[1];
        launches[i].found = error == cudaSuccess && !launches[i].broken;
    }
    starlin__device_cuda_leave(events->device);
    return starlin__device_cuda_status(error, "reading timing events");
}

const starlin__activity_ops_t starlin__activity_events_cuda_ops = {.source = "events",
                                                                   .open = events_open,
                                                                   .close = events_close,
                                                                   .begin = events_begin,
                                                                   .end = events_end,
                                                                   .resolve = events_resolve};
