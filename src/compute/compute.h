/* SPDX-License-Identifier: BSD-3-Clause */
/* A compute backend: gemm and cast on one device. Const tables in a const registry. */
#ifndef STARLIN_COMPUTE_H
#define STARLIN_COMPUTE_H

#include "base/config.h"
#include "machine/device.h"

typedef struct starlin__compute starlin__compute_t;

/* Y[m,n] = X[m,k] W[n,k]^T, row-major, leading dimensions in elements. k = 0 gives zeros. */
typedef struct starlin__gemm {
    int64_t m, n, k;
    const void *x;
    const void *w;
    void *y;
    int64_t ldx, ldw, ldy;
    starlin_dtype_t dtype;     /* of x and w */
    starlin_dtype_t out_dtype; /* of y: dtype, or F32 for f32 partials of f16/bf16 */
} starlin__gemm_t;

/* dst[i] = round(src[i]), count elements: from F32 to any of F32, F16, BF16, or a copy where the dtypes are
 * equal. */
typedef struct starlin__cast {
    const void *src;
    void *dst;
    size_t count;
    starlin_dtype_t src_dtype, dtype;
} starlin__cast_t;

typedef struct starlin__compute_ops {
    const char *name;
    bool (*usable)(char *why, size_t whysize); /* fit for `auto`? Cheap; makes no CUDA context. */
    starlin__space_t space;
    /* nthreads: BLAS threads of one worker; nworkers: StarPU workers that will call; device: NULL on the host
     */
    starlin_status_t (*create)(starlin__device_t *device, unsigned nworkers, unsigned nthreads,
                               starlin__compute_t **compute_p);
    void (*destroy)(starlin__compute_t *compute);
    /* Makes the workspaces, handles and algorithm choice for gemms of this shape (at most m rows) at planning
     * time. */
    starlin_status_t (*prepare)(starlin__compute_t *compute, const starlin__gemm_t *shape);
    /* Host: computes and returns. Device: launches on the compute stream. `worker` < nworkers. */
    starlin_status_t (*gemm)(starlin__compute_t *compute, unsigned worker, const starlin__gemm_t *gemm);
    starlin_status_t (*cast)(starlin__compute_t *compute, unsigned worker, const starlin__cast_t *cast);
} starlin__compute_ops_t;

struct starlin__compute {
    const starlin__compute_ops_t *ops;
    starlin__device_t *device;
    char version[64]; /* of the library behind it, "" if it does not tell */
};

extern const starlin__compute_ops_t starlin__compute_cblas_ops, starlin__compute_cublas_ops;

/* NULL-terminated, in order of preference; the reference backend `cblas` is last. */
extern const starlin__compute_ops_t *const starlin__compute_registry[];

/* The table for a name or "auto". ERR_UNSUPPORTED lists what was built, ERR_NO_DEVICE what is not usable and
 * why. */
starlin_status_t starlin__compute_find(const char *name, const starlin__compute_ops_t **ops_p);

/* f16 and bf16, which are summed and multiplied in f32. */
bool starlin__dtype_is_half(starlin_dtype_t dtype);

/* Half precision, round to nearest even; NaN stays NaN, infinities and subnormals are right. */
float starlin__f16_to_f32(uint16_t half);
uint16_t starlin__f32_to_f16(float value);
float starlin__bf16_to_f32(uint16_t half);
uint16_t starlin__f32_to_bf16(float value);
void starlin__half_to_f32(starlin_dtype_t dtype, const uint16_t *src, float *dst, size_t count);
void starlin__f32_to_half(starlin_dtype_t dtype, const float *src, uint16_t *dst, size_t count);

#endif
