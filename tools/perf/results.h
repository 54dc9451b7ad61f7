/* SPDX-License-Identifier: BSD-3-Clause */
/* The results as JSON, schema_version 1. */
#ifndef PERF_RESULTS_H
#define PERF_RESULTS_H

#include "error.h"
#include "row.h"

/* `devices`: one name per rank. */
bool perf_results_write(const char *path, const perf_run_info_t *info, char (*devices)[128],
                        const perf_row_t *rows, size_t nrows, perf_error_t *error);

#endif
