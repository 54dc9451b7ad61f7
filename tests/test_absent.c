/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that does not come: the others' calls end with a timeout, and so do their contexts. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "graph/context.h"
#include "linear.h"
#include "world.h"

enum { TIMEOUT_MS = 1000 };

static void check_time(double start_us)
{
    double spent_us = starlin__now_us() - start_us;
    CHECK(spent_us >= 0.9e3 * TIMEOUT_MS && spent_us < 10e6);
    CHECK_CONTAINS(starlin_last_error(), "1000 ms");
}

/* Absent from the start. The others' request stays behind, so it gets a communicator of its own. */
static void test_start(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;
    double start_us;
    MPI_Comm apart;

    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    options.use_mpi = true;
    options.mpi_comm = (int)MPI_Comm_c2f(apart);
    options.timeout_ms = TIMEOUT_MS;
    start_us = starlin__now_us();
    if (world_rank != 0) {
        CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_ERR_TIMEOUT);
        check_time(start_us);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Absent from an exchange: nothing of the linear has been compared. */
static void test_exchange(void)
{
    linear_t linear = {.context = world_context(TIMEOUT_MS), .m = 8, .n = 5, .k = 9, .count = 4};
    double start_us = starlin__now_us();

    if (linear.context == NULL)
        return;
    if (world_rank != 0) {
        CHECK_STATUS(linear_open(&linear), STARLIN_ERR_TIMEOUT);
        check_time(start_us);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_SUCCESS);
}

static void *kept;

/* Absent from a collective: the second operator of a known shape. */
static void test_collective(void)
{
    linear_t linear = {.context = world_context(TIMEOUT_MS), .m = 8, .n = 5, .k = 9, .count = 4};
    double start_us;

    if (linear.context == NULL)
        return;
    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(linear.context), STARLIN_SUCCESS);
    start_us = starlin__now_us();
    if (world_rank != 0) {
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_matrix_wait(linear.y), STARLIN_ERR_TIMEOUT);
        check_time(start_us);
        CHECK_STATUS(starlin_context_wait(linear.context), STARLIN_ERR_TIMEOUT);
        CHECK_STATUS(linear_submit(&linear), STARLIN_ERR_TIMEOUT);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* the abandoned collectives may still write to y */
    kept = linear.y_data;
    linear.y_data = NULL;
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context),
                 world_rank != 0 ? STARLIN_ERR_TIMEOUT : STARLIN_SUCCESS);
}

/* A peer that comes late completes the sums that this rank has given up: where they were, in memory of the
 * library that the application has no more use for. AddressSanitizer sees whether it is there. */
static void test_late_peer(void)
{
    linear_t linear = {
        .context = world_context(TIMEOUT_MS), .m = 8, .n = 5, .k = 9, .dtype = STARLIN_BF16, .count = 4};
    starlin_matrix_layout_t layout = {.cols = 5, .dtype = STARLIN_BF16};
    starlin_status_t status = STARLIN_SUCCESS;

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    starlin_matrix_destroy(linear.y);
    CHECK_STATUS(starlin_matrix_create(linear.context, linear.rows, &layout, &linear.y), STARLIN_SUCCESS);
    CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(linear.context), STARLIN_SUCCESS);
    if (world_rank != 0) {
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_context_wait(linear.context), STARLIN_ERR_TIMEOUT);
        linear_close(&linear);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
        status = starlin_context_wait(linear.context);
        linear_close(&linear);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_STATUS(starlin_context_destroy(linear.context), world_rank != 0 ? STARLIN_ERR_TIMEOUT : status);
}

int main(int argc, char **argv)
{
    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    test_exchange();
    test_collective();
    test_late_peer();
    /* a new communicator is unaffected */
    linear_t linear = {.context = world_context(60000), .m = 8, .n = 5, .k = 9, .count = 4};
    if (linear.context != NULL)
        linear_check(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_SUCCESS);
    test_start();
    return world_end();
}
