/* SPDX-License-Identifier: BSD-3-Clause */
/* How near two names are. */
#ifndef PERF_SIMILAR_H
#define PERF_SIMILAR_H

#include <stddef.h>

/* Edits (insert, delete, replace one character) from a to b; names are compared by their first 255
 * characters. */
size_t perf_similar_distance(const char *a, const char *b);

#endif
