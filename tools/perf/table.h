/* SPDX-License-Identifier: BSD-3-Clause */
/* The table on stdout: '#' lines around one line per case. Only rank 0 prints. */
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include <stdio.h>

#include "row.h"

void perf_table_header(FILE *stream, const perf_run_info_t *info);
/* With --policies: which comes first, and fewer columns. */
void perf_table_policies_header(FILE *stream, const perf_run_info_t *info);
void perf_table_policies_row(FILE *stream, const perf_row_t *row);
void perf_table_row(FILE *stream, const perf_row_t *row);
void perf_table_footer(FILE *stream, size_t nrows, uint64_t wrong, bool checked);

#endif
