/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of X and W: pure functions of seed and global coordinates. Rows of integers repeat: each is one
 * of PERF_PATTERNS patterns, drawn at random, so that the exact result is a small table. Rows of random
 * numbers do not. */
#ifndef PERF_INPUTS_H
#define PERF_INPUTS_H

#include "problem.h"

/* Which pattern a row of X or of W is. */
unsigned perf_inputs_row_of_x(const perf_problem_t *problem, int64_t row);
unsigned perf_inputs_row_of_w(const perf_problem_t *problem, int64_t row);

/* Element at the global column, of integers. W's patterns exist only without weights and without chain. */
int64_t perf_inputs_x(const perf_problem_t *problem, unsigned pattern, int64_t column);
int64_t perf_inputs_w(const perf_problem_t *problem, unsigned pattern, int64_t column);

/* The chain: the column of the one live element of row `row` of W, on which rank it is, and its sign;
 * and any element of that row in a rank's slice. */
typedef struct perf_live {
    int rank;
    int64_t column; /* within the slice */
    int sign;
} perf_live_t;
perf_live_t perf_inputs_chain_live(const perf_problem_t *problem, int64_t row);
int64_t perf_inputs_chain_w(const perf_problem_t *problem, int rank, int64_t row, int64_t column);

/* Fills this rank's slice, contiguous [m,k_local] or [n,k_local]. False: out of memory, or a weights file
 * that cannot be read. */
bool perf_inputs_fill_x(const perf_problem_t *problem, void *x, perf_error_t *error);
bool perf_inputs_fill_w(const perf_problem_t *problem, void *w, perf_error_t *error);

/* A reproducible random number of three coordinates. */
uint64_t perf_inputs_hash(uint64_t seed, uint64_t kind, uint64_t i, uint64_t j);

#endif
