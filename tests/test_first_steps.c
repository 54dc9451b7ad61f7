/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans on trial in the first real steps, on one rank (STARLIN_COMM=model:...) and several: a plan from a
 * wrong picture is replaced on all ranks at the same operator, a good one stays and changes no bit; results
 * are exact before, meanwhile and afterwards; nobody hangs, whatever fails and wherever ranks wait. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <unistd.h>

#include "plan/planning.h"
#include "tried.h"
#include "tune_dir.h"
#include "plan/tuned.h"

enum { M = 30, N = 7, K = 9, TIMEOUT_MS = 60000, TRIED = 22 /* operators, one per step */ };

/* Known curves: an hour-long layer, of which half can be hidden, too long to be rehearsed. */
static void store_curves(starlin_context_t *context, const starlin_linear_shape_t *shape, double time_us)
{
    starlin__gemm_t gemm = {.m = shape->m, .n = shape->n, .k = shape->k_local};
    double nbytes = (double)(shape->m * shape->n) * 4.0;
    starlin__tune_entry_t entry = {.task_us = 1.0, .ncomms = 1};

    entry.comms[0] = (starlin__tune_comm_t){.gemm_slowdown = 1.0, .comm_slowdown = 1.0};
    starlin__curve_add(&entry.gemm, 0.0, 0.0);
    starlin__curve_add(&entry.gemm, (double)shape->m, time_us);
    starlin__curve_add(&entry.comms[0].curve, 0.0, 0.0);
    starlin__curve_add(&entry.comms[0].curve, nbytes, time_us);
    CHECK_STATUS(starlin__tuned_store(context, &gemm, &entry), STARLIN_SUCCESS);
}

/* From the planner to the replacement. It believes in curves by which the gemms' time is proportional to
 * their rows; really each call takes the same time, however few the rows are. The chunking is gone by then.
 */
static void test_planned(void)
{
    starlin_context_t *context = world_context(TIMEOUT_MS);
    linear_t linear = {.context = context, .m = 64, .n = N, .k = 12};
    starlin_linear_shape_t shape = {.m = 64, .n = N};
    const starlin__planning_t *planning;
    slowness_t slowness = {0};
    int64_t first;

    if (context == NULL)
        return;
    context->share.comm_has_core = true;
    problem_slice(linear.k, world_rank, world_nranks, &first, &shape.k_local);
    store_curves(context, &shape, 40e3);
    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    planning = starlin__chunking_planning(linear.rows);
    CHECK(planning->nlists == 0);
    CHECK(starlin_chunking_count(linear.rows) > 2);
    CHECK(starlin_chunking_fallback(linear.rows) == NULL);
    slowness.call_us = (long)(3.0 * planning->plan.serial_us) / (long)starlin_chunking_count(linear.rows);
    set_slow(&slowness);
    check_same(run_steps(&linear, TRIED, 1));
    CHECK(starlin_chunking_fallback(linear.rows) == NULL);
    check_same(run_steps(&linear, 6, 1));
    CHECK(is_replaced(&linear));
    CHECK_CONTAINS(starlin_chunking_fallback(linear.rows), "replaced from operator 23 on");
    starlin_chunking_destroy(linear.rows);
    linear.rows = NULL;
    for (int i = 0; i < 3; i++) /* matrices keep what they need */
        CHECK(submit(&linear));
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&linear), 0);
    set_slow(NULL);
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Every dtype and reduction, lists of few and of many chunks, one layer or more in a step: replaced, exact.
 * In steady state nothing is allocated any more. */
static void test_replaced(starlin_context_t *context)
{
    for (int i = 0; i < 8; i++) {
        linear_t linear = {.context = context,
                           .m = M,
                           .n = N,
                           .k = i % 3 == 2 ? 1 : K,
                           .dtype = (starlin_dtype_t)(i % 4),
                           .reduction = (starlin_reduction_t)(i / 4),
                           .count = i % 2 ? 5 : 9};
        slowness_t slowness = {.call_us = 20000 / (long)linear.count};
        int nlayers = i % 3 / 2 + 1;
        uint64_t before;
        set_slow(&slowness);
        open_tried(&linear, 1.0);
        check_same(run_steps(&linear, 33, nlayers));
        CHECK(is_replaced(&linear));
        before = starlin__alloc_count;
        set_slow(NULL);
        run_steps(&linear, 20, nlayers);
        CHECK_EQ_INT(starlin__alloc_count - before, 0);
        for (int j = 0; j < 3; j++)
            CHECK(submit(&linear));
        linear_close(&linear);
    }
}

/* Faster than expected: nothing changes, not for one operator. */
static void test_kept(starlin_context_t *context)
{
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = 4};

    open_tried(&linear, 1e9);
    for (int i = 0; i < 40; i++) {
        CHECK(!submit(&linear));
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    }
    CHECK_EQ_INT(linear_wrong(&linear), 0);
    CHECK(!is_replaced(&linear));
    CHECK(starlin__trial_is_over(linear.rows->trial));
    linear_close(&linear);
}

/* Slower than expected, but one chunk is slower still. */
static void test_no_better(starlin_context_t *context)
{
    slowness_t slowness = {
        .call_us = 100, .order = "wppwwppwwppwwp", .before = context->sequence + 8, .late_us = 20000};
    linear_t linear = {.context = context, .m = M, .n = N, .k = K, .count = 4};

    set_slow(&slowness);
    open_tried(&linear, 1.0);
    check_same(run_steps(&linear, TRIED + 1, 1));
    set_slow(NULL);
    CHECK(starlin__trial_is_over(linear.rows->trial));
    CHECK(!is_replaced(&linear));
    CHECK(!submit(&linear));
    linear_close(&linear);
}

/* Switched off: the planner's list stays, and says so. Switched off on one rank only: an error on all. */
static void test_off(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_linear_shape_t shape = {.m = 64, .n = N};
    starlin_context_t *context;
    starlin_chunking_t *rows = NULL;
    char text[4096] = "";
    int64_t first;

    setenv("STARLIN_TRIAL", "off", 1);
    context = world_context(TIMEOUT_MS);
    if (context != NULL) {
        context->share.comm_has_core = true;
        problem_slice(12, world_rank, world_nranks, &first, &shape.k_local);
        CHECK_STATUS(starlin_chunking_plan(context, &shape, 1, NULL, &rows), STARLIN_SUCCESS);
        CHECK(starlin_chunking_count(rows) > 1);
        CHECK_STATUS(starlin_chunking_explain(rows, text, sizeof text, NULL), STARLIN_SUCCESS);
        CHECK_CONTAINS(text, "first steps: not tried in the first steps: STARLIN_TRIAL is off");
        CHECK(starlin_chunking_fallback(rows) == NULL);
        starlin_chunking_destroy(rows);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    setenv("STARLIN_TRIAL", world_rank == 0 ? "off" : "on", 1);
    options.use_mpi = true;
    options.mpi_comm = (int)MPI_Comm_c2f(MPI_COMM_WORLD);
    if (world_nranks > 1) {
        CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_ERR_MISMATCH);
        CHECK_CONTAINS(starlin_last_error(), "STARLIN_TRIAL is off on rank 0 and on on rank 1");
    }
    unsetenv("STARLIN_TRIAL");
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    tune_dir_open();
    unsetenv("STARLIN_TRIAL");
    test_planned();
    context = world_context(TIMEOUT_MS);
    if (context != NULL) {
        test_replaced(context);
        test_kept(context);
        test_no_better(context);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    test_off();
    tune_dir_close();
    return world_end();
}
