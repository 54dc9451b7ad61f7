/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline: a ring of the newest spans behind one mutex. A span is 88 bytes and is copied in well under
 * a microsecond, so the lock is never held long enough to matter to a worker. Invariant: the newest
 * min(nadded, capacity) spans are valid, span number i (counted from 0) lies in slot i % capacity. */
#include "record/timeline.h"

#include <pthread.h>
#include <stdatomic.h>

struct starlin__timeline {
    atomic_bool enabled; /* read without the lock: a timeline that is off costs one load */
    pthread_mutex_t lock;
    size_t capacity;
    uint64_t nadded; /* since the last clear */
    starlin__span_t spans[];
};

starlin_status_t starlin__timeline_create(size_t capacity, starlin__timeline_t **timeline_p)
{
    if (capacity == 0 || capacity > (SIZE_MAX - sizeof(starlin__timeline_t)) / sizeof(starlin__span_t))
        return starlin__error(STARLIN_ERR_INVALID, "timeline: capacity of %zu spans", capacity);
    starlin__timeline_t *timeline =
        starlin__alloc(sizeof(starlin__timeline_t) + capacity * sizeof(starlin__span_t));
    if (timeline == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "timeline: no memory for %zu spans", capacity);
    int ret = pthread_mutex_init(&timeline->lock, NULL);
    if (ret != 0) {
        starlin__free(timeline);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "timeline: pthread_mutex_init returned %d", ret);
    }
    atomic_init(&timeline->enabled, false);
    timeline->capacity = capacity;
    *timeline_p = timeline;
    return STARLIN_SUCCESS;
}

void starlin__timeline_destroy(starlin__timeline_t *timeline)
{
    if (timeline == NULL)
        return;
    pthread_mutex_destroy(&timeline->lock);
    starlin__free(timeline);
}

void starlin__timeline_enable(starlin__timeline_t *timeline, bool enabled)
{
    atomic_store_explicit(&timeline->enabled, enabled, memory_order_release);
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
    timeline->spans[timeline->nadded % timeline->capacity] = *span;
    timeline->nadded++;
    pthread_mutex_unlock(&timeline->lock);
}

size_t starlin__timeline_count(starlin__timeline_t *timeline, bool *overwritten_p)
{
    pthread_mutex_lock(&timeline->lock);
    bool overwritten = timeline->nadded > timeline->capacity;
    size_t nheld = overwritten ? timeline->capacity : (size_t)timeline->nadded;
    pthread_mutex_unlock(&timeline->lock);
    if (overwritten_p != NULL)
        *overwritten_p = overwritten;
    return nheld;
}

size_t starlin__timeline_read(starlin__timeline_t *timeline, starlin__span_t *spans, size_t capacity)
{
    pthread_mutex_lock(&timeline->lock);
    uint64_t nheld = timeline->nadded < timeline->capacity ? timeline->nadded : timeline->capacity;
    size_t ncopied = nheld < capacity ? (size_t)nheld : capacity;
    uint64_t first = timeline->nadded - nheld;
    for (size_t i = 0; i < ncopied; i++)
        spans[i] = timeline->spans[(first + i) % timeline->capacity];
    pthread_mutex_unlock(&timeline->lock);
    return ncopied;
}
