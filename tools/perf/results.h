/* SPDX-License-Identifier: BSD-3-Clause */
/* Results: one row per case, figures that follow from the measured ones, the table on stdout, and JSON. */
#ifndef PERF_RESULTS_H
#define PERF_RESULTS_H

#include <stdio.h>

#include "options.h"

#define PERF_NOT_MEASURED (-1.0)
#define PERF_NLOOPS       6 /* loops of 1, 2, 4, 8, 16 and 32 chunks */

typedef struct perf_statistics {
    double min, median, mean, p99, max;
    double spread; /* third quartile less the first */
} perf_statistics_t;

/* Sorts the samples; count >= 1. p99: the smallest sample that at least 99% of all do not exceed. */
perf_statistics_t perf_statistics(double *samples, size_t count);

/* How an automatic list came about; times are per layer, PERF_NOT_MEASURED where there is none. */
typedef struct perf_plan {
    bool planned;        /* false: the list was asked for, nothing else is set */
    const char *source;  /* "estimated", "measured", "wisdom" */
    double predicted_us; /* of the chosen list: as measured while planning, else as simulated */
    double simulated_us, tried_us;
    double serial_us;   /* of one chunk */
    double planning_us; /* what planning took */
    unsigned lists;     /* that were run */
    char text[4096];    /* the library's explanation */
} perf_plan_t;

typedef struct perf_row {
    int64_t m, n, k;
    starlin_dtype_t dtype;
    unsigned layers;
    size_t nchunks;
    int64_t chunks[PERF_MAX_CHUNKS];
    perf_statistics_t time_us;                   /* per layer */
    double serial_us, loop_us, gemm_us, comm_us; /* PERF_NOT_MEASURED where not */
    unsigned loop_chunks;                        /* of the best loop; 0: not measured */
    double loops_us[PERF_NLOOPS];                /* all of them, by log2 of the number of chunks */
    uint64_t tasks;                              /* of one iteration, all layers */
    char policy[32];                             /* "": the only one of the run */
    char fallback[256];                          /* "": none */
    int64_t wrong;                               /* -1: not checked */
    int64_t nonfinite;                           /* not counted among the wrong: as they should be */
    perf_plan_t plan;
} perf_row_t;

/* The header: what the context chose. */
typedef struct perf_run_info {
    int ranks;
    const char *op;
    bool sequence_parallel;
    const char *model;              /* "": none */
    starlin_context_info_t context; /* rank 0's; strings are the context's */
    unsigned iterations, warmups;
    const char *reduction, *data;
} perf_run_info_t;

double perf_row_ideal_us(const perf_row_t *row); /* PERF_NOT_MEASURED where it cannot be told */
/* False where the figure would mean nothing: the shorter of gemm and comm is less than 1% of the longer one,
 * or less than the spread of the measurement. */
bool perf_row_hidden_pct(const perf_row_t *row, double *hidden_pct_p);
/* 100 (predicted / median - 1); 0 where nothing was planned. */
double perf_row_prediction_error_pct(const perf_row_t *row);

/* The table: '#' lines around one line per case. Only rank 0 prints. With --policies they come first, and
 * there are fewer columns. */
void perf_table_header(FILE *stream, const perf_run_info_t *info, bool policies);
void perf_table_row(FILE *stream, const perf_row_t *row);
/* --explain: comment lines behind the row of a case that was planned; nothing for a list that was asked for.
 */
void perf_table_explain(FILE *stream, const perf_row_t *row);
void perf_table_footer(FILE *stream, const perf_row_t *rows, size_t nrows, bool checked);

/* JSON, schema_version 1. `devices`: one name per rank. */
bool perf_results_write(const char *path, const perf_run_info_t *info, char (*devices)[128],
                        const perf_row_t *rows, size_t nrows, perf_error_t *error);

#endif
