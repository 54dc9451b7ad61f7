/* SPDX-License-Identifier: BSD-3-Clause */
/* One layer to be measured, as one rank sees it, and the values of its inputs: pure functions of seed and
 * global coordinates. Rows of integers repeat: each is one of PERF_PATTERNS patterns, drawn at random, so
 * that the exact result is a small table. Rows of random numbers do not. */
#ifndef PERF_PROBLEM_H
#define PERF_PROBLEM_H

#include "weights.h"

#define PERF_PATTERNS 32 /* distinct rows of X and of W */

typedef struct perf_problem {
    int64_t m, n, k; /* of all ranks together */
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
    unsigned layers;
    uint64_t seed;
    int rank, nranks;
    bool split_n;                  /* the ranks share N, else K */
    bool sequence_parallel;        /* X (where they share N) or Y is SHARD_ROWS */
    const perf_weights_t *weights; /* NULL: W is made, as X is */
    bool random;                   /* what is made: random numbers instead of integers; no exact result */

    /* filled in */
    int64_t k_begin, k_local, n_begin, n_local; /* this rank's slice of W */
    int64_t x_begin, x_rows, y_begin, y_rows;   /* this rank's rows of X and Y */
    bool chain;                                 /* each layer's output is the next layer's input */

    /* the rule of the integers, the same for any number of ranks; see problem.c */
    int64_t small, large; /* largest magnitudes of live and of cancelling values */
    int64_t live_stride;  /* every live_stride-th pair of K is live */
    int64_t live_offset;
} perf_problem_t;

/* Needs everything above "filled in". */
void perf_problem_prepare(perf_problem_t *problem);

/* The slice of K of a rank: nearly equal; in whole pairs where cancelling pairs are used. */
int64_t perf_problem_slice(const perf_problem_t *problem, int rank, int64_t *begin_p);

/* Largest sum that stays exact: of a rank's partial, and of the partials of any ranks. */
int64_t perf_problem_sum_limit(starlin_dtype_t dtype, starlin_reduction_t reduction);

/* Which pattern a row of X or of W is. */
unsigned perf_inputs_row_of_x(const perf_problem_t *problem, int64_t row);
unsigned perf_inputs_row_of_w(const perf_problem_t *problem, int64_t row);

/* Element at the global column, of integers. W's patterns exist only without weights and without chain. */
int64_t perf_inputs_x(const perf_problem_t *problem, unsigned pattern, int64_t column);
int64_t perf_inputs_w(const perf_problem_t *problem, unsigned pattern, int64_t column);

/* The chain: the column of the one live element of row `row` of W, on which rank it is, and its sign; and any
 * element of that row in a rank's slice. */
typedef struct perf_live {
    int rank;
    int64_t column; /* within the slice */
    int sign;
} perf_live_t;
perf_live_t perf_inputs_chain_live(const perf_problem_t *problem, int64_t row);
int64_t perf_inputs_chain_w(const perf_problem_t *problem, int rank, int64_t row, int64_t column);

/* Fills nrows rows of X from global row `first` on, contiguous [nrows,k_local], or this rank's slice of W,
 * contiguous [n_local,k_local]. False: out of memory, or a weights file that cannot be read. */
bool perf_inputs_fill_x(const perf_problem_t *problem, int64_t first, int64_t nrows, void *x,
                        perf_error_t *error);
bool perf_inputs_fill_w(const perf_problem_t *problem, void *w, perf_error_t *error);

#endif
