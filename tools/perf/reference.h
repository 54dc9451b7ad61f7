/* SPDX-License-Identifier: BSD-3-Clause */
/* The right result. Every element of Y is compared; since rows of X (and of W) repeat, the table of right
 * values is small. */
#ifndef PERF_REFERENCE_H
#define PERF_REFERENCE_H

#include "problem.h"

typedef struct perf_reference perf_reference_t;

/* Not for random numbers, whose rows do not repeat. */
bool perf_reference_create(const perf_problem_t *problem, perf_reference_t **reference_p,
                           perf_error_t *error);
void perf_reference_destroy(perf_reference_t *reference); /* NULL does nothing */

typedef struct perf_counts {
    uint64_t wrong;
    uint64_t nonfinite; /* NaN or infinite, as the right value is */
} perf_counts_t;

/* Counts elements of the contiguous host array y [y_rows,n_local], this rank's share. Integers: any deviation
 * is wrong. Weights from a file: beyond the bound that reference.c derives. */
void perf_reference_compare(const perf_reference_t *reference, const void *y, perf_counts_t *counts_p);

#endif
