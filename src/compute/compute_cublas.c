/* SPDX-License-Identifier: BSD-3-Clause */
/* Gemms by cuBLASLt on the device's compute stream. Invariants: an algorithm is chosen once for each shape,
 * epilogue and alignment, by the library's heuristic alone, so the same gemm gives the same bits in every
 * run; what was prepared launches without allocating. Launches are serialized by the lock and by the stream,
 * which is why one workspace is enough. */
#include "machine/device_cuda.h"

#include <assert.h>
#include <cublasLt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "compute/finish.h"

#define WORKSPACE_NBYTES ((size_t)32 << 20)
#define MAX_ALIGNMENT    256u

/* What the choice of an algorithm depends on. Compared bytewise, so zeroed before it is filled. */
typedef struct plan_key {
    int64_t m, n, k, lda, ldb, ldc, ld_residual;                    /* the last one 0: no residual */
    uint32_t align_a, align_b, align_c, align_residual, align_bias; /* the last one 0: no bias */
    int32_t dtype, out_dtype, transpose_a, transpose_b, activation;
} plan_key_t;

/* Never moves: whether cuBLAS's descriptors may be copied is not documented. */
typedef struct plan {
    struct plan *next;
    plan_key_t key;
    cublasLtMatmulDescOpaque_t matmul;
    cublasLtMatrixLayoutOpaque_t a, b, c, residual;
    cublasLtMatmulAlgo_t algo;
} plan_t;

typedef struct cublas {
    starlin__compute_t base;
    cublasLtHandle_t handle;
    void *workspace;
    bool tf32;            /* STARLIN_TF32=1 */
    pthread_mutex_t lock; /* launches, and the list */
    plan_t *plans;
} cublas_t;

static starlin_status_t translate(cublasStatus_t ret, const char *doing)
{
    if (ret == CUBLAS_STATUS_SUCCESS)
        return STARLIN_SUCCESS;
    (void)cudaGetLastError();
    starlin_status_t status = ret == CUBLAS_STATUS_ALLOC_FAILED ? STARLIN_ERR_NO_MEMORY : STARLIN_ERR_COMPUTE;
    return starlin__error(status, "cuBLAS: %s while %s", cublasLtGetStatusString(ret), doing);
}

#define TRY(call, doing) STARLIN__FORWARD(translate((call), (doing)))
#define DESCRIBE(plan, attribute, value)                                                                     \
    TRY(cublasLtMatmulDescSetAttribute(&(plan)->matmul, CUBLASLT_MATMUL_DESC_##attribute, &(value),          \
                                       sizeof(value)),                                                       \
        "describing a gemm")
#define PREFER(attribute, value)                                                                             \
    TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_##attribute, &(value),         \
                                             sizeof(value)),                                                 \
        "choosing an algorithm")

static cudaDataType_t data_type(starlin_dtype_t dtype)
{
    switch (dtype) {
    case STARLIN_F64:
        return CUDA_R_64F;
    case STARLIN_F16:
        return CUDA_R_16F;
    case STARLIN_BF16:
        return CUDA_R_16BF;
    case STARLIN_F32:
        break;
    }
    return CUDA_R_32F;
}

/* Largest power of two up to MAX_ALIGNMENT that divides the address of every row. Without an address, as at
 * planning time, the base counts as aligned, which the library's memory is. */
static uint32_t alignment(const void *base, int64_t ld, starlin_dtype_t dtype)
{
    uintptr_t bits = (uintptr_t)base | (uintptr_t)ld * starlin_dtype_nbytes(dtype) | MAX_ALIGNMENT;
    return (uint32_t)(bits & (~bits + 1));
}

static plan_key_t key_of(const starlin__gemm_t *gemm)
{
    const starlin__epilogue_t *epilogue = &gemm->epilogue;
    plan_key_t key;
    memset(&key, 0, sizeof(key));
    key.m = gemm->m;
    key.n = gemm->n;
    key.k = gemm->k;
    key.lda = gemm->lda;
    key.ldb = gemm->ldb;
    key.ldc = gemm->ldc;
    key.align_a = alignment(gemm->a, gemm->lda, gemm->dtype);
    key.align_b = alignment(gemm->b, gemm->ldb, gemm->dtype);
    key.align_c = alignment(gemm->c, gemm->ldc, gemm->out_dtype);
    key.align_residual = key.align_c;
    if (epilogue->residual != NULL) {
        key.ld_residual = epilogue->ld_residual;
        key.align_residual = alignment(epilogue->residual, epilogue->ld_residual, gemm->dtype);
    }
    if (epilogue->bias != NULL)
        key.align_bias = alignment(epilogue->bias, 0, gemm->dtype);
    key.dtype = (int32_t)gemm->dtype;
    key.out_dtype = (int32_t)gemm->out_dtype;
    key.transpose_a = gemm->transpose_a;
    key.transpose_b = gemm->transpose_b;
    key.activation = (int32_t)epilogue->activation;
    return key;
}

