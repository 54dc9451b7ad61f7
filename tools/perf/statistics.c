/* SPDX-License-Identifier: BSD-3-Clause */
/* Order statistics of times. */
#include "statistics.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

perf_statistics_t perf_statistics(double *samples, size_t count)
{
    perf_statistics_t figures;
    double sum = 0;
    qsort(samples, count, sizeof(*samples), compare);
    for (size_t i = 0; i < count; i++)
        sum += samples[i];
    figures.min = samples[0];
    figures.max = samples[count - 1];
    figures.mean = sum / (double)count;
    figures.median = count % 2 == 1 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
    figures.p99 = samples[(count * 99 + 99) / 100 - 1];
    return figures;
}
