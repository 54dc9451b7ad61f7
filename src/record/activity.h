/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device really did. Tasks on a device end when their work is launched, so their spans come from the
 * device: each launch is marked on the host, and a source finds out later when its kernels ran. Sources:
 *   cupti   activity records of the kernels: start, end, grid
 *   events  timing events around the launch; a collective's start is then when it could have started */
#ifndef STARLIN_ACTIVITY_H
#define STARLIN_ACTIVITY_H

#include "machine/device.h"
#include "record/timeline.h"

typedef struct starlin__activity starlin__activity_t;

/* One launch. The caller of begin fills in the span's identity; times are found later. */
typedef struct starlin__launch {
    starlin__span_t span; /* launch_us: host; start_us, end_us, grid: by the source */
    unsigned nchunks;     /* from span.chunk on; 0 counts as 1 */
    const void *reads;    /* matrix whose chunks have to be there first, and the one that is written */
    const void *writes;
    bool broken; /* not marked in full: no span */
    bool found;  /* start_us and end_us are set */
} starlin__launch_t;

static inline starlin__stream_t starlin__launch_stream(const starlin__launch_t *launch)
{
    return launch->span.kind == STARLIN__SPAN_COLLECTIVE ? STARLIN__STREAM_COMM : STARLIN__STREAM_COMPUTE;
}

/* Slots count from 0 to capacity - 1. begin and end are called by the launching thread, one launch per slot;
 * the rest while nothing is in flight. */
typedef struct starlin__activity_ops {
    const char *source;
    starlin_status_t (*open)(starlin__device_t *device, size_t capacity, void **state_p);
    void (*close)(void *state);
    /* `after` (may be NULL): the work waits for this event on its stream. False: the mark is lost. */
    bool (*begin)(void *state, size_t slot, starlin__stream_t stream, starlin__event_t *after);
    bool (*end)(void *state, size_t slot, starlin__stream_t stream);
    /* Finds the times of slots 0 to n - 1; the slots are free again. The device is idle. */
    starlin_status_t (*resolve)(void *state, starlin__launch_t *launches, size_t n);
} starlin__activity_ops_t;

extern const starlin__activity_ops_t starlin__activity_cupti_ops, starlin__activity_events_cuda_ops;
/* Those that are built, in order of preference, then NULL. Written by CMake. */
extern const starlin__activity_ops_t *const starlin__activity_registry[];

/* The best source that works here, or the one of this name (NULL, "" or "auto": any); enabled. */
starlin_status_t starlin__activity_open(starlin__device_t *device, const char *asked,
                                        starlin__activity_t **activity_p);
/* A given source, not enabled. */
starlin_status_t starlin__activity_create(const starlin__activity_ops_t *ops, starlin__device_t *device,
                                          size_t capacity, starlin__activity_t **activity_p);
void starlin__activity_close(starlin__activity_t *activity); /* NULL does nothing */
const char *starlin__activity_source(const starlin__activity_t *activity);

/* Opens or closes the source. While nothing is in flight; what was not collected is lost. */
starlin_status_t starlin__activity_enable(starlin__activity_t *activity, bool enabled);

/* Around one launch, on the launching thread. NULL: no room until the next collect, or not enabled; ending
 * NULL does nothing. */
starlin__launch_t *starlin__activity_begin(starlin__activity_t *activity, const starlin__launch_t *what,
                                           starlin__event_t *after);
void starlin__activity_end(starlin__activity_t *activity, starlin__launch_t *launch);

/* Adds the spans of all launches to the timeline. Nothing is in flight and the device is idle. */
starlin_status_t starlin__activity_collect(starlin__activity_t *activity, starlin__timeline_t *timeline);
/* Is it time to collect, lest launches get lost? */
bool starlin__activity_is_full(starlin__activity_t *activity);

#endif
