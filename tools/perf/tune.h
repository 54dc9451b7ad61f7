/* SPDX-License-Identifier: BSD-3-Clause */
/* --tune: measures the curves of a layer thoroughly and keeps them for later plans. */
#ifndef PERF_TUNE_H
#define PERF_TUNE_H

#include <stdio.h>

#include "problem.h"

/* Prints a line about it to `stream` (NULL: another rank does). Collective; blocks. */
starlin_status_t perf_tune(starlin_context_t *context, const perf_problem_t *problem, FILE *stream);

#endif
