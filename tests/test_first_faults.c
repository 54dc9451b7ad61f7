/* SPDX-License-Identifier: BSD-3-Clause */
/* What can go wrong in the first steps, on one rank (STARLIN_COMM=model:...) and several: no common steps,
 * matrices that stay in pieces, wrong arguments and failures at the worst operators. Nobody hangs, and all
 * ranks agree. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "starlin/starlin_starpu.h"
#include "tried.h"

enum { M = 30, N = 7, K = 9, TIMEOUT_MS = 60000, TRIED = 22 /* operators, one per step */ };

/* Two plans in turn in a step, and ranks that wait in different places: nothing to be compared. */
static void test_no_steps(starlin_context_t *context)
{
    linear_t linears[2];

    for (int i = 0; i < 2; i++) {
        linears[i] = (linear_t){.context = context, .m = M, .n = N, .k = K, .count = 2 + (size_t)i};
        open_tried(&linears[i], 1.0);
    }
    for (int step = 0; step < 40; step++) {
        CHECK(!submit(&linears[0]) && !submit(&linears[1]));
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    }
    for (int i = 0; world_nranks > 1 && i < 2100; i++) {
        CHECK(!submit(&linears[0]));
        if (i % (world_rank + 1) == 0)
            CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK(world_nranks == 1 || starlin__trial_is_over(linears[0].rows->trial));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(linear_wrong(&linears[i]), 0);
        linear_close(&linears[i]);
    }
}

/* One rank's output lies in pieces of the application: all stay with the list. */
static void test_pieces(starlin_context_t *context)
{
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = 2};
    starlin_matrix_layout_t layout = {.cols = N};
    starpu_data_handle_t handles[2];
    static float data[2][M / 2 * N];
    starlin_matrix_t *y, *own = NULL;

    open_tried(&linear, 1.0);
    y = linear.y;
    for (int i = 0; i < 2; i++)
        starpu_matrix_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)data[i], N, N, M / 2,
                                    sizeof(float));
    CHECK_STATUS(starlin_matrix_from_handles(context, linear.rows, handles, &layout, &own), STARLIN_SUCCESS);
    if (world_rank == world_nranks - 1)
        linear.y = own;
    for (int i = 0; i < 10; i++) {
        CHECK(!submit(&linear));
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    }
    CHECK_CONTAINS(starlin__trial_text(linear.rows->trial), "do not lie in one piece");
    if (linear.y == own)
        CHECK_STATUS(starlin_matrix_read(own, linear.y_data, 0), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&linear), 0);
    linear.y = y;
    starlin_matrix_destroy(own);
    for (int i = 0; i < 2; i++)
        starpu_data_unregister(handles[i]);
    linear_close(&linear);
}

/* A list that was replaced by one chunk, and then matrices on all ranks that do not lie in one piece: these
 * are computed chunk by chunk again. */
static void test_apart(starlin_context_t *context)
{
    enum { COUNT = 5 }; /* more than workers, so that many chunks are slower */
    static const slowness_t slowness = {.call_us = 4000};
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = COUNT};
    starlin_matrix_layout_t layout = {.cols = N};
    starpu_data_handle_t handles[COUNT];
    static float data[COUNT][M / COUNT * N];
    starlin_matrix_t *y, *own = NULL;

    set_slow(&slowness);
    open_tried(&linear, 1.0);
    run_steps(&linear, 8, 1);
    run_steps(&linear, 14, 1);
    run_steps(&linear, 3, 1);
    CHECK(is_replaced(&linear));
    set_slow(NULL);
    for (int i = 0; i < COUNT; i++)
        starpu_matrix_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)data[i], N, N, M / COUNT,
                                    sizeof(float));
    CHECK_STATUS(starlin_matrix_from_handles(context, linear.rows, handles, &layout, &own), STARLIN_SUCCESS);
    y = linear.y;
    for (int i = 0; i < 4; i++) {
        linear.y = i % 2 ? y : own;
        CHECK(submit(&linear) == (i % 2 == 1));
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
        if (i % 2 == 0)
            CHECK_STATUS(starlin_matrix_read(own, linear.y_data, 0), STARLIN_SUCCESS);
        CHECK_EQ_INT(linear_wrong(&linear), 0);
        memset(linear.y_data, 0xff, (size_t)(M * N) * sizeof(float));
    }
    starlin_matrix_destroy(own);
    for (int i = 0; i < COUNT; i++)
        starpu_data_unregister(handles[i]);
    linear_close(&linear);
}

