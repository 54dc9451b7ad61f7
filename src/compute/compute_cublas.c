/* SPDX-License-Identifier: BSD-3-Clause */
/* Gemms by cuBLASLt on the device's compute stream. Invariants: an algorithm is chosen once for each shape
 * and alignment, by the library's heuristic alone, so the same shape gives the same bits in every run; what
 * was prepared launches without allocating. Launches are serialized by the lock and by the stream, which is
 * why one workspace is enough. */
#include "machine/device_cuda.h"

#include <cublasLt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/cast_kernel.h"
#include "compute/compute.h"

#define WORKSPACE_NBYTES ((size_t)32 << 20)
#define MAX_ALIGNMENT    256u

/* What the choice of an algorithm depends on. Compared bytewise, so zeroed before it is filled. */
typedef struct plan_key {
    int64_t m, n, k, ldx, ldw, ldy;
    uint32_t align_x, align_w, align_y;
    int32_t dtype, out_dtype;
} plan_key_t;

/* Never moves: whether cuBLAS's descriptors may be copied is not documented. */
typedef struct plan {
    struct plan *next;
    plan_key_t key;
    cublasLtMatmulDescOpaque_t matmul;
    cublasLtMatrixLayoutOpaque_t x, w, y;
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
    plan_key_t key;
    memset(&key, 0, sizeof(key));
    key.m = gemm->m;
    key.n = gemm->n;
    key.k = gemm->k;
    key.ldx = gemm->ldx;
    key.ldw = gemm->ldw;
    key.ldy = gemm->ldy;
    key.align_x = alignment(gemm->x, gemm->ldx, gemm->dtype);
    key.align_w = alignment(gemm->w, gemm->ldw, gemm->dtype);
    key.align_y = alignment(gemm->y, gemm->ldy, gemm->out_dtype);
    key.dtype = (int32_t)gemm->dtype;
    key.out_dtype = (int32_t)gemm->out_dtype;
    return key;
}

/* cuBLAS is column-major: a row-major matrix is its transpose there, so Y^T = (W^T)^T X^T is computed. */
static starlin_status_t plan_describe(const cublas_t *cublas, plan_t *plan)
{
    const plan_key_t *key = &plan->key;
    cudaDataType_t in = data_type((starlin_dtype_t)key->dtype),
                   out = data_type((starlin_dtype_t)key->out_dtype);
    bool is_double = key->dtype == STARLIN_F64;
    cublasComputeType_t type = is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    if (cublas->tf32 && key->dtype == STARLIN_F32)
        type = CUBLAS_COMPUTE_32F_FAST_TF32;
    int32_t transpose = CUBLAS_OP_T;
    TRY(cublasLtMatmulDescInit(&plan->matmul, type, is_double ? CUDA_R_64F : CUDA_R_32F),
        "describing a gemm");
    TRY(cublasLtMatmulDescSetAttribute(&plan->matmul, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                       sizeof(transpose)),
        "describing a gemm");
    TRY(cublasLtMatrixLayoutInit(&plan->w, in, (uint64_t)key->k, (uint64_t)key->n, key->ldw), "describing W");
    TRY(cublasLtMatrixLayoutInit(&plan->x, in, (uint64_t)key->k, (uint64_t)key->m, key->ldx), "describing X");
    TRY(cublasLtMatrixLayoutInit(&plan->y, out, (uint64_t)key->n, (uint64_t)key->m, key->ldy),
        "describing Y");
    return STARLIN_SUCCESS;
}

static starlin_status_t preference_set(cublasLtMatmulPreferenceOpaque_t *preference, const plan_key_t *key)
{
    /* partial sums of a split K stay in the accumulator's type: one rounding, at the end */
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const size_t workspace = WORKSPACE_NBYTES;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t nbytes;
    } settings[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof(reduction)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &key->align_w, sizeof(key->align_w)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &key->align_x, sizeof(key->align_x)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &key->align_y, sizeof(key->align_y)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &key->align_y, sizeof(key->align_y)},
    };
    TRY(cublasLtMatmulPreferenceInit(preference), "choosing an algorithm");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        TRY(cublasLtMatmulPreferenceSetAttribute(preference, settings[i].attribute, settings[i].value,
                                                 settings[i].nbytes),
            "choosing an algorithm");
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t plan_choose(const cublas_t *cublas, plan_t *plan)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int nresults = 0;
    STARLIN__FORWARD(plan_describe(cublas, plan));
    STARLIN__FORWARD(preference_set(&preference, &plan->key));
    cublasStatus_t ret =
        cublasLtMatmulAlgoGetHeuristic(cublas->handle, &plan->matmul, &plan->w, &plan->x, &plan->y, &plan->y,
                                       &preference, 1, &result, &nresults);
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
    starlin_status_t status = plan_choose(cublas, plan);
    if (status != STARLIN_SUCCESS) {
        starlin__free(plan);
        return status;
    }
    plan->next = cublas->plans;
    cublas->plans = plan;
    *plan_p = plan;
    return STARLIN_SUCCESS;
}

