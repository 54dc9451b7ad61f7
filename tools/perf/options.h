/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of starlin-perf, parsed and checked as far as one rank can. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdio.h>

#include "base/base.h"
#include "number.h"

#define PERF_MAX_SWEEP     64
#define PERF_MAX_CHUNKINGS 32
#define PERF_MAX_POLICIES  16
#define PERF_MAX_SIZE      INT32_MAX /* BLAS interfaces count in int */

enum { PERF_SERIAL = 1, PERF_LOOP = 2, PERF_GEMM = 4, PERF_COMM = 8, PERF_ALL_BASELINES = 15 };

typedef struct perf_sweep {
    size_t count;
    int64_t values[PERF_MAX_SWEEP];
} perf_sweep_t;

/* A request: `auto` when both counts are 0. */
typedef struct perf_chunking {
    size_t count; /* so many equal chunks */
    size_t nrows; /* or this list */
    int64_t rows[STARLIN__MAX_CHUNKS];
} perf_chunking_t;

typedef struct perf_options {
    perf_sweep_t m, n, k;
    bool n_given, k_given, dtype_given;
    size_t ndtypes;
    starlin_dtype_t dtypes[4];
    size_t nchunkings;
    perf_chunking_t chunkings[PERF_MAX_CHUNKINGS];
    const char *comm;    /* NULL: not given */
    const char *compute; /* NULL: not given */
    starlin_reduction_t reduction;
    unsigned iterations, warmups, layers;
    unsigned baselines;      /* bits of the enum above */
    bool check, check_given; /* never both `check` and `random` */
    bool report;
    size_t npolicies; /* 0: the one that is set */
    char policies[PERF_MAX_POLICIES][32];
    uint64_t seed;
    bool random;             /* X and W are random numbers, else integers */
    char weights_file[4096]; /* "": W is made, as X is */
    char weights_tensor[240];
    const char *json;  /* NULL: not given */
    const char *trace; /* NULL: not given */
    bool tune, explain;
    bool help, version;
} perf_options_t;

/* Parses argv; the texts stay argv's. False with a text that names option, value and what is allowed. */
bool perf_options_parse(int argc, char **argv, perf_options_t *options, perf_error_t *error);

/* Are --comm and --compute the names of something built, with sound parameters? */
bool perf_options_check_backends(const perf_options_t *options, perf_error_t *error);

/* Does StarPU, or the library, have all of the policies? */
bool perf_options_check_policies(const perf_options_t *options, perf_error_t *error);

void perf_options_help(FILE *stream);

/* What all ranks must agree about before they start, as name and value. `index` counts from 0; false when
 * there are no more. */
typedef struct perf_option_field {
    char name[16];
    char value[240];
} perf_option_field_t;
bool perf_options_field(const perf_options_t *options, size_t index, perf_option_field_t *field_p);

#endif
