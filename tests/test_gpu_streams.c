/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller with a stream of its own: it writes inputs late, hands them over, takes results and overwrites
 * inputs again, all in stream order; the host waits for nothing until the end. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "gpu.h"
#include "gpu_cuda.h"
#include "operand.h"

enum { NSTEPS = 50, M = 96, N = 40, K = 16, NCHUNKS = 6, DELAY_US = 1500 };

typedef struct caller {
    starlin_context_t *context;
    cudaStream_t stream;
    operand_t x, w, y;
    float *inputs;  /* NSTEPS x M x K, pinned */
    float *results; /* NSTEPS x M x N, pinned */
} caller_t;

/* Step s: row i of x is (s + i) % 7 everywhere, so that y is K times that. */
static float value(int step, int row)
{
    return (float)((step + row) % 7);
}

static bool caller_begin(caller_t *caller, starlin_context_t *context, cudaStream_t stream,
                         const starlin_chunking_t *rows, memory_t memory)
{
    static int8_t ones[N * K];
    bool is_open;

    memset(ones, 1, sizeof ones);
    *caller = (caller_t){.context = context, .stream = stream};
    is_open = operand_open(&caller->x, context, rows, STARLIN_SHARD_COLS, M, K, 0, STARLIN_F32, memory, NULL);
    is_open &= operand_open(&caller->w, context, NULL, STARLIN_REPLICATE, N, K, 0, STARLIN_F32, memory, ones);
    is_open &= operand_open(&caller->y, context, rows, STARLIN_REPLICATE, M, N, 0, STARLIN_F32, memory, NULL);
    CHECK_CUDA(cudaMallocHost((void **)&caller->inputs, sizeof(float) * NSTEPS * M * K));
    CHECK_CUDA(cudaMallocHost((void **)&caller->results, sizeof(float) * NSTEPS * M * N));
    if (!is_open || caller->inputs == NULL || caller->results == NULL)
        return false;
    for (int i = 0; i < NSTEPS * M * K; i++)
        caller->inputs[i] = value(i / (M * K), i / K % M);
    for (int i = 0; i < NSTEPS * M * N; i++)
        caller->results[i] = -1;
    return true;
}

static void caller_end(caller_t *caller)
{
    operand_close(&caller->x);
    operand_close(&caller->w);
    operand_close(&caller->y);
    CHECK_CUDA(cudaFreeHost(caller->inputs));
    CHECK_CUDA(cudaFreeHost(caller->results));
}

static void step(const caller_t *caller, int number)
{
    float *x = starlin_matrix_data(caller->x.matrix), *y = starlin_matrix_data(caller->y.matrix);

    stream_delay(caller->stream, DELAY_US);
    CHECK_CUDA(cudaMemcpyAsync(x, caller->inputs + (size_t)number * M * K, sizeof(float) * M * K,
                               cudaMemcpyHostToDevice, caller->stream));
    CHECK_STATUS(starlin_cuda_operators_wait_stream(caller->context, caller->stream), STARLIN_SUCCESS);
    CHECK_STATUS(
        starlin_row_linear(caller->context, caller->x.matrix, caller->w.matrix, caller->y.matrix, NULL),
        STARLIN_SUCCESS);
    CHECK_STATUS(starlin_cuda_stream_wait_matrix(caller->stream, caller->y.matrix), STARLIN_SUCCESS);
    CHECK_CUDA(cudaMemcpyAsync(caller->results + (size_t)number * M * N, y, sizeof(float) * M * N,
                               cudaMemcpyDeviceToHost, caller->stream));
}

static size_t wrong_results(const caller_t *caller)
{
    size_t wrong = 0;
    for (int i = 0; i < NSTEPS * M * N; i++) {
        float expected = K * value(i / (M * N), i / N % M);
        if (caller->results[i] != expected && wrong++ == 0)
            fprintf(stderr, "step %d, row %d: %g, expected %g\n", i / (M * N), i / N % M,
                    (double)caller->results[i], (double)expected);
    }
    return wrong;
}

