/* SPDX-License-Identifier: BSD-3-Clause */
/* One layer to be measured, as one rank sees it, and the rule by which its inputs are made. */
#ifndef PERF_PROBLEM_H
#define PERF_PROBLEM_H

#include "base/base.h"
#include "weights.h"

#define PERF_PATTERNS 32 /* distinct rows of X and of W */

typedef struct perf_problem {
    int64_t m, n, k; /* k: global */
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
    unsigned layers;
    uint64_t seed;
    int rank, nranks;
    int64_t k_begin, k_local;      /* this rank's slice of K */
    bool chain;                    /* each layer's output is the next layer's input */
    const perf_weights_t *weights; /* NULL: W is made, as X is */
    bool random;                   /* what is made: random numbers instead of integers; no exact result */

    /* the rule of the integers, the same for any number of ranks; see problem.c */
    int64_t small, large; /* largest magnitudes of live and of cancelling values */
    int64_t live_stride;  /* every live_stride-th pair of K is live */
    int64_t live_offset;
} perf_problem_t;

/* Needs m, n, k, dtype, reduction, layers, seed, rank, nranks, weights and random; fills in the rest. */
void perf_problem_prepare(perf_problem_t *problem);

/* The slice of K of a rank: nearly equal; in whole pairs where cancelling pairs are used. */
int64_t perf_problem_slice(const perf_problem_t *problem, int rank, int64_t *begin_p);

/* Largest sum that stays exact: of a rank's partial, and of the partials of any ranks. */
int64_t perf_problem_sum_limit(starlin_dtype_t dtype, starlin_reduction_t reduction);

#endif