/* A rank that refuses the operator at which figures are exchanged: every rank hears why, and may try again.
 */
static void test_refused(starlin_context_t *context)
{
    static const slowness_t slowness = {.call_us = 4000};
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = 5};
    starlin_matrix_t *w;

    set_slow(&slowness);
    open_tried(&linear, 1.0);
    w = linear.w;
    for (int turn = 0; turn < 2; turn++) {
        run_steps(&linear, turn == 0 ? 8 : 14, 1);
        linear.w = world_rank == 0 ? NULL : w;
        CHECK_STATUS(linear_submit(&linear), STARLIN_ERR_INVALID);
        CHECK_CONTAINS(starlin_last_error(), "w is NULL");
        linear.w = w;
    }
    run_steps(&linear, 3, 1);
    CHECK(is_replaced(&linear));
    set_slow(NULL);
    linear_close(&linear);
}

static bool fail_seventh(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    (void)arg;
    (void)chunk;
    return rank != 0 || sequence != 7;
}

/* Rank 0 fails, hears of it in its wait, and stops. The others go on without a wait to the operator at which
 * figures are exchanged: they get the error there, long before the time limit. */
static void test_failure(void)
{
    starlin_context_t *context = world_context(TIMEOUT_MS);
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = 4};
    double start_us;

    if (context == NULL)
        return;
    open_tried(&linear, 1.0);
    starlin__gemm_hook = fail_seventh;
    start_us = starlin__now_us();
    for (int i = 0; i < 8; i++)
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    if (world_rank == 0)
        CHECK_STATUS(starlin_context_wait(context), STARLIN_ERR_COMPUTE);
    CHECK_STATUS(linear_submit(&linear), STARLIN_ERR_COMPUTE);
    CHECK_CONTAINS(starlin_last_error(), "rank 0, operator 7: gemm of chunk");
    CHECK(starlin__now_us() - start_us < 1e3 * TIMEOUT_MS / 2);
    starlin__gemm_hook = NULL;
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_ERR_COMPUTE);
}

/* A gemm in one piece that fails while both are compared. */
static bool fail_twelfth(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    (void)arg;
    (void)chunk;
    return rank != world_nranks - 1 || sequence != 12;
}

static void test_failure_while_compared(void)
{
    starlin_context_t *context = world_context(TIMEOUT_MS);
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = 4};
    starlin_status_t status = STARLIN_SUCCESS;
    bool whole = false;
    int nsteps = 0;

    if (context == NULL)
        return;
    open_tried(&linear, 1.0);
    starlin__gemm_hook = fail_twelfth;
    while (status == STARLIN_SUCCESS && nsteps < TRIED) {
        whole = submit(&linear);
        status = starlin_context_wait(context);
        nsteps++;
    }
    CHECK(whole);
    CHECK_EQ_INT(nsteps, 12);
    CHECK_EQ_INT(status, STARLIN_ERR_COMPUTE);
    CHECK_STATUS(linear_submit(&linear), STARLIN_ERR_COMPUTE);
    starlin__gemm_hook = NULL;
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_ERR_COMPUTE);
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(TIMEOUT_MS);
    if (context != NULL) {
        test_no_steps(context);
        test_pieces(context);
        test_apart(context);
        test_refused(context);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    test_failure_while_compared();
    if (world_nranks > 1)
        test_failure();
    return world_end();
}
