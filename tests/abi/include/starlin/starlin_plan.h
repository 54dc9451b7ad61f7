/* SPDX-License-Identifier: BSD-3-Clause */
/* How a chunk list came about: as text for people, as figures for programs. All of it is the same on every
 * rank, local, thread-safe and does not block; texts belong to the chunking. Times are of one step over the
 * planned operations (summary.nplanned of them), in microseconds; 0 where there is none. */
#ifndef STARLIN_STARLIN_PLAN_H
#define STARLIN_STARLIN_PLAN_H

#include "starlin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum starlin_plan_source {
    STARLIN_PLAN_ASKED = 0,     /* count or rows said so */
    STARLIN_PLAN_ESTIMATED = 1, /* simulation alone */
    STARLIN_PLAN_MEASURED = 2,  /* lists were run in turn */
    STARLIN_PLAN_WISDOM = 3     /* an earlier measurement */
} starlin_plan_source_t;

/* "asked", "estimated", "measured", "wisdom"; NULL for a value that is none. Static. */
STARLIN_API const char *starlin_plan_source_name(starlin_plan_source_t source);

/* How long planning took, and what the chosen list and one chunk take. */
typedef struct starlin_plan_summary {
    size_t struct_size; /* 0: this version's */
    starlin_plan_source_t source;
    double planning_us;
    double predicted_us; /* the chosen list, simulated */
    double measured_us;  /* the chosen list, run; with wisdom as it was measured then */
    double serial_us;    /* the list of the fewest chunks: run, else simulated */
    size_t nplanned;     /* operations that a step was made of: all, or the first of many alike */
    size_t ncandidates;
    const char *reason; /* why this list */
    const char *notice; /* what the user should know, such as damaged wisdom; NULL: nothing */
} starlin_plan_summary_t;

#define STARLIN_PLAN_SUMMARY_INIT                                                                            \
    {                                                                                                        \
        .struct_size = sizeof(starlin_plan_summary_t)                                                        \
    }

/* Fills as much of *summary_p as its struct_size covers. ERR_INVALID: an argument is NULL. */
STARLIN_API starlin_status_t starlin_chunking_plan_summary(const starlin_chunking_t *chunking,
                                                           starlin_plan_summary_t *summary_p);

/* A list that was considered. */
typedef struct starlin_plan_candidate {
    size_t struct_size; /* 0: this version's */
    const char *origin; /* "equal", "tapered", "simulation" */
    const char *rows;   /* "3072x2,1536,512" */
    size_t nchunks;
    double simulated_us;
    double measured_us; /* median over the rounds, each of the slowest rank */
    double spread_us;   /* the median less the fastest round */
    size_t nrounds;     /* that it was run in */
    bool refused;       /* a backend cannot run it */
    bool chosen;
} starlin_plan_candidate_t;

#define STARLIN_PLAN_CANDIDATE_INIT                                                                          \
    {                                                                                                        \
        .struct_size = sizeof(starlin_plan_candidate_t)                                                      \
    }

/* Candidate i of summary.ncandidates, in the order in which they were thought of. ERR_INVALID: an argument is
 * NULL, or i is not below their number. */
STARLIN_API starlin_status_t starlin_chunking_plan_candidate(const starlin_chunking_t *chunking, size_t i,
                                                             starlin_plan_candidate_t *candidate_p);

/* Describes the planning in lines of text, whose form may change between versions.
 *   text      size bytes of the caller's that are written, always with a 0 at the end (cut short if need be);
 *             NULL only if size is 0
 *   length_p  the whole text's length without its end; may be NULL
 * ERR_INVALID: chunking is NULL; text is NULL and size is not 0. */
STARLIN_API starlin_status_t starlin_chunking_explain(const starlin_chunking_t *chunking, char *text,
                                                      size_t size, size_t *length_p);

#ifdef __cplusplus
}
#endif

#endif
