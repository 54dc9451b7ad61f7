/* SPDX-License-Identifier: BSD-3-Clause */
/* By hand on a GPU: one compute stream, one communication stream of high priority, events made beforehand;
 * gemm i, event, collective i, gemm i+1, ... and one wait at the end. Algorithms of gemms are chosen by
 * cuBLASLt's heuristic before anything is timed. */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include <starlin/starlin_cuda.h>

#include "collectives.h"
#include "round_cuda.h"

#define WORKSPACE_NBYTES ((size_t)32 << 20)

/* A gemm's algorithm, by its shape. */
typedef struct plan {
    struct plan *next;
    perf_gemm_t shape;
    cublasLtMatmulDescOpaque_t matmul;
    cublasLtMatrixLayoutOpaque_t x, w, y;
    cublasLtMatmulAlgo_t algo;
} plan_t;

typedef struct hand_cublas {
    perf_hand_t base;
    perf_link_t link;
    int nranks;
    perf_collectives_t *collectives; /* NULL: one rank, or modelled */
    cudaStream_t compute, comm;
    cudaEvent_t before[PERF_MAX_SLOTS], done[PERF_MAX_SLOTS];
    cublasLtHandle_t cublas;
    void *workspace;
    plan_t *plans;
} hand_cublas_t;

static bool cuda_ok(int ret, const char *doing, perf_error_t *error)
{
    return ret == cudaSuccess ||
           perf_error_status(error,
                             ret == cudaErrorMemoryAllocation ? STARLIN_ERR_NO_MEMORY : STARLIN_ERR_COMPUTE,
                             "baselines: CUDA: %s while %s", cudaGetErrorString((cudaError_t)ret), doing);
}

static bool cublas_ok(cublasStatus_t ret, const char *doing, perf_error_t *error)
{
    return ret == CUBLAS_STATUS_SUCCESS ||
           perf_error_status(error, STARLIN_ERR_COMPUTE, "baselines: cuBLAS: %s while %s",
                             cublasLtGetStatusString(ret), doing);
}

static bool fits(const starlin_context_info_t *info)
{
    return strcmp(info->compute, "cublas") == 0 && strcmp(info->comm, "mpi") != 0;
}

static void destroy(perf_hand_t *base)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    if (hand == NULL)
        return;
    perf_collectives_close(hand->collectives);
    for (size_t i = 0; i < PERF_MAX_SLOTS; i++) {
        if (hand->before[i] != NULL)
            (void)cudaEventDestroy(hand->before[i]);
        if (hand->done[i] != NULL)
            (void)cudaEventDestroy(hand->done[i]);
    }
    if (hand->compute != NULL)
        (void)cudaStreamDestroy(hand->compute);
    if (hand->comm != NULL)
        (void)cudaStreamDestroy(hand->comm);
    if (hand->cublas != NULL)
        (void)cublasLtDestroy(hand->cublas);
    (void)cudaFree(hand->workspace);
    for (plan_t *plan = hand->plans, *next; plan != NULL; plan = next) {
        next = plan->next;
        free(plan);
    }
    (void)cudaGetLastError();
    free(hand);
}

static bool open_streams(hand_cublas_t *hand, perf_error_t *error)
{
    int lowest, highest;
    bool ok =
        cuda_ok((int)cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities", error) &&
        cuda_ok((int)cudaStreamCreateWithPriority(&hand->compute, cudaStreamNonBlocking, lowest),
                "making a stream", error) &&
        cuda_ok((int)cudaStreamCreateWithPriority(&hand->comm, cudaStreamNonBlocking, highest),
                "making a stream", error);
    for (size_t i = 0; ok && i < PERF_MAX_SLOTS; i++)
        ok = cuda_ok((int)cudaEventCreateWithFlags(&hand->before[i], cudaEventDisableTiming),
                     "making an event", error) &&
             cuda_ok((int)cudaEventCreateWithFlags(&hand->done[i], cudaEventDisableTiming), "making an event",
                     error);
    return ok;
}

static bool create(const perf_hand_setup_t *setup, perf_hand_t **hand_p, perf_error_t *error)
{
    struct cudaPointerAttributes where;
    hand_cublas_t *hand = calloc(1, sizeof(*hand));
    if (hand == NULL)
        return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a baseline");
    hand->base.ops = &perf_hand_cublas_ops;
    hand->link = setup->link;
    hand->link.modelled = strcmp(setup->info.comm, "model") == 0;
    hand->nranks = setup->nranks;
    bool ok = cuda_ok((int)cudaPointerGetAttributes(&where, setup->data), "asking for the device", error) &&
              cuda_ok((int)cudaSetDevice(where.device), "choosing the device", error) &&
              open_streams(hand, error) &&
              cuda_ok((int)cudaMalloc(&hand->workspace, WORKSPACE_NBYTES), "allocating a workspace", error) &&
              cublas_ok(cublasLtCreate(&hand->cublas), "opening it", error);
    if (ok && strcmp(setup->info.comm, "nccl") == 0)
        ok = perf_collectives_open(setup->rank, setup->nranks, &hand->collectives, error);
    if (!ok) {
        destroy(&hand->base);
        return false;
    }
    *hand_p = &hand->base;
    return true;
}

static void *hand_alloc(perf_hand_t *base, size_t nbytes)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    void *data = NULL;
    if (hand->collectives != NULL)
        data = perf_collectives_alloc(hand->collectives, nbytes);
    else if (cudaMalloc(&data, nbytes) != cudaSuccess)
        data = NULL;
    if (data != NULL &&
        (cudaMemset(data, 0, nbytes) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess))
        data = NULL;
    (void)cudaGetLastError();
    return data;
}

