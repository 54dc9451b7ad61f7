/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches between two collections, in the order of their launch, and what their spans owe to each other.
 * Invariant: slots are taken under the lock and filled by their owner; they are read only by collect, when
 * nothing is in flight. */
#include "record/activity.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 4096 }; /* launches; an event pair each */

struct starlin__activity {
    const starlin__activity_ops_t *ops;
    void *state;
    pthread_mutex_t lock;
    bool started;
    size_t capacity, n, nlost;
    starlin__launch_t launches[];
};

starlin_status_t starlin__activity_create(const starlin__activity_ops_t *ops, starlin__device_t *device,
                                          size_t capacity, starlin__activity_t **activity_p)
{
    starlin__activity_t *activity =
        starlin__alloc(sizeof *activity + capacity * sizeof activity->launches[0]);
    if (activity == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "activity: no memory for %zu launches", capacity);
    activity->ops = ops;
    activity->capacity = capacity;
    starlin_status_t status = ops->create(device, capacity, &activity->state);
    if (status != STARLIN_SUCCESS) {
        starlin__free(activity);
        return status;
    }
    pthread_mutex_init(&activity->lock, NULL);
    *activity_p = activity;
    return STARLIN_SUCCESS;
}

static starlin_status_t try_source(const starlin__activity_ops_t *ops, starlin__device_t *device,
                                   starlin__activity_t **activity_p)
{
    starlin__activity_t *activity = NULL;
    STARLIN__FORWARD(starlin__activity_create(ops, device, CAPACITY, &activity));
    starlin_status_t status = starlin__activity_start(activity);
    if (status == STARLIN_SUCCESS)
        *activity_p = activity;
    else
        starlin__activity_close(activity);
    return status;
}

starlin_status_t starlin__activity_open(starlin__device_t *device, starlin__activity_t **activity_p)
{
    const starlin__activity_ops_t *const sources[] = {starlin__activity_cupti, starlin__activity_events};
    const char *names[] = {"cupti", "events"}, *asked = getenv("STARLIN_ACTIVITY");
    bool automatic = asked == NULL || asked[0] == '\0' || strcmp(asked, "auto") == 0;
    starlin_status_t status = STARLIN_SUCCESS;
    bool tried = false;

    for (int i = 0; i < 2; i++) {
        if (sources[i] == NULL || (!automatic && strcmp(asked, names[i]) != 0))
            continue;
        status = try_source(sources[i], device, activity_p);
        tried = true;
        if (status == STARLIN_SUCCESS || !automatic)
            return status;
        starlin__log("activity: no %s: %s", names[i], starlin_last_error());
    }
    if (tried)
        return status;
    return starlin__error(STARLIN_ERR_UNSUPPORTED,
                          "activity: STARLIN_ACTIVITY=\"%s\" is not built here (allowed: auto%s%s)",
                          automatic ? "auto" : asked, sources[0] != NULL ? ", cupti" : "",
                          sources[1] != NULL ? ", events" : "");
}

void starlin__activity_close(starlin__activity_t *activity)
{
    if (activity == NULL)
        return;
    starlin__activity_stop(activity);
    activity->ops->destroy(activity->state);
    pthread_mutex_destroy(&activity->lock);
    starlin__free(activity);
}

const char *starlin__activity_source(const starlin__activity_t *activity)
{
    return activity->ops->source;
}

starlin_status_t starlin__activity_start(starlin__activity_t *activity)
{
    if (activity->started)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(activity->ops->start(activity->state));
    pthread_mutex_lock(&activity->lock);
    activity->started = true;
    pthread_mutex_unlock(&activity->lock);
    return STARLIN_SUCCESS;
}

void starlin__activity_stop(starlin__activity_t *activity)
{
    bool was_started;
    pthread_mutex_lock(&activity->lock);
    was_started = activity->started;
    activity->started = false;
    pthread_mutex_unlock(&activity->lock);
    if (was_started)
        activity->ops->stop(activity->state);
}

