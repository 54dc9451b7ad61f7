/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's CUDA state is the same after a call as before it: the current context, also when there is
 * none, the current device and the last error. */
#define _POSIX_C_SOURCE 200809L
#include <cuda_runtime.h>
#include <cudaTypedefs.h>
#include <pthread.h>

#include "comm/comm.h"
#include "compute/compute.h"
#include "gpu.h"

static CUcontext current(void)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found;
    CUcontext context = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 4000, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuCtxGetCurrent", &function, cudaEnableDefault, &found);
#endif
    CHECK(error == cudaSuccess && function != NULL);
    if (function != NULL)
        CHECK_EQ_INT(((PFN_cuCtxGetCurrent_v4000)function)(&context), CUDA_SUCCESS);
    return context;
}

#define CHECK_KEEPS(call, expected)                                                                          \
    do {                                                                                                     \
        CHECK_STATUS(call, expected);                                                                        \
        CHECK(current() == before);                                                                          \
        CHECK_EQ_INT(cudaPeekAtLastError(), cudaSuccess);                                                    \
    } while (0)

static void use(starlin__device_t *device, starlin__compute_t *compute, CUcontext before)
{
    const starlin__device_ops_t *ops = device->ops;
    starlin__gemm_t gemm = {.m = 4, .n = 4, .k = 4, .transpose_b = true, .lda = 4, .ldb = 4, .ldc = 4};
    starlin__collective_t request = {.count = 16, .cols = 1};
    void *memory = NULL;
    bool passed = true;
    CHECK_KEEPS(ops->alloc(device, 3 * 64, &memory), STARLIN_SUCCESS);
    CHECK_KEEPS(ops->alloc(device, (size_t)1 << 50, &memory), STARLIN_ERR_NO_MEMORY);
    CHECK_KEEPS(ops->event_create(device, &request.done), STARLIN_SUCCESS);
    gemm.a = memory;
    gemm.b = (char *)memory + 64;
    gemm.c = request.recv = (char *)memory + 128;
    CHECK_KEEPS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    CHECK_KEEPS(compute->ops->gemm(compute, 0, &gemm), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin__model_launch(device, &request, 2, 2000.0), STARLIN_SUCCESS);
    /* 2 ms of work lie ahead, so this is the "not ready" that CUDA reports as an error */
    CHECK_KEEPS(ops->event_query(device, request.done, &passed), STARLIN_SUCCESS);
    CHECK(!passed);
    CHECK_KEEPS(ops->event_wait(device, request.done, STARLIN__STREAM_COMPUTE), STARLIN_SUCCESS);
    CHECK_KEEPS(ops->synchronize(device), STARLIN_SUCCESS);
    CHECK_KEEPS(ops->event_query(device, request.done, &passed), STARLIN_SUCCESS);
    CHECK(passed);
    ops->event_destroy(device, request.done);
    ops->free(device, memory);
    CHECK(current() == before);
}

typedef struct shared {
    starlin__device_t *device;
    starlin__compute_t *compute;
} shared_t;

/* A thread that has never used CUDA has no context, and has none afterwards. */
static void *fresh_thread(void *arg)
{
    shared_t *shared = arg;
    CHECK(current() == NULL);
    use(shared->device, shared->compute, NULL);
    return NULL;
}

/* The public calls, StarPU's start and its moving of data included. */
static void use_context(CUcontext before)
{
    enum { ROWS = 8, COLS = 4 };
    static float x_data[ROWS * COLS], w_data[COLS * COLS], y_data[ROWS * COLS], result[ROWS * COLS];
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_chunking_options_t chunks = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_matrix_layout_t layout = {.cols = COLS}, input = {.cols = COLS, .placement = STARLIN_SHARD_COLS},
                            weight = {.rows = COLS, .cols = COLS};
    starlin_context_t *context = NULL;
    starlin_chunking_t *rows = NULL;
    starlin_matrix_t *x = NULL, *w = NULL, *y = NULL;

    options.comm = "self";
    CHECK_KEEPS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    if (context == NULL)
        return;
    chunks.count = 2;
    CHECK_KEEPS(starlin_chunking_plan(context, ROWS, NULL, 0, &chunks, &rows), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_matrix_wrap(context, rows, x_data, &input, &x), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_matrix_create(context, NULL, &weight, &w), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_matrix_wrap(context, rows, y_data, &layout, &y), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_matrix_write(w, w_data, 0), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_row_linear(context, x, w, y, NULL), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_matrix_wait(y), STARLIN_SUCCESS);
    CHECK_KEEPS(starlin_matrix_read(y, result, 0), STARLIN_SUCCESS);
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    CHECK(current() == before);
    starlin_chunking_destroy(rows);
    CHECK_KEEPS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

int main(void)
{
    setenv("STARPU_SILENT", "1", 0);
    if (!gpu_is_here())
        return 77;
    CHECK(current() == NULL);
    use_context(NULL);
    shared_t shared = {.device = gpu_open()};
    starlin__config_t config;
    pthread_t thread;
    int device = -1;
    CHECK(current() == NULL);
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__compute_cublas_ops.create(shared.device, &config, 1, 1, &shared.compute),
                 STARLIN_SUCCESS);
    if (shared.compute == NULL)
        return 1;
    CHECK(current() == NULL);
    CHECK_EQ_INT(pthread_create(&thread, NULL, fresh_thread, &shared), 0);
    CHECK_EQ_INT(pthread_join(thread, NULL), 0);
    /* a thread with a device of its own: the last one, which is another one where there are several */
    int last = (int)starlin__device_cuda->count() - 1;
    CHECK_EQ_INT(cudaSetDevice(last), cudaSuccess);
    CHECK(current() != NULL);
    use(shared.device, shared.compute, current());
    CHECK_EQ_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_EQ_INT(device, last);
    shared.compute->ops->destroy(shared.compute);
    shared.device->ops->destroy(shared.device);
    return CHECK_RESULT();
}
