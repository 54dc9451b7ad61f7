/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is complete or not there: it is written beside its place and renamed when complete, so that a
 * reader never sees half of it, and a full disk leaves the older one as it was. */
#ifndef PERF_FILE_H
#define PERF_FILE_H

#include <stdio.h>

#include "text.h"

typedef struct perf_file {
    FILE *stream;
    const char *path; /* the caller's */
    char *temporary;
    int failed; /* errno of the first failure that the writer saw; 0: none */
} perf_file_t;

/* False: nothing is left, and `error` says why. Devices such as /dev/stdout are written in place. */
bool perf_file_open(perf_file_t *file, const char *path, perf_error_t *error);
/* Puts the file in its place; with `keep` false, or after a failure, takes it away instead. */
bool perf_file_close(perf_file_t *file, bool keep, perf_error_t *error);

#endif
