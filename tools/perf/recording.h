/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline for --trace and --report: a few steps of each case, recorded after its times were taken, so
 * that recording costs them nothing. */
#ifndef PERF_RECORDING_H
#define PERF_RECORDING_H

#include "ranks.h"
#include "results.h"
#include "trace.h"

typedef struct perf_record perf_record_t;

typedef struct perf_recording {
    perf_record_t *records; /* one per case */
    size_t nrecords;
} perf_recording_t;

/* Runs the case and appends its timeline, which rank 0 has of all ranks. Collective. */
bool perf_recording_add(perf_recording_t *recording, const perf_ranks_t *ranks, perf_graph_t *graph,
                        const perf_row_t *row, perf_error_t *error);
/* For rank 0: writes the file of all ranks. */
bool perf_recording_write(const perf_recording_t *recording, const char *path, perf_error_t *error);
/* For rank 0: the reports of all cases, then all in one table. */
void perf_recording_print(const perf_recording_t *recording, FILE *stream);
void perf_recording_release(perf_recording_t *recording);

#endif
