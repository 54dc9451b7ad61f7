/* SPDX-License-Identifier: BSD-3-Clause */
/* An operator to be measured: one const table in op_NAME.c. It says how the graph is made, as a user of the
 * library would write it, and how a program by hand does the same. */
#ifndef PERF_OP_H
#define PERF_OP_H

#include "hand.h"
#include "problem.h"

typedef struct perf_op perf_op_t;

/* One case as a task graph: matrices for one chunking, and the layers submitted over them. */
typedef struct perf_graph {
    starlin_context_t *context;
    const perf_op_t *op;
    const perf_problem_t *problem;
    starlin_chunking_t *chunking;
    starlin_matrix_t *x, *w;     /* w belongs to the caller */
    starlin_matrix_t *y[2];      /* [1] only for a chain: layers write them in turn */
    starlin_matrix_t *next_x[2]; /* chain: views of y as the next layer's input */
} perf_graph_t;

/* What a program by hand is asked to do; each in `nchunks` chunks. */
typedef enum perf_baseline {
    PERF_BASELINE_LOOP, /* chunk i+1 is multiplied while chunk i is sent; with one chunk one after the other
                         */
    PERF_BASELINE_GEMM, /* gemms and roundings alone */
    PERF_BASELINE_COMM  /* collectives alone, all in flight */
} perf_baseline_t;

enum { PERF_NBUFFERS = 6 };

/* The same layer by hand. Rows lie chunk by chunk, as the library's own do. */
typedef struct perf_program {
    const perf_op_t *op;
    const perf_problem_t *problem;
    perf_hand_t *hand;
    const void *w;
    void *buffers[PERF_NBUFFERS]; /* the op's; freed by perf_program_destroy() */
} perf_program_t;

struct perf_op {
    const char *name; /* of --op */
    bool splits_n;    /* the ranks share N, else K */
    /* Describes a layer for planning; returns how many operations it has, at most PERF_MAX_OPERATIONS. */
    size_t (*operations)(const perf_problem_t *problem, starlin_operation_t *operations);
    /* Makes x and y for graph->chunking. */
    bool (*graph_create)(perf_graph_t *graph, perf_error_t *error);
    bool (*graph_submit)(perf_graph_t *graph, unsigned layer, perf_error_t *error);
    /* Makes and prepares the buffers. */
    bool (*program_create)(perf_program_t *program, perf_error_t *error);
    /* Puts the inputs where a run in so many chunks wants them. */
    bool (*program_fill)(perf_program_t *program, unsigned nchunks, perf_error_t *error);
    bool (*program_run)(perf_program_t *program, perf_baseline_t baseline, unsigned nchunks,
                        perf_error_t *error);
    /* The result of a loop of so many chunks, as perf_reference_compare() wants it. */
    bool (*program_read)(perf_program_t *program, unsigned nchunks, void *y, perf_error_t *error);
};

enum { PERF_MAX_OPERATIONS = 16, PERF_PLANNED_LAYERS = 4 /* a longer chain repeats itself */ };

/* All of them, the default first; ends with NULL. */
extern const perf_op_t *const perf_ops[];
extern const perf_op_t perf_op_row_linear, perf_op_column_linear;

/* Plans the rows as the request says. Collective: a disagreement is the same error on every rank. */
bool perf_graph_plan(perf_graph_t *graph, const starlin_chunking_options_t *request, perf_error_t *error);
/* Submits all layers and waits for them. */
bool perf_graph_run(perf_graph_t *graph, perf_error_t *error);
/* Where the last layer's result is. */
starlin_matrix_t *perf_graph_output(const perf_graph_t *graph);
void perf_graph_release(perf_graph_t *graph);

bool perf_program_create(perf_program_t *program, perf_error_t *error);
void perf_program_destroy(perf_program_t *program);

/* For ops: a buffer of the program. */
bool perf_program_alloc(perf_program_t *program, size_t buffer, size_t nbytes, perf_error_t *error);

/* What the ranks sum: the dtype, or f32 where partials travel in f32. */
starlin_dtype_t perf_problem_sum_dtype(const perf_problem_t *problem);

/* The chunks of a program. Where rows are sharded, chunk c takes the c-th share of every rank's block, and
 * blocks are padded to the same length, as fixed-size collectives need; elsewhere there is one block. */
typedef struct perf_layout {
    int64_t nblocks, block; /* rows of a block, with its padding */
    size_t nchunks;
    int64_t share[PERF_MAX_SLOTS]; /* rows that chunk c takes of each block */
    int64_t first[PERF_MAX_SLOTS]; /* where they begin in it */
} perf_layout_t;
void perf_layout_make(const perf_problem_t *problem, unsigned nchunks, perf_layout_t *layout);
/* Calls `run` for each run of rows that is not padding: `at`, its first row in memory that lies chunk by
 * chunk; `row`, its first row of all M; stops at the first false. */
bool perf_layout_runs(const perf_problem_t *problem, const perf_layout_t *layout,
                      bool (*run)(void *arg, int64_t at, int64_t row, int64_t nrows), void *arg);
/* Rows in memory: of all blocks, with their padding. */
int64_t perf_layout_rows(const perf_problem_t *problem);

#endif