/* With the lock held and the device current. */
static starlin_status_t launch(cublas_t *cublas, const starlin__gemm_t *gemm)
{
    static const float one = 1, zero = 0;
    static const double one_double = 1, zero_double = 0;
    bool is_double = gemm->dtype == STARLIN_F64;
    cudaStream_t stream = starlin__device_cuda_stream(cublas->base.device, STARLIN__STREAM_COMPUTE);
    plan_t *plan;
    if (gemm->k == 0) {
        size_t nbytes = starlin_dtype_nbytes(gemm->out_dtype);
        return starlin__device_cuda_status(cudaMemset2DAsync(gemm->y, (size_t)gemm->ldy * nbytes, 0,
                                                             (size_t)gemm->n * nbytes, (size_t)gemm->m,
                                                             stream),
                                           "zeroing a product without inner dimension");
    }
    STARLIN__FORWARD(plan_get(cublas, gemm, &plan));
    TRY(cublasLtMatmul(cublas->handle, &plan->matmul, is_double ? (const void *)&one_double : &one, gemm->w,
                       &plan->w, gemm->x, &plan->x, is_double ? (const void *)&zero_double : &zero, gemm->y,
                       &plan->y, gemm->y, &plan->y, &plan->algo, cublas->workspace, WORKSPACE_NBYTES, stream),
        "launching a gemm");
    return STARLIN_SUCCESS;
}

static starlin_status_t cublas_gemm(starlin__compute_t *base, unsigned worker, const starlin__gemm_t *gemm)
{
    cublas_t *cublas = (cublas_t *)base;
    (void)worker;
    if (gemm->m == 0 || gemm->n == 0)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(base->device));
    pthread_mutex_lock(&cublas->lock);
    starlin_status_t status = launch(cublas, gemm);
    pthread_mutex_unlock(&cublas->lock);
    starlin__device_cuda_leave(base->device);
    return status;
}

static starlin_status_t cublas_prepare(starlin__compute_t *base, const starlin__gemm_t *shape)
{
    cublas_t *cublas = (cublas_t *)base;
    plan_t *plan;
    if (shape->m == 0 || shape->n == 0 || shape->k == 0)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(base->device));
    pthread_mutex_lock(&cublas->lock);
    starlin_status_t status = plan_get(cublas, shape, &plan);
    pthread_mutex_unlock(&cublas->lock);
    starlin__device_cuda_leave(base->device);
    return status;
}

static starlin_status_t cublas_cast(starlin__compute_t *base, unsigned worker, const starlin__cast_t *cast)
{
    cudaStream_t stream = starlin__device_cuda_stream(base->device, STARLIN__STREAM_COMPUTE);
    cudaError_t error = cudaSuccess;
    (void)worker;
    if (cast->dtype != cast->src_dtype && (cast->src_dtype != STARLIN_F32 || cast->dtype == STARLIN_F64))
        return starlin__error(STARLIN_ERR_INVALID, "cast from %s to %s", starlin_dtype_name(cast->src_dtype),
                              starlin_dtype_name(cast->dtype));
    if (cast->count == 0 || cast->dst == cast->src)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(base->device));
    if (cast->dtype == cast->src_dtype)
        error = cudaMemcpyAsync(cast->dst, cast->src, cast->count * starlin_dtype_nbytes(cast->dtype),
                                cudaMemcpyDeviceToDevice, stream);
    else
        error = (cudaError_t)starlin__cast_launch(cast->src, cast->dst, cast->count,
                                                  cast->dtype == STARLIN_BF16, stream);
    starlin__device_cuda_leave(base->device);
    return starlin__device_cuda_status(error, "launching a cast");
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

static starlin_status_t cublas_create(starlin__device_t *device, unsigned nworkers, unsigned nthreads,
                                      starlin__compute_t **compute_p)
{
    const char *tf32 = getenv("STARLIN_TF32");
    (void)nworkers;
    (void)nthreads;
    if (device == NULL)
        return starlin__error(STARLIN_ERR_NO_DEVICE, "cublas needs a CUDA device");
    if (tf32 != NULL && strcmp(tf32, "0") != 0 && strcmp(tf32, "1") != 0)
        return starlin__error(STARLIN_ERR_INVALID, "STARLIN_TF32 is \"%s\"; allowed are 0 and 1", tf32);
    cublas_t *cublas = starlin__alloc(sizeof(*cublas));
    if (cublas == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for a compute backend");
    cublas->base.ops = &starlin__compute_cublas_ops;
    cublas->base.device = device;
    snprintf(cublas->base.version, sizeof(cublas->base.version), "cuBLASLt %zu", cublasLtGetVersion());
    cublas->tf32 = tf32 != NULL && strcmp(tf32, "1") == 0;
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
    .gemm = cublas_gemm,
    .cast = cublas_cast,
};
