/* SPDX-License-Identifier: BSD-3-Clause */
/* What ran when, and why a step took longer than it could have. A step is a group of operators that overlap
 * in time; an operator is a few stages per chunk, and each that ran is a span. A report belongs to the
 * caller, owns its strings, outlives its context and may be read by several threads at once. Times are
 * microseconds of CLOCK_MONOTONIC; a figure that means nothing is NaN. Nothing here is collective over ranks.
 *
 * In structs that are filled in, struct_size says how much the caller knows of (0: all of this version); what
 * the library does not know becomes zero. */
#ifndef STARLIN_STARLIN_REPORT_H
#define STARLIN_STARLIN_REPORT_H

#include "starlin/starlin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why time beyond the ideal was spent: number, short name, text. Never renumbered. */
#define STARLIN_CAUSE_MAP(X)                                                                                 \
    X(CORE, 0, "core", "waited for SMs or a core")                                                           \
    X(LAUNCH, 1, "launch", "launch latency")                                                                 \
    X(PEER, 2, "peer", "a peer came late")                                                                   \
    X(LINK, 3, "link", "link slower than planned")                                                           \
    X(TAIL, 4, "tail", "collective with no gemm left to hide it")                                            \
    X(HEAD, 5, "head", "gemm before a collective could start")                                               \
    X(GEMM, 6, "gemm", "gemm slowed down by collectives")                                                    \
    X(CHUNKING, 7, "chunking", "chunks cost more than the whole")                                            \
    X(ROWWISE, 8, "rowwise", "row-wise work beside no collective")                                           \
    X(IDLE, 9, "idle", "idle gaps")                                                                          \
    X(QUEUE, 10, "queue", "an earlier collective was running")

typedef enum starlin_cause {
#define STARLIN_CAUSE_ENUM(name, value, short_name, text) STARLIN_CAUSE_##name = value,
    STARLIN_CAUSE_MAP(STARLIN_CAUSE_ENUM)
#undef STARLIN_CAUSE_ENUM
        STARLIN_NCAUSES
} starlin_cause_t;
/* Static short name and text of a cause; NULL for a value that is none. Thread-safe. */
STARLIN_API const char *starlin_cause_name(starlin_cause_t cause);
STARLIN_API const char *starlin_cause_text(starlin_cause_t cause);

/* Switches recording of the newest 65536 spans on or off (off at first), and forgets what was recorded. The
 * first call that switches it on allocates memory, which the context keeps. Errors: ERR_INVALID (no context),
 * ERR_NO_MEMORY, ERR_UNSUPPORTED (STARLIN_ACTIVITY names a source that is not here). */
STARLIN_API starlin_status_t starlin_report_enable(starlin_context_t *context, bool enabled);
STARLIN_API starlin_status_t starlin_report_reset(starlin_context_t *context);

typedef struct starlin_report starlin_report_t;

typedef struct starlin_report_options {
    size_t struct_size;
    size_t operators_per_step; /* at least so many make a step; those that overlap in time always do; 0: 1 */
    /* Of operators_per_step operators, measured: all gemms and row-wise work alone, all collectives alone,
     * one after the other. 0: estimated from what ran, serial_us as the sum of the two. */
    double compute_us, comm_us, serial_us;
    double launch_us;                   /* a start this late is launch latency, beyond it a wait; 0: 10 us */
    const starlin_chunking_t *chunking; /* its fallback is reported; may be NULL */
} starlin_report_options_t;

#define STARLIN_REPORT_OPTIONS_INIT                                                                          \
    {                                                                                                        \
        .struct_size = sizeof(starlin_report_options_t)                                                      \
    }

/* Makes a report of what this rank has recorded. Call it after a wait. How long this rank waited for its
 * peers inside a collective is part of TAIL or LINK, unless starlin_report_set_arrivals() tells it apart.
 * `options` may be NULL. Errors: ERR_INVALID (nothing recorded: the text says whether recording was on; a
 * negative time), ERR_UNSUPPORTED (an option of a later version), ERR_NO_MEMORY. */
STARLIN_API starlin_status_t starlin_report_create(starlin_context_t *context,
                                                   const starlin_report_options_t *options,
                                                   starlin_report_t **report_p);
STARLIN_API void starlin_report_destroy(starlin_report_t *report); /* NULL does nothing */

/* Says when the last rank had started each collective, on this rank's clock, and works the figures out anew
 * with PEER among the causes. One time per span, 0 where not known; the array stays the caller's. Not while
 * another thread reads. Errors: ERR_INVALID, ERR_NO_MEMORY; the report is then as it was. */
STARLIN_API starlin_status_t starlin_report_set_arrivals(starlin_report_t *report, const double *arrival_us,
                                                         size_t narrivals);

/* Writes text for people as snprintf does: at most nbytes with the terminating zero, `text` may be NULL if
 * nbytes is 0; returns the length of the whole text. Report NULL: "", 0. */
STARLIN_API size_t starlin_report_print(const starlin_report_t *report, char *text, size_t nbytes);

