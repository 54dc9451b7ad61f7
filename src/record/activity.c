/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches between two collections, in the order of their launch, and what their spans owe to each other.
 * Invariant: slots are taken under the lock and filled by their owner; they are read only by collect, when
 * nothing is in flight. */
#include "record/activity.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"

enum { CAPACITY = 4096 }; /* launches; an event pair each */

struct starlin__activity {
    const starlin__activity_ops_t *ops;
    starlin__device_t *device;
    pthread_mutex_t lock;
    void *state; /* the source's; NULL while it is not enabled */
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
    activity->device = device;
    activity->capacity = capacity;
    pthread_mutex_init(&activity->lock, NULL);
    *activity_p = activity;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__activity_open(starlin__device_t *device, const char *asked,
                                        starlin__activity_t **activity_p)
{
    bool automatic = asked == NULL || asked[0] == '\0' || strcmp(asked, "auto") == 0, tried = false;
    starlin_status_t status = STARLIN_SUCCESS;
    char built[64] = "auto";
    int length = (int)strlen(built);

    for (size_t i = 0; starlin__activity_registry[i] != NULL; i++) {
        const starlin__activity_ops_t *ops = starlin__activity_registry[i];
        length += snprintf(built + length, sizeof built - (size_t)length, ", %s", ops->source);
        if (!automatic && strcmp(asked, ops->source) != 0)
            continue;
        starlin__activity_t *activity = NULL;
        tried = true;
        status = starlin__activity_create(ops, device, CAPACITY, &activity);
        if (status == STARLIN_SUCCESS)
            status = starlin__activity_enable(activity, true);
        if (status == STARLIN_SUCCESS) {
            *activity_p = activity;
            return status;
        }
        starlin__log("activity: no %s: %s", ops->source, starlin_last_error());
        starlin__activity_close(activity);
    }
    return tried ? status
                 : starlin__error(STARLIN_ERR_UNSUPPORTED,
                                  "activity: STARLIN_ACTIVITY=\"%s\" is not built here (allowed: %s)",
                                  automatic ? "auto" : asked, built);
}

void starlin__activity_close(starlin__activity_t *activity)
{
    if (activity == NULL)
        return;
    (void)starlin__activity_enable(activity, false);
    pthread_mutex_destroy(&activity->lock);
    starlin__free(activity);
}

const char *starlin__activity_source(const starlin__activity_t *activity)
{
    return activity->ops->source;
}

starlin_status_t starlin__activity_enable(starlin__activity_t *activity, bool enabled)
{
    void *before = activity->state, *state = NULL;
    if (enabled == (before != NULL))
        return STARLIN_SUCCESS;
    if (enabled)
        STARLIN__FORWARD(activity->ops->open(activity->device, activity->capacity, &state));
    pthread_mutex_lock(&activity->lock);
    activity->state = state;
    activity->n = activity->nlost = 0;
    pthread_mutex_unlock(&activity->lock);
    if (!enabled)
        activity->ops->close(before);
    return STARLIN_SUCCESS;
}

starlin__launch_t *starlin__activity_begin(starlin__activity_t *activity, const starlin__launch_t *what,
                                           starlin__event_t *after)
{
    starlin__launch_t *launch = NULL;
    if (activity == NULL)
        return NULL;
    pthread_mutex_lock(&activity->lock);
    if (activity->state != NULL && activity->n < activity->capacity)
        launch = &activity->launches[activity->n++];
    else
        activity->nlost += activity->state != NULL;
    pthread_mutex_unlock(&activity->lock);
    if (launch == NULL)
        return NULL;
    *launch = *what;
    launch->found = false;
    launch->broken = !activity->ops->begin(activity->state, (size_t)(launch - activity->launches),
                                           starlin__launch_stream(launch), after);
    launch->span.launch_us = starlin__now_us();
    return launch;
}

void starlin__activity_end(starlin__activity_t *activity, starlin__launch_t *launch)
{
    if (launch != NULL && !activity->ops->end(activity->state, (size_t)(launch - activity->launches),
                                              starlin__launch_stream(launch)))
        launch->broken = true;
}

bool starlin__activity_is_full(starlin__activity_t *activity)
{
    pthread_mutex_lock(&activity->lock);
    bool full = 2 * activity->n > activity->capacity;
    pthread_mutex_unlock(&activity->lock);
    return full;
}

static bool overlap(const starlin__launch_t *a, const starlin__launch_t *b)
{
    return b->span.chunk < a->span.chunk + (a->nchunks > 0 ? a->nchunks : 1) &&
           a->span.chunk < b->span.chunk + (b->nchunks > 0 ? b->nchunks : 1);
}

/* A launch was ready when the last writer of what it reads had ended. The clocks of host and device agree
 * within a few microseconds only: what cannot be is put right. */
static void finish(starlin__activity_t *activity, size_t i)
{
    const starlin__launch_t *one = &activity->launches[i];
    starlin__span_t *span = &activity->launches[i].span;
    size_t j = i;
    while (j > 0 && !(activity->launches[j - 1].found && activity->launches[j - 1].writes == one->reads &&
                      overlap(one, &activity->launches[j - 1])))
        j--;
    span->ready_us = span->launch_us;
    if (j > 0 && activity->launches[j - 1].span.end_us > span->ready_us)
        span->ready_us = activity->launches[j - 1].span.end_us;
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
    if (activity->state != NULL && activity->n > 0)
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
