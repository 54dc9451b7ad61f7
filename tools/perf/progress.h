/* SPDX-License-Identifier: BSD-3-Clause */
/* A line on stderr that overwrites itself, for people who wait longer than two seconds. Nothing unless stderr
 * is a terminal. */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

#include <stdbool.h>

/* `shown`: this rank speaks for all. */
void perf_progress_begin(bool shown);
void perf_progress_end(void);

/* What is being done now. */
void perf_progress_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Takes the line away until the next second, so that something else can be printed. */
void perf_progress_clear(void);

#endif
