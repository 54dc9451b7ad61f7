/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator from every placement to every other that it has: exact for all dtypes, reductions, cuts of
 * rows and columns, in the library's memory and the caller's. Run alone and under mpirun. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "world.h"

#include "operators.h"
#include "watchdog.h"

/* Chunks tile the rows: within each block one run follows the other. */
static void check_chunking(const scene_t *scene)
{
    const starlin_chunking_t *rows = scene->rows;
    size_t nblocks = starlin_chunking_blocks(rows), count = starlin_chunking_count(rows);
    int64_t total = 0, first, nrows;

    CHECK_EQ_INT(nblocks, scene->blocks ? world_nranks : 1);
    CHECK_EQ_INT(starlin_chunking_total_rows(rows), scene->m);
    CHECK(count >= 1 && count <= (size_t)scene->m);
    if (!scene->blocks && scene->list != NULL)
        CHECK_EQ_INT(count, scene->nlist);
    else if (!scene->blocks)
        CHECK_EQ_INT(count, (int64_t)scene->count < scene->m ? (int64_t)scene->count : scene->m);
    CHECK((starlin_chunking_fallback(rows) != NULL) == (scene->list == NULL && count < scene->count));
    for (size_t block = 0; block < nblocks; block++) {
        int64_t next = scene->m * (int64_t)block / (int64_t)nblocks;
        for (size_t i = 0; i < count; i++) {
            starlin_chunking_run(rows, i, block, &first, &nrows);
            if (nrows > 0)
                CHECK_EQ_INT(first, next);
            CHECK(nrows >= 0);
            next += nrows;
        }
        CHECK_EQ_INT(next, scene->m * (int64_t)(block + 1) / (int64_t)nblocks);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (size_t block = 0; block < nblocks; block++) {
            starlin_chunking_run(rows, i, block, &first, &nrows);
            sum += nrows;
        }
        CHECK_EQ_INT(starlin_chunking_rows(rows, i), sum);
        if (!scene->blocks && scene->list != NULL)
            CHECK_EQ_INT(sum, scene->list[i]);
        total += sum;
    }
    CHECK_EQ_INT(total, scene->m);
    starlin_chunking_run(rows, count, 0, &first, &nrows);
    CHECK(first == 0 && nrows == 0);
    starlin_chunking_run(rows, 0, nblocks, &first, &nrows);
    CHECK(first == 0 && nrows == 0);
}

/* All jobs in flight at once, twice. */
static void run_scene(scene_t scene)
{
    job_t jobs[NJOBS + NCHAINED];
    uint64_t hash = STARLIN__HASH_INIT;
    size_t count;

    if (world_has_failed()) /* one report is enough */
        return;
    step_begin(starlin_dtype_name(scene.dtype), (int)scene.m);
    scene_open(&scene);
    if (scene.rows == NULL)
        return;
    check_chunking(&scene);
    count = open_every_job(&scene, jobs);
    for (size_t i = 0; i < 2 * count; i++)
        job_submit(&jobs[i % count]);
    CHECK_STATUS(starlin_context_wait(scene.context), STARLIN_SUCCESS);
    for (size_t i = 0; i < count; i++)
        job_check(&jobs[i], &hash);
    close_every_job(jobs, count);
    scene_close(&scene);
}

static const struct kind {
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
} kinds[] = {{STARLIN_F32, STARLIN_REDUCTION_NATIVE},  {STARLIN_F64, STARLIN_REDUCTION_F32},
             {STARLIN_F16, STARLIN_REDUCTION_NATIVE},  {STARLIN_F16, STARLIN_REDUCTION_F32},
             {STARLIN_BF16, STARLIN_REDUCTION_NATIVE}, {STARLIN_BF16, STARLIN_REDUCTION_F32}};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

