/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/numbers.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void starlin__numbers_sort(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof numbers[0], compare);
}
