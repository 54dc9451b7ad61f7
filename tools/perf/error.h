/* SPDX-License-Identifier: BSD-3-Clause */
/* One error text, written by the function that first decides on the error. */
#ifndef PERF_ERROR_H
#define PERF_ERROR_H

#include <stdbool.h>

typedef struct perf_error {
    char text[768];
} perf_error_t;

/* Stores the text; always returns false, so that a caller can return it. */
bool perf_error_set(perf_error_t *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
