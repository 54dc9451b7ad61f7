/* SPDX-License-Identifier: BSD-3-Clause */
/* The first failure of a context, and waiting for what is in flight. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>
#include <stdio.h>

#include "graph/graph.h"

void starlin__context_fail(starlin_context_t *context, const starlin__notice_t *notice)
{
    pthread_mutex_lock(&context->lock);
    if (context->failure.status == STARLIN_SUCCESS || starlin__notice_precedes(notice, &context->failure))
        context->failure = *notice;
    pthread_mutex_unlock(&context->lock);
    starlin__log("rank %d: %s: %s", notice->rank, starlin_status_string(notice->status), notice->text);
}

starlin_status_t starlin__context_failure(starlin_context_t *context, uint64_t sequence)
{
    starlin__notice_t failure;

    pthread_mutex_lock(&context->lock);
    failure = context->failure;
    if (failure.status != STARLIN_SUCCESS && failure.sequence <= sequence)
        context->failed = true;
    else
        failure.status = STARLIN_SUCCESS;
    pthread_mutex_unlock(&context->lock);
    if (failure.status == STARLIN_SUCCESS)
        return STARLIN_SUCCESS;
    return starlin__error(failure.status, "rank %d, operator %llu: %s", failure.rank,
                          (unsigned long long)failure.sequence, failure.text);
}

/* Looks at the device for one at the ranks' notices: both cost about a microsecond, and notices are rare. */
enum { LOOKS_PER_NOTICE = 16 };

/* Without events where nothing can follow what the streams hold: that saves a short step some microseconds.
 */
static starlin_status_t look_at_device(starlin_context_t *context, bool whole, bool *finished_p)
{
    starlin__device_t *device = context->device;
    bool passed = true;

    if (whole)
        return device->ops->idle(device, finished_p);
    for (int i = 0; i < 2 && passed; i++)
        STARLIN__FORWARD(device->ops->event_query(device, context->stream_end[i], &passed));
    *finished_p = passed;
    return STARLIN_SUCCESS;
}

/* Polls, since a wait in the driver could not be given up when a peer is gone. *whole_p: nothing is left on
 * the device. */
static starlin_status_t wait_for_device(starlin_context_t *context, bool *whole_p)
{
    starlin__device_t *device = context->device;
    double deadline_us = starlin__now_us() + 1e3 * context->config.timeout_ms;
    bool whole = atomic_load(&context->inflight) == 0, finished = false;

    *whole_p = whole;
    if (device == NULL)
        return STARLIN_SUCCESS;
    for (int i = 0; i < 2 && !whole; i++)
        STARLIN__FORWARD(device->ops->event_record(device, context->stream_end[i], (starlin__stream_t)i));
    for (unsigned looks = 0; !finished; looks++) {
        STARLIN__FORWARD(look_at_device(context, whole, &finished));
        if (!finished && looks % LOOKS_PER_NOTICE == 0)
            starlin__progress_listen(context->progress);
        if (!finished && context->comm->ops->check != NULL)
            STARLIN__FORWARD(context->comm->ops->check(context->comm));
        if (!finished && starlin__now_us() > deadline_us)
            return starlin__error(STARLIN_ERR_TIMEOUT, "the device did not finish within %u ms",
                                  context->config.timeout_ms);
    }
    return STARLIN_SUCCESS;
}

/* Nobody tests collectives that end at launch, so it is here that a lost peer or device shows. The
 * communicator is given up: its kernels leave the device, and no later wait takes the time limit again. */
starlin_status_t starlin__context_synchronize(starlin_context_t *context)
{
    bool whole;
    starlin_status_t status = wait_for_device(context, &whole);
    starlin__notice_t notice = {
        .sequence = context->sequence, .rank = context->bootstrap->rank, .status = (int32_t)status};

    if (status == STARLIN_SUCCESS) {
        context->settled = whole; /* else something may have been launched behind what was waited for */
        if (whole)
            starlin__progress_settled(context->progress);
        return STARLIN_SUCCESS;
    }
    snprintf(notice.text, sizeof notice.text, "%s", starlin_last_error());
    starlin__context_fail(context, &notice);
    if (context->comm->ops->abort != NULL)
        context->comm->ops->abort(context->comm);
    return status;
}

void starlin__context_collect(starlin_context_t *context)
{
    bool idle;

    if (context->activity == NULL)
        return;
    pthread_mutex_lock(&context->lock);
    idle = context->inflight == 0;
    pthread_mutex_unlock(&context->lock);
    if (!idle || starlin__context_synchronize(context) != STARLIN_SUCCESS)
        return;
    if (starlin__activity_collect(context->activity, context->timeline) != STARLIN_SUCCESS)
        starlin__log("the device's activity is lost: %s", starlin_last_error());
}

void starlin__context_waited(starlin_context_t *context)
{
    if (context->window == 0)
        return;
    context->window_before = context->window;
    context->window = 0;
}

/* Being woken up takes some 50 us on a virtual machine: where what is waited for is only a launch, and a core
 * is free, looking is faster. */
static void look_for_end(starlin_context_t *context)
{
    static const double most_us = 300.0;
    double start_us = starlin__now_us();

    if (context->device == NULL || !context->share.comm_has_core)
        return;
    while (atomic_load_explicit(&context->inflight, memory_order_acquire) > 0 &&
           starlin__now_us() - start_us < most_us) {
    }
}

void starlin__context_drain(starlin_context_t *context)
{
    if (atomic_load(&context->inflight) > 0) {
        starpu_do_schedule(); /* a policy may hold tasks back until it hears that no more will come */
        look_for_end(context);
    }
    pthread_mutex_lock(&context->lock);
    while (context->inflight > 0)
        pthread_cond_wait(&context->idle, &context->lock);
    starlin__context_waited(context);
    pthread_mutex_unlock(&context->lock);
}

starlin_status_t starlin_context_wait(starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    starlin__graph_flush(context);
    starlin__context_drain(context);
    STARLIN__FORWARD(starlin__context_synchronize(context));
    if (context->activity != NULL && starlin__activity_is_full(context->activity))
        starlin__context_collect(context);
    return starlin__context_failure(context, context->sequence);
}