static starlin_status_t layout(cublasLtMatrixLayoutOpaque_t *matrix, starlin_dtype_t dtype, int64_t rows,
                               int64_t cols, int64_t ld)
{
    return translate(cublasLtMatrixLayoutInit(matrix, data_type(dtype), (uint64_t)cols, (uint64_t)rows, ld),
                     "describing a matrix");
}

/* cuBLAS is column-major: a row-major matrix is its transpose there, so C^T = op(B)^T op(A)^T is computed,
 * whose rows, along which the bias lies, are the columns of C. */
static starlin_status_t plan_describe(const cublas_t *cublas, plan_t *plan, const void *bias)
{
    const plan_key_t *key = &plan->key;
    starlin_dtype_t in = (starlin_dtype_t)key->dtype, out = (starlin_dtype_t)key->out_dtype;
    int32_t op_a = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t op_b = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = key->activation == STARLIN_RELU ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
    cublasComputeType_t type = in == STARLIN_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    if (cublas->tf32 && in == STARLIN_F32)
        type = CUBLAS_COMPUTE_32F_FAST_TF32;
    if (bias != NULL)
        epilogue = key->activation == STARLIN_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    TRY(cublasLtMatmulDescInit(&plan->matmul, type, in == STARLIN_F64 ? CUDA_R_64F : CUDA_R_32F),
        "describing a gemm");
    DESCRIBE(plan, TRANSA, op_b);
    DESCRIBE(plan, TRANSB, op_a);
    DESCRIBE(plan, EPILOGUE, epilogue);
    DESCRIBE(plan, BIAS_POINTER, bias);
    STARLIN__FORWARD(layout(&plan->a, in, key->transpose_a ? key->k : key->m,
                            key->transpose_a ? key->m : key->k, key->lda));
    STARLIN__FORWARD(layout(&plan->b, in, key->transpose_b ? key->n : key->k,
                            key->transpose_b ? key->k : key->n, key->ldb));
    STARLIN__FORWARD(layout(&plan->c, out, key->m, key->n, key->ldc));
    return layout(&plan->residual, out, key->m, key->n, key->ld_residual > 0 ? key->ld_residual : key->ldc);
}

static starlin_status_t preference_set(cublasLtMatmulPreferenceOpaque_t *preference, const plan_key_t *key)
{
    /* partial sums of a split K stay in the accumulator's type: one rounding, at the end */
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const size_t workspace = WORKSPACE_NBYTES;
    TRY(cublasLtMatmulPreferenceInit(preference), "choosing an algorithm");
    PREFER(MAX_WORKSPACE_BYTES, workspace);
    PREFER(REDUCTION_SCHEME_MASK, reduction);
    PREFER(MIN_ALIGNMENT_A_BYTES, key->align_b);
    PREFER(MIN_ALIGNMENT_B_BYTES, key->align_a);
    PREFER(MIN_ALIGNMENT_C_BYTES, key->align_residual);
    PREFER(MIN_ALIGNMENT_D_BYTES, key->align_c);
    return STARLIN_SUCCESS;
}

static starlin_status_t plan_choose(const cublas_t *cublas, plan_t *plan, const void *bias)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int nresults = 0;
    STARLIN__FORWARD(plan_describe(cublas, plan, bias));
    STARLIN__FORWARD(preference_set(&preference, &plan->key));
    cublasStatus_t ret =
        cublasLtMatmulAlgoGetHeuristic(cublas->handle, &plan->matmul, &plan->b, &plan->a, &plan->residual,
                                       &plan->c, &preference, 1, &result, &nresults);
    if (ret == CUBLAS_STATUS_SUCCESS && nresults > 0)
        ret = result.state;
    if (ret == CUBLAS_STATUS_NOT_SUPPORTED || (ret == CUBLAS_STATUS_SUCCESS && nresults == 0))
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "cuBLAS has no algorithm for m=%lld n=%lld k=%lld %s -> %s",
                              (long long)plan->key.m, (long long)plan->key.n, (long long)plan->key.k,
                              starlin_dtype_name((starlin_dtype_t)plan->key.dtype),
                              starlin_dtype_name((starlin_dtype_t)plan->key.out_dtype));
    TRY(ret, "choosing an algorithm");
    plan->algo = result.algo;
    return STARLIN_SUCCESS;
}

