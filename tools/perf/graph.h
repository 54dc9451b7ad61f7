/* SPDX-License-Identifier: BSD-3-Clause */
/* One case as a task graph: matrices for one chunking, and the layers submitted over them. */
#ifndef PERF_GRAPH_H
#define PERF_GRAPH_H

#include "options.h"
#include "problem.h"

typedef struct perf_graph {
    starlin_context_t *context;
    const perf_problem_t *problem;
    starlin_chunking_t *chunking;
    starlin_matrix_t *x, *w; /* w belongs to the caller */
    starlin_matrix_t *y[2];  /* [1] only for a chain: layers write them in turn */
} perf_graph_t;

/* Plans the rows. Collective: a disagreement is the same error on every rank. */
starlin_status_t perf_graph_plan(perf_graph_t *graph, starlin_context_t *context,
                                 const perf_problem_t *problem, const perf_chunking_t *request);
/* Makes the matrices and copies `x` (host, contiguous) into them. */
starlin_status_t perf_graph_fill(perf_graph_t *graph, starlin_matrix_t *w, const void *x);
void perf_graph_release(perf_graph_t *graph);

/* Submits all layers and waits for them. */
starlin_status_t perf_graph_run(perf_graph_t *graph);
/* Where the last layer's result is. */
starlin_matrix_t *perf_graph_output(const perf_graph_t *graph);

#endif
