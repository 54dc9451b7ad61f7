/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring lies behind one mutex: a span is copied in well under a microsecond, so the lock is never held
 * long enough to matter to a worker. Invariant: the newest min(nadded, capacity) spans are valid, span number
 * i (counted from 0) lies in slot i % capacity. */
#include "record/timeline.h"

#include <pthread.h>
#include <stdatomic.h>

struct starlin__timeline {
    atomic_bool enabled; /* read without the lock: a timeline that is off costs one load */
    pthread_mutex_t lock;
    size_t capacity;
    uint64_t nadded;        /* since the last clear */
    starlin__span_t *spans; /* NULL until enabled */
};

starlin_status_t starlin__timeline_create(size_t capacity, starlin__timeline_t **timeline_p)
{
    if (capacity == 0 || capacity > SIZE_MAX / sizeof(starlin__span_t))
        return starlin__error(STARLIN_ERR_INVALID, "timeline: capacity of %zu spans", capacity);
    starlin__timeline_t *timeline = starlin__alloc(sizeof *timeline);
    if (timeline == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "timeline: no memory");
    pthread_mutex_init(&timeline->lock, NULL);
    timeline->capacity = capacity;
    *timeline_p = timeline;
    return STARLIN_SUCCESS;
}

void starlin__timeline_destroy(starlin__timeline_t *timeline)
{
    if (timeline == NULL)
        return;
    pthread_mutex_destroy(&timeline->lock);
    starlin__free(timeline->spans);
    starlin__free(timeline);
}

starlin_status_t starlin__timeline_enable(starlin__timeline_t *timeline, bool enabled)
{
    if (enabled && timeline->spans == NULL)
        timeline->spans = starlin__alloc(timeline->capacity * sizeof *timeline->spans);
    if (enabled && timeline->spans == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "timeline: no memory for %zu spans", timeline->capacity);
    atomic_store_explicit(&timeline->enabled, enabled, memory_order_release);
    return STARLIN_SUCCESS;
}

bool starlin__timeline_enabled(const starlin__timeline_t *timeline)
{
    return atomic_load_explicit(&timeline->enabled, memory_order_acquire);
}

void starlin__timeline_clear(starlin__timeline_t *timeline)
{
    pthread_mutex_lock(&timeline->lock);
    timeline->nadded = 0;
    pthread_mutex_unlock(&timeline->lock);
}

void starlin__timeline_add(starlin__timeline_t *timeline, const starlin__span_t *span)
{
    if (!starlin__timeline_enabled(timeline))
        return;
    pthread_mutex_lock(&timeline->lock);
    timeline->spans[timeline->nadded++ % timeline->capacity] = *span;
    pthread_mutex_unlock(&timeline->lock);
}

size_t starlin__timeline_count(starlin__timeline_t *timeline, bool *overwritten_p)
{
    pthread_mutex_lock(&timeline->lock);
    uint64_t nadded = timeline->nadded;
    pthread_mutex_unlock(&timeline->lock);
    if (overwritten_p != NULL)
        *overwritten_p = nadded > timeline->capacity;
    return nadded > timeline->capacity ? timeline->capacity : (size_t)nadded;
}

size_t starlin__timeline_read(starlin__timeline_t *timeline, starlin__span_t *spans, size_t capacity)
{
    pthread_mutex_lock(&timeline->lock);
    uint64_t nheld = timeline->nadded < timeline->capacity ? timeline->nadded : timeline->capacity;
    size_t ncopied = nheld < capacity ? (size_t)nheld : capacity;
    for (size_t i = 0; i < ncopied; i++)
        spans[i] = timeline->spans[(timeline->nadded - nheld + i) % timeline->capacity];
    pthread_mutex_unlock(&timeline->lock);
    return ncopied;
}
