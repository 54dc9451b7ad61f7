/* SPDX-License-Identifier: BSD-3-Clause */
/* --explain: how the chunk lists were found, and how good the prediction was. */
#ifndef PERF_EXPLAIN_H
#define PERF_EXPLAIN_H

#include <stdio.h>

#include "row.h"

/* Comment lines behind the row of a case that was planned; nothing for a list that was asked for. */
void perf_explain_print(FILE *stream, const perf_row_t *row);

#endif