/* Finds or makes the plan. With the lock held and the device current. */
static starlin_status_t plan_get(cublas_t *cublas, const starlin__gemm_t *gemm, plan_t **plan_p)
{
    plan_key_t key = key_of(gemm);
    for (plan_t *plan = cublas->plans; plan != NULL; plan = plan->next) {
        if (memcmp(&plan->key, &key, sizeof(key)) == 0) {
            *plan_p = plan;
            return STARLIN_SUCCESS;
        }
    }
    plan_t *plan = starlin__alloc(sizeof(*plan));
    if (plan == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the plan of a gemm");
    plan->key = key;
    starlin_status_t status = plan_choose(cublas, plan, gemm->epilogue.bias);
    if (status != STARLIN_SUCCESS) {
        starlin__free(plan);
        return status;
    }
    plan->next = cublas->plans;
    cublas->plans = plan;
    *plan_p = plan;
    return STARLIN_SUCCESS;
}

/* With the lock held and the device current, as is launch(). */
static starlin_status_t launch_without_k(const cublas_t *cublas, const starlin__gemm_t *gemm)
{
    cudaStream_t stream = starlin__device_cuda_stream(cublas->base.device, STARLIN__STREAM_COMPUTE);
    size_t nbytes = starlin_dtype_nbytes(gemm->out_dtype);
    starlin__rowwise_args_t args = starlin__epilogue_args(gemm, 0, 0, NULL);
    cudaError_t error = cudaSuccess;
    if (gemm->beta == 0)
        error = cudaMemset2DAsync(gemm->c, (size_t)gemm->ldc * nbytes, 0, (size_t)gemm->n * nbytes,
                                  (size_t)gemm->m, stream);
    if (error == cudaSuccess)
        error = (cudaError_t)starlin__finish_launch(&args, stream);
    return starlin__device_cuda_status(error, "launching a gemm without inner dimension");
}

static starlin_status_t launch(cublas_t *cublas, const starlin__gemm_t *gemm, plan_t *plan)
{
    cudaStream_t stream = starlin__device_cuda_stream(cublas->base.device, STARLIN__STREAM_COMPUTE);
    const void *bias = gemm->epilogue.bias, *residual = gemm->epilogue.residual;
    const double one_double = 1, beta_double = residual != NULL ? 1 : gemm->beta;
    const float one = 1, beta = (float)beta_double;
    bool is_double = gemm->dtype == STARLIN_F64;
    if (bias != NULL)
        DESCRIBE(plan, BIAS_POINTER, bias);
    TRY(cublasLtMatmul(cublas->handle, &plan->matmul, is_double ? (const void *)&one_double : &one, gemm->b,
                       &plan->b, gemm->a, &plan->a, is_double ? (const void *)&beta_double : &beta,
                       residual != NULL ? residual : gemm->c, &plan->residual, gemm->c, &plan->c, &plan->algo,
                       cublas->workspace, WORKSPACE_NBYTES, stream),
        "launching a gemm");
    return STARLIN_SUCCESS;
}

/* What a gemm computes on the way. Bias and residual together would be added in another order than those of
 * `finish`; and which formula the library's gelu is, its documentation does not say. */
static bool rides(const starlin__gemm_t *gemm)
{
    const starlin__epilogue_t *epilogue = &gemm->epilogue;
    if (starlin__epilogue_empty(epilogue))
        return true;
    if (gemm->out_dtype != gemm->dtype)
        return false;
    if (epilogue->residual != NULL)
        return epilogue->activation == STARLIN_IDENTITY && epilogue->bias == NULL && gemm->beta == 0;
    return epilogue->activation == STARLIN_IDENTITY || epilogue->activation == STARLIN_RELU;
}

/* Makes the plan of a gemm, and launches it where `launches`. */
static starlin_status_t run(cublas_t *cublas, const starlin__gemm_t *gemm, bool launches)
{
    plan_t *plan = NULL;
    assert(rides(gemm));
    if (gemm->m == 0 || gemm->n == 0 || (gemm->k == 0 && !launches))
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(cublas->base.device));
    pthread_mutex_lock(&cublas->lock);
    starlin_status_t status = gemm->k == 0 ? launch_without_k(cublas, gemm) : plan_get(cublas, gemm, &plan);
    if (status == STARLIN_SUCCESS && plan != NULL && launches)
        status = launch(cublas, gemm, plan);
    pthread_mutex_unlock(&cublas->lock);
    starlin__device_cuda_leave(cublas->base.device);
    return status;
}