/* 37 rows in all dtypes and cuts; other numbers of rows, fewer than ranks among them, in some. */
static void test_scenes(starlin_context_t *context)
{
    static const int64_t list[] = {5, 20, 12}, other_rows[] = {64, 3, 1};
    static const size_t counts[] = {1, 3, 5, 0, 64};
    unsigned turn = 0;

    for (size_t i = 0; i < 8 * NKINDS; i++, turn++) {
        scene_t scene = {.context = context,
                         .m = 37,
                         .dtype = kinds[i % NKINDS].dtype,
                         .reduction = kinds[i % NKINDS].reduction,
                         .cut = (cut_t)((turn + turn / NCUTS) % NCUTS),
                         .variant = turn + turn / NKINDS,
                         .count = counts[i / NKINDS % 4],
                         .blocks = i / NKINDS >= 4};
        if (scene.count == 0) {
            scene.list = list;
            scene.nlist = 3;
        }
        run_scene(scene);
    }
    for (size_t i = 0; i < 18; i++, turn++) {
        scene_t scene = {.context = context,
                         .m = other_rows[i / 6],
                         .dtype = kinds[turn % NKINDS].dtype,
                         .reduction = kinds[turn % NKINDS].reduction,
                         .cut = (cut_t)(turn / 2 % NCUTS),
                         .variant = turn,
                         .count = counts[i / 6 == 0 && i % 6 >= 4 ? 4 : i / 2 % 3],
                         .blocks = i % 2 != 0};
        run_scene(scene);
    }
}

static void check_job(job_t *job, const scene_t *scene)
{
    uint64_t hash = STARLIN__HASH_INIT;

    job_open(job, scene, 7);
    job_submit(job);
    job_check(job, &hash);
    job_close(job);
}

/* The library plans; operations with SHARD_ROWS imply blocks. */
static void test_planned(starlin_context_t *context)
{
    scene_t scene = {.context = context, .m = 37, .blocks = true};
    starlin_operation_t operations[2] = {STARLIN_OPERATION_INIT, STARLIN_OPERATION_INIT};
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    job_t row = JOB_ROW(SHARD_ROWS, JOB_FINISH), column = JOB_COLUMN(SHARD_ROWS, JOB_FINISH);
    int64_t first;

    operations[0].op = STARLIN_OP_ROW_LINEAR;
    operations[0].n = N;
    slice(EVEN, K, &first, &operations[0].k);
    operations[0].to = STARLIN_SHARD_ROWS;
    operations[0].bias = operations[0].residual = true;
    operations[0].activation = STARLIN_RELU;
    operations[1].op = STARLIN_OP_COLUMN_LINEAR;
    operations[1].k = K;
    slice(EVEN, N, &first, &operations[1].n);
    operations[1].from = STARLIN_SHARD_ROWS;
    for (size_t count = 0; count < 3; count += 2) {
        step_begin("planned", (int)count);
        options.count = count;
        CHECK_STATUS(starlin_chunking_plan(context, scene.m, operations, 2, &options, &scene.rows),
                     STARLIN_SUCCESS);
        if (scene.rows == NULL)
            return;
        scene.count = count != 0 ? count : starlin_chunking_count(scene.rows);
        check_chunking(&scene);
        check_job(&row, &scene);
        check_job(&column, &scene);
        row = (job_t)JOB_ROW(SHARD_ROWS, JOB_FINISH);
        column = (job_t)JOB_COLUMN(SHARD_ROWS, JOB_FINISH);
        scene_close(&scene);
    }
}

/* 37 rows on any number of ranks, summed to blocks, gathered again: exact, rows in order. */
static void test_there_and_back(starlin_context_t *context)
{
    for (size_t count = 1; count <= 5; count += 2) {
        scene_t scene = {.context = context, .m = 37, .count = count, .blocks = true};
        job_t there = JOB_ROW(SHARD_ROWS);
        job_t back = JOB_REDISTRIBUTE(SHARD_ROWS, REPLICATE, .input = &there);
        uint64_t hash = STARLIN__HASH_INIT;

        step_begin("there and back", (int)count);
        scene_open(&scene);
        job_open(&there, &scene, 1);
        job_open(&back, &scene, 2);
        job_submit(&there);
        job_submit(&back);
        job_check(&back, &hash);
        job_check(&there, &hash);
        job_close(&back);
        job_close(&there);
        scene_close(&scene);
    }
}

