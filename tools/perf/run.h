/* SPDX-License-Identifier: BSD-3-Clause */
/* All cases of one shape: plan, fill, measure, check. */
#ifndef PERF_RUN_H
#define PERF_RUN_H

#include "ranks.h"
#include "recording.h"
#include "results.h"

typedef struct perf_run {
    starlin_context_t *context;
    const perf_options_t *options;
    const perf_ranks_t *ranks;
    perf_recording_t *recording; /* NULL: none */
    /* after a failure: every rank has failed at the same place, so all of them can end in good order */
    bool failed_together;
} perf_run_t;

/* Fills one row per chunking of the options. Collective. */
bool perf_run_shape(perf_run_t *run, const perf_problem_t *problem, perf_row_t *rows, perf_error_t *error);

#endif
