/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of starlin-perf, parsed and checked as far as one rank can. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdio.h>

#include "op.h"
#include "text.h"

#define PERF_MAX_SWEEP     64
#define PERF_MAX_CHUNKINGS 32
#define PERF_MAX_CHUNKS    256 /* of one chunking */
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
    int64_t rows[PERF_MAX_CHUNKS];
} perf_chunking_t;

/* A transformer's sizes. */
typedef struct perf_model {
    const char *name;
    int64_t hidden, ffn;
} perf_model_t;

typedef struct perf_options {
    const perf_op_t *op;
    bool sequence_parallel;
    const perf_model_t *model; /* NULL: not given */
    int64_t model_tp;          /* 0: not given */
    perf_sweep_t m, n, k;
    bool n_given, k_given, dtype_given;
    size_t ndtypes;
    starlin_dtype_t dtypes[4];
    size_t nchunkings;
    perf_chunking_t chunkings[PERF_MAX_CHUNKINGS];
    const char *comm;    /* NULL: not given */
    const char *compute; /* NULL: not given */
    starlin_effort_t effort;
    perf_link_t link; /* of --comm, or of STARLIN_COMM */
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
    bool explain;
    bool help, version;
} perf_options_t;

/* Parses argv; the texts stay argv's. False with a text that names option, value and what is allowed. */
bool perf_options_parse(int argc, char **argv, perf_options_t *options, perf_error_t *error);

void perf_options_help(FILE *stream);

/* What all ranks must agree about before they start, as name and value. */
typedef struct perf_option_field {
    char name[24];
    char value[240];
} perf_option_field_t;
enum { PERF_NFIELDS = 22 };
void perf_options_fields(const perf_options_t *options, perf_option_field_t fields[PERF_NFIELDS]);

/* "NAME" or "NAME:tp=P"; tp is 0 without it. */
bool perf_model_parse(const char *text, const perf_model_t **model_p, int64_t *tp_p, perf_error_t *error);
/* Sets N and K to those of the MLP of --model, if given: each rank gets the slice that it would have among tp
 * ranks. */
bool perf_model_apply(perf_options_t *options, int nranks, perf_error_t *error);

#endif
