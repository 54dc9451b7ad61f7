/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that is timed for one shape, interleaved: each iteration runs each thing once, so that a machine
 * that becomes slower becomes slower for all of them. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "baseline.h"
#include "graph.h"
#include "row.h"

typedef struct perf_measure {
    starlin_context_t *context;
    const perf_options_t *options;
    perf_graph_t *graphs;
    size_t ngraphs;
    perf_baseline_t *baseline; /* NULL: none */
    double *samples;           /* [thing][iteration], graphs first */
} perf_measure_t;

/* Runs warm-ups and iterations; the times are then the slowest rank's. Collective. */
starlin_status_t perf_measure_run(perf_measure_t *measure);
/* Fills in the times of row `i`. */
void perf_measure_row(perf_measure_t *measure, size_t i, perf_row_t *row);
void perf_measure_release(perf_measure_t *measure);

#endif
