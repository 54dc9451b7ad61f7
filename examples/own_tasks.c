/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody's StarPU program with a linear in the middle. It starts StarPU, registers its own data, and has a
 * task of its own before and after the linear for every chunk; nothing waits in between. The recorded times
 * show that its last task on chunk 0 ran before the linear had finished its last chunk; the exit code says
 * so: 0 it did, 1 not.
 *
 *     own_tasks      or      mpirun -np 2 own_tasks */
#define _GNU_SOURCE /* clock_gettime */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "starlin/starlin_mpi.h"
#include "starlin/starlin_report.h"
#include "starlin/starlin_starpu.h"

enum { M = 4096, N = 512, K_LOCAL = 512, NCHUNKS = 8 };

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        if ((call) != STARLIN_SUCCESS) {                                                                     \
            fprintf(stderr, "%s\n", starlin_last_error());                                                   \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

static double relu_end_us[NCHUNKS];

/* CLOCK_MONOTONIC, as the library's reports */
static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static float x_value(int rank, int i, int k)
{
    return (float)((3 * i + k + rank) % 5 - 2);
}

static float w_value(int rank, int j, int k)
{
    return (float)((j + 2 * k + rank) % 3 - 1);
}

/* before the linear: fills a chunk of x */
static void produce(void *buffers[], void *arg)
{
    int rank, first;
    starpu_codelet_unpack_args(arg, &rank, &first);
    float *x = (float *)STARPU_VECTOR_GET_PTR(buffers[0]);
    int rows = (int)(STARPU_VECTOR_GET_NX(buffers[0]) / K_LOCAL);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < K_LOCAL; k++)
            x[i * K_LOCAL + k] = x_value(rank, first + i, k);
}

/* after the linear: rectifies a chunk of y in place, and notes when */
static void relu(void *buffers[], void *arg)
{
    int chunk;
    starpu_codelet_unpack_args(arg, &chunk);
    float *y = (float *)STARPU_MATRIX_GET_PTR(buffers[0]);
    size_t ld = STARPU_MATRIX_GET_LD(buffers[0]);
    for (size_t i = 0; i < STARPU_MATRIX_GET_NY(buffers[0]); i++)
        for (size_t j = 0; j < STARPU_MATRIX_GET_NX(buffers[0]); j++)
            if (y[i * ld + j] < 0)
                y[i * ld + j] = 0;
    relu_end_us[chunk] = now_us();
}

static struct starpu_codelet produce_codelet = {
    .cpu_funcs = {produce}, .nbuffers = 1, .modes = {STARPU_W}, .name = "produce"};
static struct starpu_codelet relu_codelet = {
    .cpu_funcs = {relu}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "relu"};

static long long count_wrong(const float *y, int nranks)
{
    long long wrong = 0;
    for (int i = 0; i < M; i += 29)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int rank = 0; rank < nranks; rank++)
                for (int k = 0; k < K_LOCAL; k++)
                    sum += x_value(rank, i, k) * w_value(rank, j, k);
            wrong += y[i * N + j] != (sum > 0 ? sum : 0);
        }
    return wrong;
}

/* The whole graph: a task, the linear, a task; then one wait. */
static void run_graph(starlin_context_t *context, starlin_chunking_t *rows, float *x, starlin_matrix_t *w,
                      starlin_matrix_t *y)
{
    starpu_data_handle_t handles[NCHUNKS];
    int rank = starlin_context_rank(context), first = 0;
    for (int i = 0; i < NCHUNKS; i++) {
        int count = (int)starlin_chunking_rows(rows, (size_t)i);
        starpu_vector_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)(x + first * K_LOCAL),
                                    (uint32_t)(count * K_LOCAL), sizeof(float));
        starpu_task_insert(&produce_codelet, STARPU_W, handles[i], STARPU_VALUE, &rank, sizeof(rank),
                           STARPU_VALUE, &first, sizeof(first), 0);
        first += count;
    }
    starlin_matrix_t *mx;
    starlin_matrix_layout_t layout = {.cols = K_LOCAL, .placement = STARLIN_SHARD_COLS};
    CHECK(starlin_matrix_from_handles(context, rows, handles, &layout, &mx));
    CHECK(starlin_row_linear(context, mx, w, y, NULL));
    for (int i = 0; i < NCHUNKS; i++)
        starpu_task_insert(&relu_codelet, STARPU_RW, starlin_matrix_chunk_handle(y, (size_t)i), STARPU_VALUE,
                           &i, sizeof(i), STARPU_PRIORITY, STARPU_MAX_PRIO, 0);
    starpu_task_wait_for_all();
    CHECK(starlin_context_wait(context));
    starlin_matrix_destroy(mx);
    for (int i = 0; i < NCHUNKS; i++)
        starpu_data_unregister(handles[i]);
}

