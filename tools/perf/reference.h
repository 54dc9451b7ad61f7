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

/* How many elements of the contiguous host array y [m,n] are wrong. Integers: any deviation. Weights from a
 * file: beyond the bound that reference.c derives; NaN is wrong. */
uint64_t perf_reference_wrong(const perf_reference_t *reference, const void *y);

#endif
