/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library's graph costs beyond StarPU's own tasks, in microseconds per task.
 *
 *     bench_graph_cost [CHUNKS [STEPS]]
 *
 * starlin: STEPS row-parallel linears of one row and one element per chunk, summed over one rank. StarPU: as
 * many empty tasks with the same data dependencies, a CPU task and a NOWHERE task for each
 * chunk. Both run in the same StarPU, interleaved; the best of several repetitions counts. Needs a quiet
 * machine; STARPU_NCPU sets the number of workers. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include <starpu.h>

#include "check.h"
#include "base/base.h"

#define REPETITIONS 9

typedef struct layer {
    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *x, *w, *y;
} layer_t;

static starlin_status_t layer_create(size_t nchunks, layer_t *layer)
{
    const starlin_context_options_t options = {.struct_size = sizeof(options), .comm = "self"};
    const starlin_chunking_options_t chunks = {.struct_size = sizeof(chunks), .count = nchunks};
    const starlin_matrix_layout_t input = {.cols = 1, .placement = STARLIN_SHARD_COLS}, output = {.cols = 1},
                                  weight = {.rows = 1, .cols = 1};
    STARLIN__FORWARD(starlin_context_create(&options, &layer->context));
    STARLIN__FORWARD(starlin_chunking_plan(layer->context, (int64_t)nchunks, NULL, 0, &chunks, &layer->rows));
    STARLIN__FORWARD(starlin_matrix_create(layer->context, layer->rows, &input, &layer->x));
    STARLIN__FORWARD(starlin_matrix_create(layer->context, NULL, &weight, &layer->w));
    return starlin_matrix_create(layer->context, layer->rows, &output, &layer->y);
}

static starlin_status_t layer_destroy(layer_t *layer)
{
    starlin_matrix_destroy(layer->x);
    starlin_matrix_destroy(layer->w);
    starlin_matrix_destroy(layer->y);
    starlin_chunking_destroy(layer->rows);
    return starlin_context_destroy(layer->context);
}

static double time_starlin_us(layer_t *layer, int nsteps)
{
    double start_us = starlin__now_us();
    for (int step = 0; step < nsteps; step++)
        CHECK_STATUS(starlin_row_linear(layer->context, layer->x, layer->w, layer->y, NULL), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(layer->context), STARLIN_SUCCESS);
    return starlin__now_us() - start_us;
}

static void nothing(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
}

static struct starpu_codelet compute = {
    .cpu_funcs = {nothing}, .nbuffers = 3, .modes = {STARPU_R, STARPU_R, STARPU_W}, .name = "compute"};
static struct starpu_codelet collective = {
    .where = STARPU_NOWHERE, .nbuffers = 1, .modes = {STARPU_RW}, .name = "collective"};

/* handles: x and y of each chunk in turn, then the weight */
static double time_starpu_us(starpu_data_handle_t *handles, size_t nchunks, int nsteps)
{
    double start_us = starlin__now_us();
    for (int step = 0; step < nsteps; step++)
        for (size_t i = 0; i < nchunks; i++) {
            struct starpu_task *task = starpu_task_create();
            task->cl = &compute;
            task->handles[0] = handles[2 * i];
            task->handles[1] = handles[2 * nchunks];
            task->handles[2] = handles[2 * i + 1];
            CHECK_EQ_INT(starpu_task_submit(task), 0);
            task = starpu_task_create();
            task->cl = &collective;
            task->handles[0] = handles[2 * i + 1];
            CHECK_EQ_INT(starpu_task_submit(task), 0);
        }
    starpu_task_wait_for_all();
    return starlin__now_us() - start_us;
}

static void compare(layer_t *layer, size_t nchunks, int nsteps)
{
    size_t nhandles = 2 * nchunks + 1;
    float *values = calloc(nhandles, sizeof(*values));
    starpu_data_handle_t *handles = calloc(nhandles, sizeof(*handles));
    double ntasks = 2.0 * (double)nchunks * nsteps, starlin_us = 0, starpu_us = 0;
    for (size_t i = 0; i < nhandles; i++)
        starpu_matrix_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&values[i], 1, 1, 1,
                                    sizeof(*values));
    for (int i = 0; i < REPETITIONS; i++) {
        double a_us = time_starpu_us(handles, nchunks, nsteps);
        double b_us = time_starlin_us(layer, nsteps);
        starpu_us = i == 0 || a_us < starpu_us ? a_us : starpu_us;
        starlin_us = i == 0 || b_us < starlin_us ? b_us : starlin_us;
    }
    printf("%10s%10s%10s%12s%12s%12s\n", "workers", "chunks", "steps", "starpu", "starlin", "difference");
    printf("%10s%10s%10s%12s%12s%12s\n", "", "", "", "us/task", "us/task", "us/task");
    printf("%10u%10zu%10d%12.2f%12.2f%12.2f\n", starpu_worker_get_count(), nchunks, nsteps,
           starpu_us / ntasks, starlin_us / ntasks, (starlin_us - starpu_us) / ntasks);
    for (size_t i = 0; i < nhandles; i++)
        starpu_data_unregister(handles[i]);
    free(handles);
    free(values);
}

int main(int argc, char **argv)
{
    long nchunks = argc > 1 ? strtol(argv[1], NULL, 10) : 64,
         nsteps = argc > 2 ? strtol(argv[2], NULL, 10) : 50;
    layer_t layer = {0};
    if (argc > 3 || nchunks < 1 || nchunks > STARLIN__MAX_CHUNKS || nsteps < 1 || nsteps > 100000) {
        fprintf(stderr, "usage: %s [CHUNKS (1-%d) [STEPS (1-100000)]]\n", argv[0], STARLIN__MAX_CHUNKS);
        return 2;
    }
    CHECK_STATUS(layer_create((size_t)nchunks, &layer), STARLIN_SUCCESS);
    if (check_failures == 0) {
        time_starlin_us(&layer, 2); /* records and workspaces are made once */
        compare(&layer, (size_t)nchunks, (int)nsteps);
    }
    CHECK_STATUS(layer_destroy(&layer), STARLIN_SUCCESS);
    return CHECK_RESULT();
}
