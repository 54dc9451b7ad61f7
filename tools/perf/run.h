/* SPDX-License-Identifier: BSD-3-Clause */
/* All cases of one shape: plan, fill, measure, check. */
#ifndef PERF_RUN_H
#define PERF_RUN_H

#include "options.h"
#include "problem.h"
#include "recording.h"
#include "row.h"

typedef struct perf_run {
    starlin_context_t *context;
    const perf_options_t *options;
    perf_recording_t *recording; /* NULL: none */
    /* after a failure: every rank has failed at the same place, so all of them can end in good order */
    bool failed_together;
    bool alone; /* one rank: always in good order */
} perf_run_t;

/* Fills one row per chunking of the options. The error is stored for starlin_last_error(). Collective. */
starlin_status_t perf_run_shape(perf_run_t *run, const perf_problem_t *problem, perf_row_t *rows);

#endif
