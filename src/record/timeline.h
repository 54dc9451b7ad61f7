/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline: what ran when, on which lane. Filled by tasks, the progress thread and the device's activity
 * records; read by the report. Clock: starlin__now_us(). */
#ifndef STARLIN_TIMELINE_H
#define STARLIN_TIMELINE_H

#include "base/base.h"

typedef enum starlin__span_kind {
    STARLIN__SPAN_GEMM,
    STARLIN__SPAN_COLLECTIVE,
    STARLIN__SPAN_ROWWISE
} starlin__span_kind_t;

#define STARLIN__LANE_LINK 1000u /* lane of the collectives; compute lanes are worker or stream numbers */

/* One stage of one chunk, as it ran. */
typedef struct starlin__span {
    starlin__span_kind_t kind;
    unsigned lane;
    uint64_t sequence; /* of the operator, counted from 1 in a context */
    const char *name;  /* static: of the stage, such as "gemm" */
    const char *op;    /* static: of the operator; may be NULL */
    unsigned chunk;
    unsigned grid;    /* CTAs, 0 on the host or unknown */
    double ready_us;  /* inputs complete */
    double launch_us; /* handed to the worker, stream or network */
    double start_us;  /* began to run */
    double end_us;
    double planned_us; /* what it takes alone, 0: not known */
    double flop;       /* of a gemm, 0: not known */
    double nbytes;     /* of a collective */
    int64_t rows;
} starlin__span_t;

/* A ring of the newest `capacity` spans. Its memory is allocated when it is first enabled; adding never
 * allocates. Thread-safe, but for enable. */
typedef struct starlin__timeline starlin__timeline_t;
starlin_status_t starlin__timeline_create(size_t capacity, starlin__timeline_t **timeline_p);
void starlin__timeline_destroy(starlin__timeline_t *timeline); /* NULL does nothing */
/* Off at first. ERR_NO_MEMORY: it stays off. */
starlin_status_t starlin__timeline_enable(starlin__timeline_t *timeline, bool enabled);
bool starlin__timeline_enabled(const starlin__timeline_t *timeline);
void starlin__timeline_clear(starlin__timeline_t *timeline);
void starlin__timeline_add(starlin__timeline_t *timeline, const starlin__span_t *span);
/* How many spans are held. overwritten_p (may be NULL): have older ones been lost since the last clear? */
size_t starlin__timeline_count(starlin__timeline_t *timeline, bool *overwritten_p);
/* Copies up to `capacity` spans, oldest first; returns how many. */
size_t starlin__timeline_read(starlin__timeline_t *timeline, starlin__span_t *spans, size_t capacity);

#endif