static void hand_free(perf_hand_t *base, void *data)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    if (hand->collectives != NULL)
        perf_collectives_free(hand->collectives, data);
    else
        (void)cudaFree(data);
}

static bool copy(perf_hand_t *hand, void *dst, const void *src, size_t nbytes, perf_error_t *error)
{
    (void)hand;
    return cuda_ok((int)cudaMemcpy(dst, src, nbytes, cudaMemcpyDefault), "copying", error);
}

static cudaDataType_t data_type(starlin_dtype_t dtype)
{
    switch (dtype) {
    case STARLIN_F64:
        return CUDA_R_64F;
    case STARLIN_F16:
        return CUDA_R_16F;
    case STARLIN_BF16:
        return CUDA_R_16BF;
    default:
        return CUDA_R_32F;
    }
}

/* cuBLAS is column-major: a row-major matrix is its transpose there, so Y^T = (W^T)^T X^T is computed. */
static bool describe(plan_t *plan, perf_error_t *error)
{
    static const char doing[] = "describing a gemm";
    const perf_gemm_t *gemm = &plan->shape;
    const char *tf32 = getenv("STARLIN_TF32"); /* as the library computes */
    bool is_double = gemm->dtype == STARLIN_F64;
    cublasComputeType_t type = is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    if (gemm->dtype == STARLIN_F32 && tf32 != NULL && strcmp(tf32, "1") == 0)
        type = CUBLAS_COMPUTE_32F_FAST_TF32;
    int32_t transpose = CUBLAS_OP_T;
    cudaDataType_t in = data_type(gemm->dtype), out = data_type(gemm->y_dtype);
    return cublas_ok(cublasLtMatmulDescInit(&plan->matmul, type, is_double ? CUDA_R_64F : CUDA_R_32F), doing,
                     error) &&
           cublas_ok(cublasLtMatmulDescSetAttribute(&plan->matmul, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                                    sizeof(transpose)),
                     doing, error) &&
           cublas_ok(cublasLtMatrixLayoutInit(&plan->w, in, (uint64_t)gemm->k, (uint64_t)gemm->n, gemm->k),
                     doing, error) &&
           cublas_ok(cublasLtMatrixLayoutInit(&plan->x, in, (uint64_t)gemm->k, (uint64_t)gemm->m, gemm->k),
                     doing, error) &&
           cublas_ok(cublasLtMatrixLayoutInit(&plan->y, out, (uint64_t)gemm->n, (uint64_t)gemm->m, gemm->n),
                     doing, error);
}

/* Largest power of two up to 256 that divides the address of every row of contiguous memory. */
static uint32_t alignment(int64_t columns, starlin_dtype_t dtype)
{
    uint64_t bits = (uint64_t)columns * starlin_dtype_nbytes(dtype) | 256;
    return (uint32_t)(bits & (~bits + 1));
}

static bool choose(hand_cublas_t *hand, plan_t *plan, perf_error_t *error)
{
    static const char doing[] = "choosing an algorithm";
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const size_t workspace = WORKSPACE_NBYTES;
    const uint32_t in = alignment(plan->shape.k, plan->shape.dtype);
    const uint32_t out = alignment(plan->shape.n, plan->shape.y_dtype);
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t nbytes;
    } settings[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)},
                    {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof(reduction)},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &in, sizeof(in)},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &in, sizeof(in)},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &out, sizeof(out)},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &out, sizeof(out)}};
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int nresults = 0;
    bool ok = describe(plan, error) && cublas_ok(cublasLtMatmulPreferenceInit(&preference), doing, error);
    for (size_t i = 0; ok && i < sizeof(settings) / sizeof(settings[0]); i++)
        ok = cublas_ok(cublasLtMatmulPreferenceSetAttribute(&preference, settings[i].attribute,
                                                            settings[i].value, settings[i].nbytes),
                       doing, error);
    ok = ok &&
         cublas_ok(cublasLtMatmulAlgoGetHeuristic(hand->cublas, &plan->matmul, &plan->w, &plan->x, &plan->y,
                                                  &plan->y, &preference, 1, &result, &nresults),
                   doing, error);
    if (ok && nresults == 0)
        return perf_error_status(error, STARLIN_ERR_UNSUPPORTED, "baselines: cuBLAS has no such gemm");
    if (ok)
        plan->algo = result.algo;
    return ok;
}