/* A bias of ones and a weight of zeros give ones, on any number of ranks. */
static void test_bias_once(starlin_context_t *context)
{
    static const starlin_placement_t placements[] = {STARLIN_REPLICATE, STARLIN_SHARD_ROWS};
    scene_t scene = {.context = context, .m = 8, .count = 2, .blocks = true};
    const double zeros[3 * 4] = {0};
    double *x_values = values(8, 4, 5), ones[8 * 3];

    for (int i = 0; i < 8 * 3; i++)
        ones[i] = 1;
    scene_open(&scene);
    for (int i = 0; i < 2; i++) {
        starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
        uint64_t hash = STARLIN__HASH_INIT;
        tensor_t x, w, bias, y;
        tensor_open(&x, &scene, STARLIN_SHARD_COLS, 4, x_values);
        tensor_open_weight(&w, &scene, COLS, 3, 4, zeros);
        tensor_open_weight(&bias, &scene, ALL, 1, 3, ones);
        tensor_open(&y, &scene, placements[i], 3, NULL);
        options.bias = bias.matrix;
        CHECK_STATUS(starlin_row_linear(context, x.matrix, w.matrix, y.matrix, &options), STARLIN_SUCCESS);
        CHECK_EQ_INT(tensor_wrong(&y, y.matrix, ones, &hash), 0);
        tensor_close(&x);
        tensor_close(&w);
        tensor_close(&bias);
        tensor_close(&y);
    }
    scene_close(&scene);
    free(x_values);
}

/* [1, 2^-8] on rank 0 and [2^-8, 0] on rank 1, summed to blocks in bf16: partials in f32 are rounded once,
 * with a bias and without. */
static void test_rounding(starlin_context_t *context)
{
    const double x_values[8] = {1, 0x1p-8, 0x1p-8, 0, 1, 0x1p-8, 0x1p-8, 0}, w_values[4] = {1, 1, 1, 1};
    const double zero[1] = {0};

    for (int i = 0; i < 4 && world_nranks == 2; i++) {
        scene_t scene = {.context = context,
                         .m = 2,
                         .dtype = STARLIN_BF16,
                         .reduction = (starlin_reduction_t)(i % 2),
                         .count = 1,
                         .blocks = true};
        const double rounded[2] = {1, 1}, exact[2] = {1.0078125, 1.0078125};
        starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
        uint64_t hash = STARLIN__HASH_INIT;
        tensor_t x, w, bias, y;

        scene_open(&scene);
        tensor_open(&x, &scene, STARLIN_SHARD_COLS, 4, x_values);
        tensor_open_weight(&w, &scene, COLS, 1, 4, w_values);
        tensor_open_weight(&bias, &scene, ALL, 1, 1, zero);
        tensor_open(&y, &scene, STARLIN_SHARD_ROWS, 1, NULL);
        options.reduction = scene.reduction;
        options.bias = i / 2 != 0 ? bias.matrix : NULL;
        CHECK_STATUS(starlin_row_linear(context, x.matrix, w.matrix, y.matrix, &options), STARLIN_SUCCESS);
        CHECK_EQ_INT(tensor_wrong(&y, y.matrix, i % 2 == STARLIN_REDUCTION_F32 ? exact : rounded, &hash), 0);
        tensor_close(&x);
        tensor_close(&w);
        tensor_close(&bias);
        tensor_close(&y);
        scene_close(&scene);
    }
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    step_limit(110);
    context = world_context(20000);
    if (context != NULL) {
        test_there_and_back(context);
        test_bias_once(context);
        test_rounding(context);
        test_scenes(context);
        test_planned(context);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return world_end();
}
