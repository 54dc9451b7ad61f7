/* SPDX-License-Identifier: BSD-3-Clause */
/* What hand-written programs are made of, with no task runtime: gemms, collectives and roundings, on the host
 * (hand_cblas.c: MPI's non-blocking collectives, tested between the gemms) or on a GPU (hand_cublas.c: a
 * stream for gemms, a stream of high priority for collectives, events between them). */
#ifndef PERF_HAND_H
#define PERF_HAND_H

#include "problem.h"
#include "text.h"

#define PERF_MAX_SLOTS 32 /* collectives in flight */

/* The modelled link of --comm model:..., if it is one. */
typedef struct perf_link {
    bool modelled;
    double gbps, latency_us;
    unsigned ctas, ranks;
} perf_link_t;

/* "model:gbps=B,latency_us=L,ctas=C,ranks=P", of which gbps must be there. */
bool perf_link_parse(const char *text, perf_link_t *link_p, perf_error_t *error);

typedef enum perf_collective_kind {
    PERF_ALLREDUCE,
    PERF_ALLGATHER,
    PERF_REDUCE_SCATTER
} perf_collective_kind_t;

typedef struct perf_collective {
    perf_collective_kind_t kind;
    const void *send; /* may be `receive` for an allreduce */
    void *receive;
    size_t count; /* elements of one rank's block; of an allreduce: all */
    starlin_dtype_t dtype;
} perf_collective_t;

/* Microseconds on the modelled link; `nranks`: ranks that the buffers hold blocks of. */
double perf_link_time_us(const perf_link_t *link, const perf_collective_t *collective, int nranks);

/* y [m,n] = x [m,k] w [n,k]^T, all of them contiguous. */
typedef struct perf_gemm {
    int64_t m, n, k;
    const void *x, *w;
    void *y;
    starlin_dtype_t dtype, y_dtype;
} perf_gemm_t;

typedef struct perf_hand perf_hand_t;

typedef struct perf_hand_setup {
    starlin_context_info_t info;
    perf_link_t link;
    int rank, nranks;
    const void *data; /* in the memory that gemms work on */
} perf_hand_setup_t;

/* All but alloc and free return false with an error. Calls come from one thread; collectives in the same
 * order on every rank. */
typedef struct perf_hand_ops {
    const char *name;
    bool (*fits)(const starlin_context_info_t *info);
    bool (*create)(const perf_hand_setup_t *setup, perf_hand_t **hand_p,
                   perf_error_t *error); /* collective */
    void (*destroy)(perf_hand_t *hand);  /* collective */
    /* Memory for gemms and collectives, zeroed; NULL: there is none. Collective. */
    void *(*alloc)(perf_hand_t *hand, size_t nbytes);
    void (*free)(perf_hand_t *hand, void *data);
    bool (*copy)(perf_hand_t *hand, void *dst, const void *src, size_t nbytes, perf_error_t *error);
    /* Chooses algorithms and makes room, so that nothing is left to do when it is timed. */
    bool (*prepare)(perf_hand_t *hand, const perf_gemm_t *gemm, perf_error_t *error);
    /* Behind the gemms and roundings before it. */
    bool (*gemm)(perf_hand_t *hand, const perf_gemm_t *gemm, perf_error_t *error);
    bool (*round)(perf_hand_t *hand, const float *src, void *dst, size_t count, starlin_dtype_t dtype,
                  perf_error_t *error);
    /* Behind the gemms before it and the collectives before it. */
    bool (*start)(perf_hand_t *hand, unsigned slot, const perf_collective_t *collective, perf_error_t *error);
    /* What comes next of gemms and roundings comes behind collective `slot`. */
    bool (*after)(perf_hand_t *hand, unsigned slot, perf_error_t *error);
    /* Everything is complete when it returns. */
    bool (*finish)(perf_hand_t *hand, perf_error_t *error);
} perf_hand_ops_t;

struct perf_hand {
    const perf_hand_ops_t *ops;
};

/* The first that fits; NULL: nothing is measured then. */
const perf_hand_ops_t *perf_hand_find(const starlin_context_info_t *info);

extern const perf_hand_ops_t perf_hand_cblas_ops, perf_hand_cublas_ops;

#endif
