/* SPDX-License-Identifier: BSD-3-Clause */
/* One row of results: what the table prints and the JSON holds. */
#ifndef PERF_ROW_H
#define PERF_ROW_H

#include "base/base.h"
#include "statistics.h"

#define PERF_NOT_MEASURED (-1.0)
#define PERF_NLOOPS       5 /* loops of 1, 2, 4, 8 and 16 chunks */

/* How an automatic list came about; the planner's times are per layer. */
typedef struct perf_plan {
    bool planned;            /* false: the list was asked for, nothing else is set */
    double predicted_us;     /* of the chosen list: as tried while planning, else as simulated */
    double simulated_us;     /* of the chosen list */
    double tried_us;         /* measured while planning, PERF_NOT_MEASURED if it was not */
    double serial_us;        /* of one chunk */
    double gemm_us, comm_us; /* in one piece, alone */
    double planning_us;      /* what planning took */
    unsigned lists;          /* that were tried */
    unsigned ctas;           /* of each collective; 0: the communicator's own number */
    bool tuned;              /* costs from the tune file */
    char text[4096];         /* the library's explanation */
} perf_plan_t;

typedef struct perf_row {
    int64_t m, n, k;
    starlin_dtype_t dtype;
    unsigned layers;
    size_t nchunks;
    int64_t chunks[STARLIN__MAX_CHUNKS];
    perf_statistics_t time_us;                   /* per layer */
    double serial_us, loop_us, gemm_us, comm_us; /* PERF_NOT_MEASURED where not */
    unsigned loop_chunks;                        /* of the best loop; 0: not measured */
    double loops_us[PERF_NLOOPS];                /* all of them, by log2 of the number of chunks */
    uint64_t tasks;                              /* of one iteration, all layers */
    char policy[32];                             /* "": the only one of the run */
    char fallback[256];                          /* "": none */
    int64_t wrong;                               /* -1: not checked */
    perf_plan_t plan;
} perf_row_t;

/* The header: what the context chose. */
typedef struct perf_run_info {
    int ranks;
    starlin_context_info_t context; /* rank 0's; strings are the context's */
    unsigned iterations, warmups;
    const char *reduction, *data;
} perf_run_info_t;

double perf_row_ideal_us(const perf_row_t *row); /* PERF_NOT_MEASURED where it cannot be told */
bool perf_row_hidden_pct(const perf_row_t *row, double *hidden_pct_p);
/* 100 (predicted / median - 1); 0 where nothing was planned. */
double perf_row_prediction_error_pct(const perf_row_t *row);

#endif
