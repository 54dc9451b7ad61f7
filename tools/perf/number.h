/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict numbers from the command line: the whole text is the number, and it lies in the range. */
#ifndef PERF_NUMBER_H
#define PERF_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* `what` names the option in the error text, which shows the value and what is allowed. */
bool perf_number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *value_p,
                       perf_error_t *error);
/* A comma list of 1 to `capacity` numbers. */
bool perf_number_list(const char *what, const char *text, int64_t min, int64_t max, int64_t *values,
                      size_t capacity, size_t *count_p, perf_error_t *error);
bool perf_number_u64(const char *what, const char *text, uint64_t *value_p, perf_error_t *error);

/* Calls `item` for each piece of `text` between separators (empty pieces included); stops at the first
 * false and returns it. */
bool perf_text_split(const char *text, char separator, bool (*item)(void *arg, const char *piece), void *arg);

#endif