static void test_steps(starlin_context_t *context, cudaStream_t stream, memory_t memory, const char *name)
{
    starlin_chunking_t *rows = plan_rows(context, M, NCHUNKS);
    caller_t caller;

    if (caller_begin(&caller, context, stream, rows, memory)) {
        step(&caller, 0); /* plans; later steps do not wait for anything */
        CHECK_CUDA(cudaStreamSynchronize(stream));
        double start_us = starlin__now_us();
        for (int i = 0; i < NSTEPS; i++)
            step(&caller, i);
        double submitted_us = starlin__now_us();
        CHECK_CUDA(cudaStreamSynchronize(stream));
        double end_us = starlin__now_us();
        CHECK_EQ_INT(wrong_results(&caller), 0);
        /* the stream is busy for at least the delays, the host only for the launches */
        CHECK(end_us - start_us >= (double)NSTEPS * DELAY_US);
        CHECK(submitted_us - start_us < 0.5 * (end_us - start_us));
        printf("%s stream, %s memory: %d steps submitted in %.1f ms, over after %.1f ms\n", name,
               memory_names[memory], NSTEPS, (submitted_us - start_us) / 1e3, (end_us - start_us) / 1e3);
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    caller_end(&caller);
    starlin_chunking_destroy(rows);
}

/* The caller overwrites an input as soon as its stream may: the operator that reads it, behind a long one,
 * still sees what was there. */
static void test_input_reused(starlin_context_t *context, cudaStream_t stream)
{
    enum { LONG = 4096 };
    starlin_chunking_t *rows = plan_rows(context, M, NCHUNKS);
    starlin_chunking_t *long_rows = plan_rows(context, LONG, 2);
    starlin_matrix_layout_t layout = {.cols = LONG}, weight = layout, input = layout;
    starlin_matrix_t *long_x = NULL, *long_w = NULL, *long_y = NULL;
    caller_t caller;
    size_t wrong = 0;

    weight.rows = LONG;
    input.placement = STARLIN_SHARD_COLS;
    CHECK_STATUS(starlin_matrix_create(context, long_rows, &input, &long_x), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(context, NULL, &weight, &long_w), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(context, long_rows, &layout, &long_y), STARLIN_SUCCESS);
    if (caller_begin(&caller, context, stream, rows, LIBRARY) && long_y != NULL) {
        float *x = starlin_matrix_data(caller.x.matrix);
        for (int i = 0; i < 10; i++) {
            CHECK_CUDA(cudaMemcpyAsync(x, caller.inputs + (size_t)i * M * K, sizeof(float) * M * K,
                                       cudaMemcpyHostToDevice, stream));
            CHECK_STATUS(starlin_cuda_operators_wait_stream(context, stream), STARLIN_SUCCESS);
            CHECK_STATUS(starlin_row_linear(context, long_x, long_w, long_y, NULL), STARLIN_SUCCESS);
            CHECK_STATUS(starlin_row_linear(context, caller.x.matrix, caller.w.matrix, caller.y.matrix, NULL),
                         STARLIN_SUCCESS);
            CHECK_STATUS(starlin_cuda_stream_wait_matrix(stream, caller.x.matrix), STARLIN_SUCCESS);
            CHECK_CUDA(cudaMemsetAsync(x, 0xff, sizeof(float) * M * K, stream));
            CHECK_STATUS(starlin_matrix_wait(caller.y.matrix), STARLIN_SUCCESS);
            CHECK_STATUS(starlin_matrix_read(caller.y.matrix, caller.results, 0), STARLIN_SUCCESS);
            for (int j = 0; j < M * N; j++)
                wrong += caller.results[j] != K * value(i, j / N);
        }
        CHECK_EQ_INT(wrong, 0);
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    caller_end(&caller);
    starlin_matrix_destroy(long_x);
    starlin_matrix_destroy(long_w);
    starlin_matrix_destroy(long_y);
    starlin_chunking_destroy(long_rows);
    starlin_chunking_destroy(rows);
}

static void run_comm(const char *comm)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;
    cudaStream_t stream = NULL;
    int device = -1;

    options.comm = comm;
    options.timeout_ms = 60000;
    CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    if (context == NULL)
        return;
    CHECK_CUDA(cudaGetDevice(&device));
    CHECK_EQ_INT(device, 0);
    CHECK_CUDA(cudaSetDevice((int)context->device->index));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    test_steps(context, stream, LIBRARY, comm);
    test_steps(context, stream, DEVICE, comm);
    test_steps(context, NULL, LIBRARY, "default");
    test_input_reused(context, stream);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    fflush(stdout);
}

int main(void)
{
    setenv("STARPU_SILENT", "1", 0);
    if (!gpu_is_here())
        return 77;
    run_comm("self");
    run_comm("model:gbps=200");
    run_comm("nccl");
    return CHECK_RESULT();
}