/* What rides is computed on the accumulator, which is then rounded once: the bits of `finish` on the same
 * algorithm's product. The algorithm of a gemm to f32 may be another one, whose sums differ as those of any
 * two orders do: by at most 2 k eps sum |a b|, eps 2^-24 (f64: 2^-53), before the rounding. */
static bool cublas_fuses(const starlin__compute_t *base, const starlin__gemm_t *shape)
{
    return starlin__epilogue_empty(&shape->epilogue) ||
           (rides(shape) && run((cublas_t *)(uintptr_t)base, shape, false) == STARLIN_SUCCESS);
}

static starlin_status_t cublas_prepare(starlin__compute_t *base, const starlin__gemm_t *shape)
{
    return run((cublas_t *)base, shape, false);
}

static starlin_status_t cublas_gemm(starlin__compute_t *base, unsigned worker, const starlin__gemm_t *gemm)
{
    (void)worker;
    return run((cublas_t *)base, gemm, true);
}

static starlin_status_t cublas_rowwise(starlin__compute_t *base, const starlin__rowwise_kind_t *kind,
                                       const starlin__rowwise_args_t *args)
{
    char doing[64];
    if (kind->cuda == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "%s does not run on a device", kind->name);
    STARLIN__FORWARD(starlin__device_cuda_enter(base->device));
    int error = kind->cuda(args, starlin__device_cuda_stream(base->device, STARLIN__STREAM_COMPUTE));
    starlin__device_cuda_leave(base->device);
    snprintf(doing, sizeof(doing), "launching %s", kind->name);
    return starlin__device_cuda_status((cudaError_t)error, doing);
}

static bool cublas_usable(char *why, size_t whysize)
{
    if (starlin__device_cuda->count() > 0)
        return true;
    snprintf(why, whysize, "no CUDA device is visible");
    return false;
}

static void cublas_destroy(starlin__compute_t *base)
{
    cublas_t *cublas = (cublas_t *)base;
    if (cublas == NULL)
        return;
    if (starlin__device_cuda_enter(base->device) == STARLIN_SUCCESS) {
        if (cublas->handle != NULL)
            (void)cublasLtDestroy(cublas->handle);
        starlin__device_cuda_leave(base->device);
    }
    base->device->ops->free(base->device, cublas->workspace);
    pthread_mutex_destroy(&cublas->lock);
    while (cublas->plans != NULL) {
        plan_t *next = cublas->plans->next;
        starlin__free(cublas->plans);
        cublas->plans = next;
    }
    starlin__free(cublas);
}

static starlin_status_t cublas_open(cublas_t *cublas)
{
    starlin__device_t *device = cublas->base.device;
    STARLIN__FORWARD(device->ops->alloc(device, WORKSPACE_NBYTES, &cublas->workspace));
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    starlin_status_t status = translate(cublasLtCreate(&cublas->handle), "opening the library");
    starlin__device_cuda_leave(device);
    return status;
}

static starlin_status_t cublas_create(starlin__device_t *device, const starlin__config_t *config,
                                      unsigned nworkers, unsigned nthreads, starlin__compute_t **compute_p)
{
    (void)nworkers;
    (void)nthreads;
    if (device == NULL)
        return starlin__error(STARLIN_ERR_NO_DEVICE, "cublas needs a CUDA device");
    cublas_t *cublas = starlin__alloc(sizeof(*cublas));
    if (cublas == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for a compute backend");
    cublas->base.ops = &starlin__compute_cublas_ops;
    cublas->base.device = device;
    snprintf(cublas->base.version, sizeof(cublas->base.version), "cuBLASLt %zu", cublasLtGetVersion());
    cublas->tf32 = config->tf32 == 1;
    pthread_mutex_init(&cublas->lock, NULL);
    starlin_status_t status = cublas_open(cublas);
    if (status != STARLIN_SUCCESS) {
        cublas_destroy(&cublas->base);
        return status;
    }
    *compute_p = &cublas->base;
    return STARLIN_SUCCESS;
}

const starlin__compute_ops_t starlin__compute_cublas_ops = {
    .name = "cublas",
    .usable = cublas_usable,
    .space = STARLIN__DEVICE,
    .create = cublas_create,
    .destroy = cublas_destroy,
    .prepare = cublas_prepare,
    .fuses = cublas_fuses,
    .gemm = cublas_gemm,
    .rowwise = cublas_rowwise,
};
