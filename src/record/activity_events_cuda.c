/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch times by pairs of CUDA timing events, made in advance. An event passes when all before it on its
 * stream has, so the first of a pair tells when a kernel could have started; whether it then waited for SMs
 * cannot be seen. Clock: an event on a stream of its own, which nothing delays, is compared with the host's
 * clock; differences of events come from the device's clock alone. */
#include "machine/device_cuda.h"

#include "record/activity.h"

#define NTRIES 5

typedef struct events {
    starlin__device_t *device;
    cudaStream_t stream;    /* nothing else is in it */
    cudaEvent_t anchors[2]; /* the first is the anchor, the second is there to be tried */
    double anchor_us;
    size_t capacity;
    cudaEvent_t marks[]; /* two per slot */
} events_t;

starlin_status_t starlin__activity_enter(starlin__device_t *device, void *streams[2])
{
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    for (int i = 0; i < 2; i++)
        streams[i] = (void *)starlin__device_cuda_stream(device, (starlin__stream_t)i);
    return STARLIN_SUCCESS;
}

void starlin__activity_leave(starlin__device_t *device)
{
    starlin__device_cuda_leave(device);
}

static void events_destroy(void *state)
{
    events_t *events = state;
    if (events == NULL)
        return;
    if (starlin__device_cuda_enter(events->device) == STARLIN_SUCCESS) {
        for (size_t i = 0; i < 2 * events->capacity && events->marks[i] != NULL; i++)
            (void)cudaEventDestroy(events->marks[i]);
        for (int i = 0; i < 2; i++)
            if (events->anchors[i] != NULL)
                (void)cudaEventDestroy(events->anchors[i]);
        if (events->stream != NULL)
            (void)cudaStreamDestroy(events->stream);
        (void)cudaGetLastError();
        starlin__device_cuda_leave(events->device);
    }
    starlin__free(events);
}

static starlin_status_t events_create(starlin__device_t *device, size_t capacity, void **state_p)
{
    events_t *events = starlin__alloc(sizeof *events + 2 * capacity * sizeof events->marks[0]);
    if (events == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "activity: no memory for %zu events", 2 * capacity);
    events->device = device;
    events->capacity = capacity;
    starlin_status_t status = starlin__device_cuda_enter(device);
    if (status == STARLIN_SUCCESS) {
        cudaError_t error = cudaStreamCreateWithFlags(&events->stream, cudaStreamNonBlocking);
        for (int i = 0; i < 2 && error == cudaSuccess; i++)
            error = cudaEventCreateWithFlags(&events->anchors[i], cudaEventDefault);
        for (size_t i = 0; i < 2 * capacity && error == cudaSuccess; i++)
            error = cudaEventCreateWithFlags(&events->marks[i], cudaEventDefault);
        status = starlin__device_cuda_status(error, "making timing events");
        starlin__device_cuda_leave(device);
    }
    if (status != STARLIN_SUCCESS) {
        events_destroy(events);
        return status;
    }
    *state_p = events;
    return STARLIN_SUCCESS;
}

/* The anchor's time on the host's clock: the quickest of a few tries. With the device current. */
static cudaError_t find_anchor(events_t *events)
{
    double best_us = 0;
    for (int i = 0; i < NTRIES; i++) {
        double before_us = starlin__now_us();
        cudaError_t error = cudaEventRecord(events->anchors[1], events->stream);
        while (error == cudaSuccess && (error = cudaEventQuery(events->anchors[1])) == cudaErrorNotReady)
            error = cudaSuccess;
        double after_us = starlin__now_us();
        (void)cudaGetLastError(); /* "not ready" stays behind */
        if (error != cudaSuccess)
            return error;
        if (i > 0 && after_us - before_us >= best_us)
            continue;
        cudaEvent_t tried = events->anchors[1];
        events->anchors[1] = events->anchors[0];
        events->anchors[0] = tried;
        events->anchor_us = (before_us + after_us) / 2;
        best_us = after_us - before_us;
    }
    return cudaSuccess;
}

static starlin_status_t events_start(void *state)
{
    events_t *events = state;
    STARLIN__FORWARD(starlin__device_cuda_enter(events->device));
    starlin_status_t status = starlin__device_cuda_status(find_anchor(events), "comparing clocks");
    starlin__device_cuda_leave(events->device);
    return status;
}

static void events_stop(void *state)
{
    (void)state; /* events cost nothing while nobody records them */
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

static starlin_status_t events_resolve(void *state, starlin__launch_t *launches, size_t n)
{
    events_t *events = state;
    cudaEvent_t first = NULL;
    double first_us = 0;
    cudaError_t error = cudaSuccess;
    STARLIN__FORWARD(starlin__device_cuda_enter(events->device));
    for (size_t i = 0; i < n && error == cudaSuccess; i++) {
        float start_ms = 0, end_ms = 0;
        if (launches[i].broken)
            continue;
        if (first == NULL) { /* a float holds small differences better */
            first = events->marks[2 * i];
            error = cudaEventElapsedTime(&start_ms, events->anchors[0], first);
            first_us = events->anchor_us + 1e3 * (double)start_ms;
            start_ms = 0;
        }
        if (error == cudaSuccess && first != events->marks[2 * i])
            error = cudaEventElapsedTime(&start_ms, first, events->marks[2 * i]);
        if (error == cudaSuccess)
            error = cudaEventElapsedTime(&end_ms, first, events->marks[2 * i + 1]);
        launches[i].span.start_us = first_us + 1e3 * (double)start_ms;
        launches[i].span.end_us = first_us + 1e3 * (double)end_ms;
        launches[i].found = error == cudaSuccess;
    }
    if (error == cudaSuccess)
        error = find_anchor(events); /* the clocks drift apart */
    starlin__device_cuda_leave(events->device);
    return starlin__device_cuda_status(error, "reading timing events");
}

static const starlin__activity_ops_t ops = {
    .source = "events",
    .create = events_create,
    .destroy = events_destroy,
    .start = events_start,
    .stop = events_stop,
    .begin = events_begin,
    .end = events_end,
    .resolve = events_resolve,
};

const starlin__activity_ops_t *const starlin__activity_events = &ops;
