/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline for --trace and --report: a few steps of each case, recorded after its times were taken, so
 * that recording costs them nothing. */
#ifndef PERF_RECORDING_H
#define PERF_RECORDING_H

#include "graph.h"
#include "row.h"
#include "trace.h"

typedef struct perf_recording {
    starlin__trace_t *traces; /* one per case */
    size_t ntraces;
} perf_recording_t;

/* Runs the case and appends its timeline. Collective. */
starlin_status_t perf_recording_add(perf_recording_t *recording, perf_graph_t *graph, const perf_row_t *row);
/* One rank writes the file of all ranks. */
starlin_status_t perf_recording_write(const perf_recording_t *recording, const char *path);
/* The reports of all cases, then all in one table. */
starlin_status_t perf_recording_print(const perf_recording_t *recording, FILE *stream);
void perf_recording_release(perf_recording_t *recording);

#endif
