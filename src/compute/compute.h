/* SPDX-License-Identifier: BSD-3-Clause */
/* A compute backend: gemms of one device, and where its row-wise functions run. Const tables in a const
 * registry. */
#ifndef STARLIN_COMPUTE_H
#define STARLIN_COMPUTE_H

#include "base/config.h"
#include "base/half.h"
#include "machine/device.h"

typedef struct starlin__compute starlin__compute_t;

/* What rides along with a gemm, in this order: c = activation(product + bias) + residual. */
typedef struct starlin__epilogue {
    starlin_activation_kind_t activation; /* not swiglu */
    const void *bias;                     /* n elements of the gemm's dtype; NULL: none */
    const void *residual;                 /* m rows of the gemm's dtype; NULL: none */
    int64_t ld_residual;
} starlin__epilogue_t;

/* C[m,n] = op(A) op(B) + beta C, row-major, leading dimensions in elements. op(A) is A [m,k], or the
 * transpose of A [k,m] where transpose_a; op(B) is B [k,n], or the transpose of B [n,k] where transpose_b. k
 * = 0 gives beta C. The inputs are read as `dtype`; sums are in f32 (f64 for f64) and rounded once to
 * out_dtype. */
typedef struct starlin__gemm {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    starlin_dtype_t dtype;     /* of a and b */
    starlin_dtype_t out_dtype; /* of c: dtype, or F32 for f16/bf16 */
    double beta;               /* 0 (c is only written) or 1 */
    starlin__epilogue_t epilogue;
} starlin__gemm_t;

/* One operand of a row-wise function: `rows` rows of `cols` elements. data NULL: absent. */
typedef struct starlin__view {
    void *data;
    int64_t rows, cols, ld;
    starlin_dtype_t dtype;
} starlin__view_t;

enum { STARLIN__MOST_VIEWS = 6 };

/* Arguments of a row-wise function. What the views and parameters mean, each function says. */
typedef struct starlin__rowwise_args {
    starlin__view_t views[STARLIN__MOST_VIEWS];
    starlin_activation_kind_t activation;
    double parameter;
} starlin__rowwise_args_t;

/* A row-wise function: each row of the result depends on the same row of the inputs. */
typedef struct starlin__rowwise_kind {
    const char *name;
    void (*cpu)(const starlin__rowwise_args_t *args);
    /* Launches on `stream` (a cudaStream_t) and returns the cudaError_t. NULL in a build without CUDA. */
    int (*cuda)(const starlin__rowwise_args_t *args, void *stream);
} starlin__rowwise_kind_t;

typedef struct starlin__compute_ops {
    const char *name;
    bool (*usable)(char *why, size_t whysize); /* fit for `auto`? Cheap; makes no CUDA context. */
    starlin__space_t space;
    /* nthreads: BLAS threads of one worker; nworkers: StarPU workers that will call; device: NULL on the host
     */
    starlin_status_t (*create)(starlin__device_t *device, const starlin__config_t *config, unsigned nworkers,
                               unsigned nthreads, starlin__compute_t **compute_p);
    void (*destroy)(starlin__compute_t *compute);
    /* Makes the workspaces, handles and algorithm choice for this gemm at planning time; pointers may be NULL
     * (the epilogue's: absent). No gemm runs meanwhile. */
    starlin_status_t (*prepare)(starlin__compute_t *compute, const starlin__gemm_t *shape);
    /* Can the epilogue ride in this gemm, with the same bits as the row-wise function would give that rounds
     * the f32 product once? Else the caller inserts that function behind a gemm to a wide output. */
    bool (*fuses)(const starlin__compute_t *compute, const starlin__gemm_t *shape);
    /* Host: computes and returns. Device: launches on the compute stream. `worker` < nworkers. */
    starlin_status_t (*gemm)(starlin__compute_t *compute, unsigned worker, const starlin__gemm_t *gemm);
    starlin_status_t (*rowwise)(starlin__compute_t *compute, const starlin__rowwise_kind_t *kind,
                                const starlin__rowwise_args_t *args);
} starlin__compute_ops_t;

/* The library behind a backend, as far as it tells: "" and 0 where it does not. */
typedef struct starlin__compute_library {
    char name[32], version[24], kernel[24];
    unsigned nthreads; /* of one worker */
    bool is_reference; /* a BLAS written to be read, not to be fast */
} starlin__compute_library_t;

struct starlin__compute {
    const starlin__compute_ops_t *ops;
    starlin__device_t *device;
    starlin__compute_library_t library;
    char version[128]; /* the library in words, "" if it does not tell */
    char warning[400]; /* why gemms will be slow, "" if nothing is wrong */
};

/* NULL-terminated, in order of preference; the reference backend `cblas` is last. */
extern const starlin__compute_ops_t *const starlin__compute_registry[];
extern const starlin__compute_ops_t starlin__compute_cblas_ops, starlin__compute_cublas_ops;

/* The table for a name or "auto". ERR_UNSUPPORTED lists what was built, ERR_NO_DEVICE what is not usable and
 * why. */
starlin_status_t starlin__compute_find(const char *name, const starlin__compute_ops_t **ops_p);

/* The row-wise function behind gemms and collectives, and of activations: views are
 *   0 dst, 1 src (f32, or dst's dtype), 2 bias [1,cols] or absent, 3 residual or absent, 4 factor or absent
 * dst = activation(src + bias) * factor + residual, computed in f32 (f64 for f64), rounded once. dst may be
 * src. 2 to 4 have dst's dtype. (swiglu: activation silu and a factor.) */
extern const starlin__rowwise_kind_t starlin__finish;

#endif