/* When the linear's last chunk was finished, as the library recorded it. */
static double linear_end_us(starlin_context_t *context)
{
    starlin_report_t *report;
    CHECK(starlin_report_create(context, NULL, &report));
    starlin_report_step_t step = {.struct_size = sizeof step};
    CHECK(starlin_report_step(report, starlin_report_nsteps(report) - 1, &step));
    double end_us = step.start_us + step.time_us;
    starlin_report_destroy(report);
    return end_us;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.sched_policy_name = "prio"; /* honours priorities; STARPU_SCHED still beats it */
    if (starpu_init(&conf) != 0)
        MPI_Abort(MPI_COMM_WORLD, 77);

    starlin_context_options_t choice = STARLIN_CONTEXT_OPTIONS_INIT;
    choice.compute = "cblas"; /* where this program's own tasks run */
    starlin_context_t *context;
    CHECK(starlin_mpi_context_create(MPI_COMM_WORLD, &choice, &context));
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    options.count = NCHUNKS;
    starlin_chunking_t *rows;
    starlin_matrix_t *w, *y;
    CHECK(starlin_chunking_plan(context, M, NULL, 0, &options, &rows));

    int rank = starlin_context_rank(context), nranks = starlin_context_nranks(context);
    float *x = malloc(sizeof(*x) * M * K_LOCAL), *w_data = malloc(sizeof(*w_data) * N * K_LOCAL);
    float *y_data = malloc(sizeof(*y_data) * M * N);
    for (int j = 0; j < N; j++)
        for (int k = 0; k < K_LOCAL; k++)
            w_data[j * K_LOCAL + k] = w_value(rank, j, k);
    CHECK(starlin_matrix_wrap(context, NULL, w_data, &(starlin_matrix_layout_t){.rows = N, .cols = K_LOCAL},
                              &w));
    CHECK(starlin_matrix_create(context, rows, &(starlin_matrix_layout_t){.cols = N}, &y));

    CHECK(starlin_report_enable(context, true));
    bool overlapped = false;
    long long wrong = 0;
    for (int attempt = 0; attempt < 3 && !overlapped;
         attempt++) { /* cores that others use as well may spoil one */
        double start_us = now_us();
        run_graph(context, rows, x, w, y);
        double end_us = now_us(), linear_us = linear_end_us(context);
        if (linear_us < start_us || linear_us > end_us)
            fprintf(stderr, "the report's clock is not this program's\n");
        else
            overlapped = relu_end_us[0] < linear_us;
        CHECK(starlin_matrix_read(y, y_data, 0));
        wrong += count_wrong(y_data, nranks);
        printf("rank %d: the last task on chunk 0 ended %.0f us, the linear's last chunk %.0f us after the "
               "start: "
               "%s; %lld wrong\n",
               rank, relu_end_us[0] - start_us, linear_us - start_us,
               overlapped ? "overlapped" : "NOT overlapped", wrong);
        MPI_Allreduce(MPI_IN_PLACE, &overlapped, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    }

    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    starlin_chunking_destroy(rows);
    CHECK(starlin_context_destroy(context));
    starpu_shutdown();
    free(x);
    free(w_data);
    free(y_data);
    MPI_Finalize();
    return overlapped && wrong == 0 ? 0 : 1;
}
