/* SPDX-License-Identifier: BSD-3-Clause */
/* Small inputs on which comparable programs have gone wrong. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "check.h"
#include "graph/context.h"
#include "linear.h"
#include "world.h"

/* Partials rounded before the sum lose what one rounding keeps: 1 + 2^-8 + 2^-8 in bf16. */
static void test_rounding(starlin_context_t *context)
{
    const float value = world_rank == 0 ? 1.0f : 0x1p-8f;
    uint16_t x[2] = {starlin__f32_to_bf16(value), starlin__f32_to_bf16(world_rank == 0 ? 0x1p-8f : 0.0f)};
    uint16_t w[2] = {starlin__f32_to_bf16(1.0f), starlin__f32_to_bf16(1.0f)}, y[1];
    starlin_matrix_layout_t layout = {.cols = 2, .dtype = STARLIN_BF16, .placement = STARLIN_SHARD_COLS};
    starlin_chunking_options_t chunks = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    starlin_chunking_t *rows = NULL;
    starlin_matrix_t *matrix_x = NULL, *matrix_w = NULL, *matrix_y = NULL;

    chunks.count = 1;
    CHECK_STATUS(starlin_chunking_plan(context, 1, NULL, 0, &chunks, &rows), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wrap(context, rows, x, &layout, &matrix_x), STARLIN_SUCCESS);
    layout.rows = 1;
    layout.placement = STARLIN_REPLICATE;
    CHECK_STATUS(starlin_matrix_wrap(context, NULL, w, &layout, &matrix_w), STARLIN_SUCCESS);
    layout.cols = 1;
    CHECK_STATUS(starlin_matrix_wrap(context, rows, y, &layout, &matrix_y), STARLIN_SUCCESS);
    for (int reduction = 0; reduction < 2; reduction++) {
        double expected = reduction == STARLIN_REDUCTION_F32 ? 1.0078125 : 1.0, actual;
        options.reduction = (starlin_reduction_t)reduction;
        CHECK_STATUS(starlin_row_linear(context, matrix_x, matrix_w, matrix_y, &options), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_matrix_wait(matrix_y), STARLIN_SUCCESS);
        actual = (double)starlin__bf16_to_f32(y[0]);
        if (world_nranks == 2 && actual != expected)
            CHECK_FAIL("reduction %d gives %.7f, expected %.7f", reduction, actual, expected);
    }
    starlin_matrix_destroy(matrix_x);
    starlin_matrix_destroy(matrix_w);
    starlin_matrix_destroy(matrix_y);
    starlin_chunking_destroy(rows);
}

/* Uneven slices of K, planned automatically: what is measured must not take its sizes from them. */
static void test_uneven(starlin_context_t *context)
{
    for (int64_t k = 1; k <= 7; k += 3) {
        linear_t linear = {.context = context, .m = 33, .n = 9, .k = k};
        linear_check(&linear);
    }
}

/* More chunks than rows: fewer chunks, and the reason. */
static void test_one_row(starlin_context_t *context)
{
    linear_t linear = {.context = context, .m = 1, .n = 3, .k = 5, .count = 4};

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin_chunking_count(linear.rows), 1);
    CHECK_CONTAINS(starlin_chunking_fallback(linear.rows), "1 chunk instead of 4");
    CHECK_CONTAINS(starlin_chunking_fallback(linear.rows), "1 row");
    CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(linear.y), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&linear), 0);
    linear_close(&linear);
}

/* Rank 0 has started all its collectives before the others have started two. */
static bool slow(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    (void)arg;
    (void)sequence;
    (void)chunk;
    if (rank != 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return true;
}

/* Planning measures collectives: those of operators in flight must be over, or ranks mix them up. */
static void test_plan_in_flight(starlin_context_t *context)
{
    for (int64_t i = 0; i < 10; i++) {
        linear_t linear = {.context = context, .m = 64, .n = 8, .k = 6, .count = 8};
        linear_t other = {.context = context, .m = 96, .n = 5 + i, .k = 6};
        CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
        starlin__gemm_hook = slow;
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        CHECK_STATUS(linear_open(&other), STARLIN_SUCCESS);
        if (other.y == NULL)
            return;
        CHECK_STATUS(linear_submit(&other), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
        starlin__gemm_hook = NULL;
        CHECK_EQ_INT(linear_wrong(&linear), 0);
        CHECK_EQ_INT(linear_wrong(&other), 0);
        linear_close(&linear);
        linear_close(&other);
    }
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(20000);
    if (context != NULL) {
        test_rounding(context);
        test_uneven(context);
        test_one_row(context);
        test_plan_in_flight(context);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return world_end();
}
