/* SPDX-License-Identifier: BSD-3-Clause */
/* What the graph is compared with: the same gemms and collectives, driven by hand, with no task runtime. One
 * table of functions per kind of memory. */
#ifndef PERF_BASELINE_H
#define PERF_BASELINE_H

#include "graph/context.h"
#include "problem.h"

typedef enum perf_baseline_kind {
    PERF_BASELINE_SERIAL, /* one gemm, then one collective */
    PERF_BASELINE_LOOP,   /* chunk i+1 is multiplied while chunk i is summed */
    PERF_BASELINE_GEMM,   /* the gemm alone, in one piece */
    PERF_BASELINE_COMM    /* the collective alone, in one piece */
} perf_baseline_kind_t;

#define PERF_BASELINE_MAX_CHUNKS 16

typedef struct perf_baseline perf_baseline_t;

typedef struct perf_baseline_ops {
    const char *name;
    bool (*fits)(const starlin_context_t *context);
    /* x, w: this rank's slices, in the memory of the compute backend; they stay the caller's. Collective. */
    starlin_status_t (*create)(starlin_context_t *context, const perf_problem_t *problem, const void *x,
                               const void *w, perf_baseline_t **baseline_p);
    void (*destroy)(perf_baseline_t *baseline);
    /* One layer, complete when it returns. Collective; StarPU's workers are paused meanwhile. */
    starlin_status_t (*run)(perf_baseline_t *baseline, perf_baseline_kind_t kind, unsigned nchunks);
    /* The matrix of the result. */
    starlin_matrix_t *(*output)(perf_baseline_t *baseline);
} perf_baseline_ops_t;

struct perf_baseline {
    const perf_baseline_ops_t *ops;
};

/* The table that fits the context's backends, or NULL: nothing is measured then. */
const perf_baseline_ops_t *perf_baseline_find(const starlin_context_t *context);

extern const perf_baseline_ops_t perf_baseline_host_ops, perf_baseline_device_ops;

#endif