typedef struct starlin_report_summary {
    size_t struct_size;
    const char *configuration; /* backends, versions, policy, binding */
    const char *fallback;      /* why chunking was not done as asked, or NULL */
    const char *source; /* of the times: "tasks"; on a device "cupti" or "events" (launch as part of start) */
    size_t nsteps;
    double min_us, median_us, max_us; /* of time_us over the steps; means: STARLIN_REPORT_MEAN */
    size_t nchunks;                   /* of the newest operator */
    unsigned ctas;                    /* most thread blocks of a collective; 0 on the host or not known */
} starlin_report_summary_t;

/* Figures of one step, or their means over the steps. */
typedef struct starlin_report_step {
    size_t struct_size;
    uint64_t first_sequence, noperators; /* operators are counted from 1 in a context */
    double start_us;                     /* 0 in the means */
    double time_us;                      /* first input ready to last span ended */
    double ideal_us;                     /* max(compute_us, comm_us) */
    double compute_us; /* gemms and row-wise work, alone: as given, else estimated from the spans */
    double comm_us;    /* the same for the collectives */
    double serial_us;  /* one after the other: as given, else compute_us + comm_us */
    double compute_busy_us, comm_busy_us, beside_us; /* at least one stage of the kind ran; of both */
    /* 100 (serial_us - time) / min(compute_us, comm_us), in the means of the median time. NaN: comm_us is
     * below 1 us or 1% of compute_us, which is noise, or nothing was computed. */
    double hidden_pct;
    double gemm_slowdown; /* factor on a gemm's time while a collective ran; NaN: not known */
} starlin_report_step_t;

/* A worker, a stream or the link, over all steps: busy_us + idle_us is the sum of their time_us. */
typedef struct starlin_report_lane {
    size_t struct_size;
    unsigned lane; /* worker or stream number, as in the spans */
    bool is_link;
    uint64_t nspans;
    double busy_us, idle_us;
} starlin_report_lane_t;

/* One collective and the stage before it. */
typedef struct starlin_report_collective {
    size_t struct_size;
    uint64_t sequence;
    unsigned chunk;
    double time_us; /* start to end */
    double gap_us;  /* its start minus the end of the stage before it in its operator; 0: it is first */
    starlin_cause_t cause; /* of the gap: CORE, LAUNCH or QUEUE, whichever took most of it */
    double exposed_us;     /* it ran and nothing was computed */
} starlin_report_collective_t;

/* One stage of one chunk. */
typedef enum starlin_report_kind {
    STARLIN_REPORT_GEMM = 0,
    STARLIN_REPORT_COLLECTIVE = 1,
    STARLIN_REPORT_ROWWISE = 2
} starlin_report_kind_t;

typedef struct starlin_report_span {
    size_t struct_size;
    starlin_report_kind_t kind;
    const char *op;    /* the operator's name, such as "row_linear"; NULL: not known */
    const char *stage; /* the stage's name, such as "gemm", "allgather", "finish" */
    unsigned lane;
    bool is_link;
    uint64_t sequence;
    unsigned chunk, grid; /* grid: thread blocks; 0 on the host or not known */
    int64_t rows;
    double nbytes;   /* of a collective */
    double ready_us; /* its inputs were complete; then handed to a worker, stream or network; then it ran */
    double launch_us, start_us, end_us;
} starlin_report_span_t;

/* How many. Steps: oldest first; lanes: rising, the link last; collectives, spans: by operator, chunk, start.
 */
STARLIN_API size_t starlin_report_nsteps(const starlin_report_t *report);
STARLIN_API size_t starlin_report_nlanes(const starlin_report_t *report);
STARLIN_API size_t starlin_report_ncollectives(const starlin_report_t *report);
STARLIN_API size_t starlin_report_nspans(const starlin_report_t *report);

#define STARLIN_REPORT_MEAN SIZE_MAX /* instead of a step's number: the means over all steps */

/* Fill in *_p. ERR_INVALID: NULL, a number that is too large, or a struct_size that cannot be. */
STARLIN_API starlin_status_t starlin_report_summary(const starlin_report_t *report,
                                                    starlin_report_summary_t *summary_p);
STARLIN_API starlin_status_t starlin_report_step(const starlin_report_t *report, size_t i,
                                                 starlin_report_step_t *step_p);
STARLIN_API starlin_status_t starlin_report_lane(const starlin_report_t *report, size_t i,
                                                 starlin_report_lane_t *lane_p);
STARLIN_API starlin_status_t starlin_report_collective(const starlin_report_t *report, size_t i,
                                                       starlin_report_collective_t *collective_p);
STARLIN_API starlin_status_t starlin_report_span(const starlin_report_t *report, size_t i,
                                                 starlin_report_span_t *span_p);

/* What a cause cost a step; all together: time_us - ideal_us. GEMM and CHUNKING may be negative, QUEUE is 0;
 * NaN: no such step or cause. */
STARLIN_API double starlin_report_exposed_us(const starlin_report_t *report, size_t step,
                                             starlin_cause_t cause);
/* Rows of chunk i of the newest operator; 0: no such chunk. */
STARLIN_API int64_t starlin_report_chunk_rows(const starlin_report_t *report, size_t i);

#ifdef __cplusplus
}
#endif
#endif
