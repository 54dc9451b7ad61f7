/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside a StarPU program with CPU and CUDA workers: its own CPU tasks write the chunks of x before an
 * operator and read those of y after it, without a wait. No task sees data that the device has not finished.
 */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "check.h"
#include "gpu.h"
#include "operand.h"
#include "starlin/starlin_starpu.h"

enum { NSTEPS = 50, M = 64, N = 24, K = 16, NCHUNKS = 8, ROWS = M / NCHUNKS };

static float collected[NSTEPS][M * N];

typedef struct place {
    int step, chunk;
} place_t;

static place_t places[NSTEPS][NCHUNKS];

/* Row i of x in step s: (s + i) % 5 + 1 everywhere; y is K times that, and twice as much after `twice`. */
static float value(int step, int row)
{
    return (float)((step + row) % 5 + 1);
}

static void write_x(void *buffers[], void *arg)
{
    const place_t *place = arg;
    float *x = (float *)STARPU_MATRIX_GET_PTR(buffers[0]);
    for (int i = 0; i < ROWS * K; i++)
        x[i] = value(place->step, place->chunk * ROWS + i / K);
}

static void read_y(void *buffers[], void *arg)
{
    const place_t *place = arg;
    memcpy(&collected[place->step][place->chunk * ROWS * N], (void *)STARPU_MATRIX_GET_PTR(buffers[0]),
           sizeof(float) * ROWS * N);
}

static struct starpu_codelet write_codelet = {
    .cpu_funcs = {write_x}, .nbuffers = 1, .modes = {STARPU_W}, .name = "write_x"};
static struct starpu_codelet read_codelet = {
    .cpu_funcs = {read_y}, .nbuffers = 1, .modes = {STARPU_R}, .name = "read_y"};

static void insert(struct starpu_codelet *codelet, starpu_data_handle_t handle, place_t *place)
{
    struct starpu_task *task = starpu_task_create();

    task->cl = codelet;
    task->handles[0] = handle;
    task->cl_arg = place;
    CHECK_EQ_INT(starpu_task_submit(task), 0);
}

static void run_steps(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *w,
                      starlin_matrix_t *y)
{
    starpu_data_handle_t x_handles[NCHUNKS], y_handles[NCHUNKS];
    size_t wrong = 0;

    for (size_t i = 0; i < NCHUNKS; i++) {
        x_handles[i] = starlin_matrix_chunk_handle(x, i);
        y_handles[i] = starlin_matrix_chunk_handle(y, i);
    }
    memset(collected, 0, sizeof collected);
    for (int step = 0; step < NSTEPS; step++) {
        for (int i = 0; i < NCHUNKS; i++) {
            places[step][i] = (place_t){step, i};
            insert(&write_codelet, x_handles[i], &places[step][i]);
        }
        CHECK_STATUS(starlin_row_linear(context, x, w, y, NULL), STARLIN_SUCCESS);
        for (int i = 0; i < NCHUNKS; i++)
            insert(&read_codelet, y_handles[i], &places[step][i]);
    }
    CHECK_EQ_INT(starpu_task_wait_for_all(), 0);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    for (int step = 0; step < NSTEPS; step++) {
        for (int i = 0; i < M * N; i++)
            wrong += collected[step][i] != K * value(step, i / N);
    }
    CHECK_EQ_INT(wrong, 0);
}

static void run_memory(starlin_context_t *context, memory_t memory)
{
    static int8_t ones[N * K];
    starlin_chunking_t *rows = plan_rows(context, M, NCHUNKS);
    operand_t x, w, y;

    memset(ones, 1, sizeof ones);
    bool is_open = operand_open(&x, context, rows, STARLIN_SHARD_COLS, M, K, 0, STARLIN_F32, memory, NULL);
    is_open &= operand_open(&w, context, NULL, STARLIN_REPLICATE, N, K, 0, STARLIN_F32, memory, ones);
    is_open &= operand_open(&y, context, rows, STARLIN_REPLICATE, M, N, 0, STARLIN_F32, memory, NULL);
    if (is_open)
        run_steps(context, x.matrix, w.matrix, y.matrix);
    printf("%s memory: %d steps, %d failures\n", memory_names[memory], NSTEPS, check_failures);
    fflush(stdout);
    operand_close(&x);
    operand_close(&w);
    operand_close(&y);
    starlin_chunking_destroy(rows);
}

/* The application's own handles, with host memory behind them. */
static void run_handles(starlin_context_t *context)
{
    static float x_data[M * K], w_data[N * K], y_data[M * N];
    starlin_matrix_layout_t input = {.cols = K, .placement = STARLIN_SHARD_COLS},
                            weight = {.rows = N, .cols = K}, output = {.cols = N};
    starlin_chunking_t *rows = plan_rows(context, M, NCHUNKS);
    starpu_data_handle_t x_handles[NCHUNKS], y_handles[NCHUNKS], w_handle;
    starlin_matrix_t *x = NULL, *w = NULL, *y = NULL;

    for (int i = 0; i < N * K; i++)
        w_data[i] = 1;
    for (int i = 0; i < NCHUNKS; i++) {
        starpu_matrix_data_register(&x_handles[i], STARPU_MAIN_RAM, (uintptr_t)(x_data + i * ROWS * K), K, K,
                                    ROWS, sizeof(float));
        starpu_matrix_data_register(&y_handles[i], STARPU_MAIN_RAM, (uintptr_t)(y_data + i * ROWS * N), N, N,
                                    ROWS, sizeof(float));
    }
    starpu_matrix_data_register(&w_handle, STARPU_MAIN_RAM, (uintptr_t)w_data, K, K, N, sizeof(float));
    CHECK_STATUS(starlin_matrix_from_handles(context, rows, x_handles, &input, &x), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_from_handles(context, NULL, &w_handle, &weight, &w), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_from_handles(context, rows, y_handles, &output, &y), STARLIN_SUCCESS);
    if (x != NULL && w != NULL && y != NULL)
        run_steps(context, x, w, y);
    printf("the application's handles: %d steps, %d failures\n", NSTEPS, check_failures);
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    for (int i = 0; i < NCHUNKS; i++) {
        starpu_data_unregister(x_handles[i]);
        starpu_data_unregister(y_handles[i]);
    }
    starpu_data_unregister(w_handle);
    starlin_chunking_destroy(rows);
}

static void run_comm(const char *comm)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;

    options.comm = comm;
    options.timeout_ms = 60000;
    CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    if (context == NULL)
        return;
    CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
    CHECK(info.adopted);
    CHECK_EQ_STR(info.compute, "cublas");
    printf("%s\n", comm);
    for (int memory = 0; memory < NMEMORIES; memory++)
        run_memory(context, (memory_t)memory);
    run_handles(context);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

int main(void)
{
    struct starpu_conf conf;

    setenv("STARPU_SILENT", "1", 0);
    if (!gpu_is_here())
        return 77;
    unsetenv("STARPU_SCHED"); /* it would beat what the application asks for */
    starpu_conf_init(&conf);
    conf.sched_policy_name = "prio";
    conf.ncpus = 2;
    conf.ncuda = 1;
    CHECK_EQ_INT(starpu_init(&conf), 0);
    CHECK_EQ_INT(starpu_cuda_worker_get_count(), 1);
    run_comm("self");
    run_comm("model:gbps=200,latency_us=100");
    run_comm("nccl");
    starpu_shutdown();
    return CHECK_RESULT();
}