static starlin__stream_t stream_of(const starlin__launch_t *launch)
{
    return launch->span.kind == STARLIN__SPAN_ALLREDUCE ? STARLIN__STREAM_COMM : STARLIN__STREAM_COMPUTE;
}

starlin__launch_t *starlin__activity_begin(starlin__activity_t *activity, const starlin__launch_t *what,
                                           starlin__event_t *after)
{
    starlin__launch_t *launch = NULL;
    if (activity == NULL)
        return NULL;
    pthread_mutex_lock(&activity->lock);
    if (activity->started && activity->n < activity->capacity)
        launch = &activity->launches[activity->n++];
    else if (activity->started)
        activity->nlost++;
    pthread_mutex_unlock(&activity->lock);
    if (launch == NULL)
        return NULL;
    *launch = *what;
    launch->found = false;
    launch->broken = !activity->ops->begin(activity->state, (size_t)(launch - activity->launches),
                                           stream_of(launch), after);
    launch->span.launch_us = starlin__now_us();
    return launch;
}

void starlin__activity_end(starlin__activity_t *activity, starlin__launch_t *launch)
{
    if (launch == NULL)
        return;
    if (!activity->ops->end(activity->state, (size_t)(launch - activity->launches), stream_of(launch)))
        launch->broken = true;
}

bool starlin__activity_is_full(starlin__activity_t *activity)
{
    pthread_mutex_lock(&activity->lock);
    bool full = 2 * activity->n > activity->capacity;
    pthread_mutex_unlock(&activity->lock);
    return full;
}

static unsigned chunks_end(const starlin__launch_t *launch)
{
    return launch->span.chunk + (launch->nchunks > 0 ? launch->nchunks : 1);
}

/* What launch `i` had to wait for: the chunk's gemm before a collective, the collective before a cast, and
 * whoever wrote a chunk that a gemm reads. */
static bool is_source(const starlin__launch_t *one, const starlin__launch_t *other)
{
    if (!other->found || other->span.chunk >= chunks_end(one) || one->span.chunk >= chunks_end(other))
        return false;
    if (one->span.kind == STARLIN__SPAN_GEMM)
        return other->writes == one->reads && other->span.sequence < one->span.sequence;
    return other->span.sequence == one->span.sequence && other->span.kind != one->span.kind;
}

/* The clocks of host and device agree within a few microseconds only: what cannot be is put right. */
static void finish(starlin__activity_t *activity, size_t i)
{
    starlin__span_t *span = &activity->launches[i].span;
    span->ready_us = span->launch_us;
    for (size_t j = i; j-- > 0;)
        if (is_source(&activity->launches[i], &activity->launches[j])) {
            double end_us = activity->launches[j].span.end_us;
            span->ready_us = end_us > span->ready_us ? end_us : span->ready_us;
            break;
        }
    if (span->start_us < span->launch_us)
        span->start_us = span->launch_us;
    if (span->ready_us > span->start_us)
        span->ready_us = span->start_us;
    if (span->end_us < span->start_us)
        span->end_us = span->start_us;
}

starlin_status_t starlin__activity_collect(starlin__activity_t *activity, starlin__timeline_t *timeline)
{
    size_t nmissing = activity->nlost;
    starlin_status_t status = STARLIN_SUCCESS;
    if (activity->n > 0)
        status = activity->ops->resolve(activity->state, activity->launches, activity->n);
    for (size_t i = 0; i < activity->n && status == STARLIN_SUCCESS; i++) {
        starlin__launch_t *launch = &activity->launches[i];
        launch->found = launch->found && !launch->broken;
        nmissing += !launch->found;
        if (!launch->found)
            continue;
        finish(activity, i);
        starlin__timeline_add(timeline, &launch->span);
    }
    if (nmissing > 0)
        starlin__log("activity: the times of %zu launches of %zu are not known (%s)", nmissing,
                     activity->n + activity->nlost, activity->ops->source);
    activity->n = activity->nlost = 0;
    return status;
}
