/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a set of times. */
#ifndef PERF_STATISTICS_H
#define PERF_STATISTICS_H

#include <stddef.h>

typedef struct perf_statistics {
    double min, median, mean, p99, max;
} perf_statistics_t;

/* Sorts the samples; count >= 1. p99: the smallest sample that at least 99% of all do not exceed. */
perf_statistics_t perf_statistics(double *samples, size_t count);

#endif
