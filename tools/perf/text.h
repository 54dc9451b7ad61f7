/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the tool: errors, strict numbers and lists from the command line, and how near two names are. */
#ifndef PERF_TEXT_H
#define PERF_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <starlin/starlin.h>

/* One error, stored by the function that first decides on it. */
typedef struct perf_error {
    char text[768];
    starlin_status_t status; /* decides about the exit code */
} perf_error_t;

/* Stores the text, and ERR_INVALID; always returns false, so that a caller can return it. */
bool perf_error_set(perf_error_t *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool perf_error_status(perf_error_t *error, starlin_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Is it a success? If not, stores the library's text. */
bool perf_ok(starlin_status_t status, perf_error_t *error);

/* The whole text is the number, and it lies in the range. `what` names the option in the error text, which
 * shows the value and what is allowed. */
bool perf_number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *value_p,
                       perf_error_t *error);
/* A comma list of 1 to `capacity` numbers. */
bool perf_number_list(const char *what, const char *text, int64_t min, int64_t max, int64_t *values,
                      size_t capacity, size_t *count_p, perf_error_t *error);
bool perf_number_u64(const char *what, const char *text, uint64_t *value_p, perf_error_t *error);

/* Calls `item` for each part of `text` between separators (empty parts included); stops at the first false
 * and returns it. */
bool perf_text_split(const char *text, char separator, bool (*item)(void *arg, const char *part), void *arg);

/* Edits (insert, delete, replace one character) from a to b; names are compared by their first 255
 * characters. */
size_t perf_similar_distance(const char *a, const char *b);

/* Monotonic time. */
double perf_now_us(void);

#endif
