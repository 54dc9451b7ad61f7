/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner's parts. Candidates are thought of (candidates), simulated (sketch, simulate), run in turn
 * (rehearse, in an order that race decides) and remembered (wisdom); chunking puts them together. Every
 * decision is made from figures that all ranks have alike. */
#ifndef STARLIN_PLAN_H
#define STARLIN_PLAN_H

#include "graph/graph.h"
#include "starlin/starlin_plan.h"

enum {
    STARLIN__MOST_CANDIDATES = 14, /* that are run */
    STARLIN__MOST_LISTS = 64,      /* that are simulated */
    STARLIN__MOST_ROUNDS = 9,
    STARLIN__MOST_STEPS = 8,   /* timed ones of a turn */
    STARLIN__MOST_ALIKE = 4,   /* operations that are run where many repeat */
    STARLIN__MOST_PLANNED = 16 /* operations that are run at all */
};

typedef struct starlin__candidate {
    starlin_plan_candidate_t told; /* what the public sees */
    int64_t rows[STARLIN__MAX_CHUNKS];
    char text[160];                         /* of the rows */
    double rounds_us[STARLIN__MOST_ROUNDS]; /* of the slowest rank */
    bool is_out;
} starlin__candidate_t;

/* How a list came about. */
typedef struct starlin__planning {
    starlin_plan_summary_t told;
    size_t noperations, chosen;
    size_t reference; /* of the candidates that can be run the shortest: one chunk, unless that is refused */
    size_t nlists;    /* the candidates, and behind them lists that are simulated alone */
    starlin__candidate_t lists[STARLIN__MOST_LISTS];
    char reason[224], notice[224];
} starlin__planning_t;

/* What is planned. */
typedef struct starlin__job {
    starlin_context_t *context;
    int64_t m;
    const starlin_operation_t *operations; /* of this version's size */
    size_t noperations, period;            /* that are run; they repeat after so many */
    unsigned nblocks;
    double limit_us;
} starlin__job_t;

/* "OPERATOR,n1024,k2048,f32,..."; not local: without what may differ between ranks. */
void starlin__operation_text(const starlin_operation_t *operation, bool is_local, char *text, size_t size);

/* Plans; *planning_p must be freed even where that fails. Collective. */
starlin_status_t starlin__plan(starlin__job_t *job, starlin_effort_t effort,
                               starlin__planning_t **planning_p);

/* --- candidates: pure */

/* Appends the ladder: 1, 2, 4, ... 32 chunks, on a device tapered lists too; or the lists that only the
 * simulation looks at. A list that is there already is left out, and one whose chunks would not reach into
 * all blocks. */
void starlin__ladder_add(starlin__planning_t *planning, int64_t m, unsigned nblocks, bool is_device);
void starlin__family_add(starlin__planning_t *planning, int64_t m, unsigned nblocks, bool is_device);
void starlin__list_add(starlin__planning_t *planning, const char *origin, const int64_t *rows,
                       size_t nchunks);

/* --- sketches: the tasks of a list, and how long they would take */

enum { STARLIN__MOST_PREDECESSORS = 2 * STARLIN__MOST_ACCESSES };

typedef struct starlin__sketch_task {
    starlin__stage_kind_t kind;
    bool is_exact;     /* nominal_us is what it takes */
    double nominal_us; /* at built-in speeds, without the cost of having a task at all */
    unsigned npredecessors, predecessors[STARLIN__MOST_PREDECESSORS];
    double end_us; /* while simulating; negative: has not begun */
} starlin__sketch_task_t;

typedef struct starlin__sketch {
    size_t ntasks;
    unsigned nservers; /* that compute */
    starlin__sketch_task_t tasks[];
} starlin__sketch_t;

/* A task takes fixed_us + factor * nominal_us, by kind. */
typedef struct starlin__prices {
    double fixed_us[STARLIN__NSTAGE_KINDS], factor[STARLIN__NSTAGE_KINDS];
} starlin__prices_t;

/* The tasks of all operations in the order of submission. Local. starlin__free() it. */
starlin_status_t starlin__sketch_create(const starlin__job_t *job, const starlin__candidate_t *list,
                                        starlin__sketch_t **sketch_p);
/* Built-in speeds. */
starlin__prices_t starlin__prices_builtin(const starlin_context_t *context);

/* Pure: two resources, compute and link. A collective waits for those before it; of tasks that compute the
 * first that is ready goes first. */
double starlin__simulate(starlin__sketch_t *sketch, const starlin__prices_t *prices);
/* Pure: changes the prices until the simulated times are like the measured ones, as far as possible. */
void starlin__prices_fit(starlin__sketch_t *const *sketches, const double *measured_us, size_t count,
                         starlin__prices_t *prices);

/* --- race: pure, given the rounds */

typedef struct starlin__round {
    size_t count; /* of candidates that take part, in this order */
    size_t candidates[STARLIN__MOST_CANDIDATES];
    unsigned nwarm, nsteps;                   /* steps of each: not timed, timed */
    double step_us[STARLIN__MOST_CANDIDATES]; /* out: by place, of the slowest rank; negative: refused */
    double elapsed_us;                        /* out: since planning began, of the slowest rank */
} starlin__round_t;

typedef starlin_status_t (*starlin__round_fn_t)(void *arg, starlin__round_t *round);
/* May append candidates, once, after the first round. */
typedef starlin_status_t (*starlin__propose_fn_t)(void *arg);

starlin_status_t starlin__race(starlin__planning_t *planning, double limit_us, starlin__round_fn_t run,
                               starlin__propose_fn_t propose, void *arg);
/* The choice among what has been measured so far, and why. */
void starlin__race_decide(starlin__planning_t *planning);

/* --- rehearse */

/* Matrices and calls of a job for one list; `is_real`: with memory, filled with harmless numbers. */
typedef struct starlin__operands {
    size_t ncalls, nmatrices;
    bool is_real;
    starlin__call_t *calls;
    starlin_matrix_t **matrices;
} starlin__operands_t;

starlin_status_t starlin__operands_create(const starlin__job_t *job, const int64_t *rows, size_t nchunks,
                                          bool is_real, starlin__operands_t *operands);
void starlin__operands_destroy(starlin__operands_t *operands);

/* Simulates all lists, with speeds fitted to what was measured, if anything was. The fastest becomes a
 * candidate if it is none. Collective. */
starlin_status_t starlin__plan_simulate(const starlin__job_t *job, starlin__planning_t *planning);

/* Runs the candidates in turn and decides; of operations that repeat only a few where a step is long.
 * ERR_NO_MEMORY: operands cannot be had. Collective. */
starlin_status_t starlin__rehearse(starlin__job_t *job, double begin_us, starlin__planning_t *planning);

/* The slowest rank's values, or the failure of the lowest rank that has one. Collective. */
starlin_status_t starlin__agree_most(starlin_context_t *context, starlin_status_t status, double *values,
                                     size_t count);

/* --- wisdom */

typedef struct starlin__wisdom {
    size_t nchunks;
    int64_t rows[STARLIN__MAX_CHUNKS];
    uint64_t measured_ns, serial_ns;
} starlin__wisdom_t;

/* Looks the key up in the file. False: not there; `notice` says what is wrong with the file, if anything is.
 */
bool starlin__wisdom_load(const char *path, const char *key, starlin__wisdom_t *wisdom, char *notice,
                          size_t size);
/* Puts it into the file, in place of the key's older entry. `notice`: why that was not possible. */
void starlin__wisdom_save(const char *path, const char *key, const starlin__wisdom_t *wisdom, char *notice,
                          size_t size);

#endif
