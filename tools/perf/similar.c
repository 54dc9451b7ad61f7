/* SPDX-License-Identifier: BSD-3-Clause */
/* Levenshtein distance with one row of the table. */
#define _POSIX_C_SOURCE 200809L
#include "similar.h"

#include <string.h>

#define LIMIT 255

size_t perf_similar_distance(const char *a, const char *b)
{
    size_t row[LIMIT + 1];
    size_t na = strnlen(a, LIMIT), nb = strnlen(b, LIMIT);
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < other ? replaced : other;
        }
    }
    return row[nb];
}