static bool same_shape(const perf_gemm_t *a, const perf_gemm_t *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->dtype == b->dtype && a->y_dtype == b->y_dtype;
}

static plan_t *find_plan(hand_cublas_t *hand, const perf_gemm_t *gemm, perf_error_t *error)
{
    for (plan_t *plan = hand->plans; plan != NULL; plan = plan->next)
        if (same_shape(&plan->shape, gemm))
            return plan;
    plan_t *plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a baseline's gemm");
        return NULL;
    }
    plan->shape = *gemm;
    if (!choose(hand, plan, error)) {
        free(plan);
        return NULL;
    }
    plan->next = hand->plans;
    hand->plans = plan;
    return plan;
}

static bool is_empty(const perf_gemm_t *gemm)
{
    return gemm->m == 0 || gemm->n == 0 || gemm->k == 0;
}

static bool prepare(perf_hand_t *hand, const perf_gemm_t *gemm, perf_error_t *error)
{
    return is_empty(gemm) || find_plan((hand_cublas_t *)hand, gemm, error) != NULL;
}

static bool gemm(perf_hand_t *base, const perf_gemm_t *one, perf_error_t *error)
{
    static const float f_one = 1, f_zero = 0;
    static const double d_one = 1, d_zero = 0;
    hand_cublas_t *hand = (hand_cublas_t *)base;
    bool is_double = one->dtype == STARLIN_F64;
    if (is_empty(one))
        return cuda_ok((int)cudaMemsetAsync(one->y, 0,
                                            (size_t)(one->m * one->n) * starlin_dtype_nbytes(one->y_dtype),
                                            hand->compute),
                       "zeroing", error);
    plan_t *plan = find_plan(hand, one, error);
    return plan != NULL &&
           cublas_ok(cublasLtMatmul(hand->cublas, &plan->matmul, is_double ? (const void *)&d_one : &f_one,
                                    one->w, &plan->w, one->x, &plan->x,
                                    is_double ? (const void *)&d_zero : &f_zero, one->y, &plan->y, one->y,
                                    &plan->y, &plan->algo, hand->workspace, WORKSPACE_NBYTES, hand->compute),
                     "multiplying", error);
}

static bool round_half(perf_hand_t *base, const float *src, void *dst, size_t count, starlin_dtype_t dtype,
                       perf_error_t *error)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    return cuda_ok(perf_round_launch(src, dst, count, dtype == STARLIN_BF16, hand->compute), "rounding",
                   error);
}

/* One rank's collective moves its block; on the modelled link it takes the link's time. */
static bool launch_alone(hand_cublas_t *hand, const perf_collective_t *collective, perf_error_t *error)
{
    size_t nbytes = collective->count * starlin_dtype_nbytes(collective->dtype);
    bool ok = true;
    if (collective->send != collective->receive)
        ok = cuda_ok((int)cudaMemcpyAsync(collective->receive, collective->send, nbytes,
                                          cudaMemcpyDeviceToDevice, hand->comm),
                     "copying", error);
    if (ok && hand->link.modelled)
        ok = cuda_ok(starlin_cuda_paced_copy(collective->receive, nbytes, hand->link.ctas,
                                             perf_link_time_us(&hand->link, collective, hand->nranks),
                                             hand->comm),
                     "launching a modelled collective", error);
    return ok;
}

static bool start(perf_hand_t *base, unsigned slot, const perf_collective_t *collective, perf_error_t *error)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    return cuda_ok((int)cudaEventRecord(hand->before[slot], hand->compute), "recording an event", error) &&
           cuda_ok((int)cudaStreamWaitEvent(hand->comm, hand->before[slot], 0), "waiting for an event",
                   error) &&
           (hand->collectives != NULL
                ? perf_collectives_launch(hand->collectives, collective, hand->comm, error)
                : launch_alone(hand, collective, error)) &&
           cuda_ok((int)cudaEventRecord(hand->done[slot], hand->comm), "recording an event", error);
}

static bool after(perf_hand_t *base, unsigned slot, perf_error_t *error)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    return cuda_ok((int)cudaStreamWaitEvent(hand->compute, hand->done[slot], 0), "waiting for an event",
                   error);
}

static bool finish(perf_hand_t *base, perf_error_t *error)
{
    hand_cublas_t *hand = (hand_cublas_t *)base;
    return cuda_ok((int)cudaStreamSynchronize(hand->compute), "computing", error) &&
           cuda_ok((int)cudaStreamSynchronize(hand->comm), "communicating", error);
}

const perf_hand_ops_t perf_hand_cublas_ops = {
    .name = "device",
    .fits = fits,
    .create = create,
    .destroy = destroy,
    .alloc = hand_alloc,
    .free = hand_free,
    .copy = copy,
    .prepare = prepare,
    .gemm = gemm,
    .round = round_half,
    .start = start,
    .after = after,
    .finish = finish,
};
