/* SPDX-License-Identifier: BSD-3-Clause */
/* A layer's operands as a hand-written loop has them: plain memory, gemms and casts of row ranges. */
#ifndef PERF_LAYER_H
#define PERF_LAYER_H

#include "graph/context.h"
#include "problem.h"

typedef struct perf_layer {
    starlin_context_t *context;
    const perf_problem_t *problem;
    const char *x, *w;
    starlin_matrix_t *y;       /* result */
    starlin_matrix_t *partial; /* what the ranks sum: y, or f32 partials */
    starlin_matrix_t *zeros;   /* summed by the collective alone: values that do not grow */
    starlin_dtype_t sum_dtype;
} perf_layer_t;

/* x, w: this rank's slices, in the memory of the compute backend; they stay the caller's. Collective. */
starlin_status_t perf_layer_open(starlin_context_t *context, const perf_problem_t *problem, const void *x,
                                 const void *w, perf_layer_t *layer);
void perf_layer_release(perf_layer_t *layer); /* also after a failed open */

starlin__gemm_t perf_layer_gemm(const perf_layer_t *layer, int64_t first, int64_t nrows);
/* Rounds rows of the sum into the result; call it only where has_cast. */
starlin__cast_t perf_layer_cast(const perf_layer_t *layer, int64_t first, int64_t nrows);
bool perf_layer_has_cast(const perf_layer_t *layer);

#endif
