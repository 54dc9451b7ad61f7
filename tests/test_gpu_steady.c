/* SPDX-License-Identifier: BSD-3-Clause */
/* After the first steps a step makes no memory, stream or event on the device, and allocates nothing of ours.
 * Starts itself again with counter_cuda.so, which lies beside it, preloaded.
 * usage: test_gpu_steady */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "check.h"
#include "gpu.h"
#include "operand.h"

enum { NWARMUPS = 3, NSTEPS = 100, NLAYERS = 3, M = 64, N = 24 };

typedef uint64_t (*count_fn_t)(void);
typedef void (*loud_fn_t)(int);

static count_fn_t calls;
static loud_fn_t loud;

static void step(starlin_context_t *context, operand_t *x, operand_t *w, operand_t *y, int number,
                 starlin_reduction_t reduction)
{
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    options.reduction = reduction;
    /* also as a caller with a stream (the default one) does */
    if (number % 3 == 0)
        CHECK_STATUS(starlin_cuda_operators_wait_stream(context, NULL), STARLIN_SUCCESS);
    /* row_linear and column_linear in turn */
    for (int i = 0; i < NLAYERS; i++)
        CHECK_STATUS((i % 2 == 0 ? starlin_row_linear : starlin_column_linear)(
                         context, i == 0 ? x->matrix : y[i - 1].matrix, w->matrix, y[i].matrix, &options),
                     STARLIN_SUCCESS);
    if (number % 3 == 0)
        CHECK_STATUS(starlin_cuda_stream_wait_matrix(NULL, y[NLAYERS - 1].matrix), STARLIN_SUCCESS);
    CHECK_STATUS(number % 2 ? starlin_context_wait(context) : starlin_matrix_wait(y[NLAYERS - 1].matrix),
                 STARLIN_SUCCESS);
}

/* y1 = x w^T, y2 = y1 w^T, y3 = y2 w^T for a permutation w: the permutation three times. */
static void run(starlin_context_t *context, starlin_dtype_t dtype, starlin_reduction_t reduction,
                memory_t memory)
{
    static int8_t x_values[M * N], w_values[N * N];
    static int32_t expected[M * N];
    starlin_chunking_t *rows = plan_rows(context, M, 8);
    uint64_t allocations = 0, device_calls = 0;
    operand_t x, w, y[NLAYERS];

    memset(w_values, 0, sizeof w_values);
    for (int i = 0; i < M * N; i++)
        x_values[i] = (int8_t)(i % 100);
    for (int i = 0; i < N; i++)
        w_values[i * N + (i + 5) % N] = 1;
    for (int i = 0; i < M * N; i++)
        expected[i] = x_values[i / N * N + (i % N + 3 * 5) % N];
    bool is_open = operand_open(&x, context, rows, STARLIN_SHARD_COLS, M, N, 0, dtype, memory, x_values);
    is_open &= operand_open(&w, context, NULL, STARLIN_REPLICATE, N, N, 0, dtype, memory, w_values);
    for (int i = 0; i < NLAYERS; i++)
        is_open &= operand_open(&y[i], context, rows, i % 2 == 0 ? STARLIN_REPLICATE : STARLIN_SHARD_COLS, M,
                                N, 0, dtype, memory, NULL);
    for (int number = 0; is_open && number < NWARMUPS + NSTEPS; number++) {
        if (number == NWARMUPS) {
            allocations = starlin__alloc_count;
            device_calls = calls();
            loud(1);
        }
        step(context, &x, &w, y, number, reduction);
    }
    loud(0);
    CHECK(device_calls > 0);
    CHECK_EQ_INT(calls() - device_calls, 0);
    CHECK_EQ_INT(starlin__alloc_count - allocations, 0);
    if (is_open)
        CHECK_EQ_INT(operand_wrong(&y[NLAYERS - 1], expected, NULL, NULL), 0);
    for (int i = 0; i < NLAYERS; i++)
        operand_close(&y[i]);
    operand_close(&x);
    operand_close(&w);
    starlin_chunking_destroy(rows);
}

static void run_comm(const char *comm)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;

    options.comm = comm;
    options.timeout_ms = 60000;
    CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    if (context == NULL)
        return;
    for (int memory = 0; memory < NMEMORIES; memory++) {
        if (memory == HOST) /* moved by StarPU, which makes what it needs */
            continue;
        run(context, STARLIN_F32, STARLIN_REDUCTION_NATIVE, (memory_t)memory);
        run(context, STARLIN_BF16, STARLIN_REDUCTION_F32, (memory_t)memory);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    printf("%s: %d steps after %d, %d failures\n", comm, NSTEPS, NWARMUPS, check_failures);
    fflush(stdout);
}

/* Does not return unless that fails. */
static int start_with_counter(char **argv)
{
    char path[4096], library[4200];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    if (length <= 0 || getenv("LD_PRELOAD") != NULL) {
        fprintf(stderr, "counter_cuda.so was not preloaded\n");
        return 1;
    }
    path[length] = '\0';
    slash = strrchr(path, '/');
    snprintf(library, sizeof library, "%.*s/counter_cuda.so", (int)(slash - path), path);
    if (access(library, R_OK) != 0) {
        fprintf(stderr, "%s is missing\n", library);
        return 1;
    }
    setenv("LD_PRELOAD", library, 1);
    execv("/proc/self/exe", argv);
    return 1;
}

int main(int argc, char **argv)
{
    (void)argc;
    setenv("STARPU_SILENT", "1", 0);
    if (!gpu_is_here())
        return 77;
    calls = (count_fn_t)(uintptr_t)dlsym(RTLD_DEFAULT, "counter_cuda_count");
    loud = (loud_fn_t)(uintptr_t)dlsym(RTLD_DEFAULT, "counter_cuda_loud");
    if (calls == NULL || loud == NULL)
        return start_with_counter(argv);
    run_comm("self");
    run_comm("model:gbps=200");
    run_comm("nccl");
    return CHECK_RESULT();
}
