/* SPDX-License-Identifier: BSD-3-Clause */
/* Report of a context that has really run; alone and under mpirun. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "check.h"
#include "starlin/starlin_report.h"
#include "starlin/starlin_mpi.h"
#include "starlin/starlin_report.h"
#include "base/base.h"

enum { NSTEPS = 6, NCHUNKS = 4, M = 512, N = 256, K = 256 };

typedef struct problem {
    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *x, *w, *y;
} problem_t;

static void problem_create(problem_t *problem)
{
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_matrix_layout_t x = {.cols = K, .placement = STARLIN_SHARD_COLS}, w = {.rows = N, .cols = K},
                            y = {.cols = N};
    options.count = NCHUNKS;
    CHECK_STATUS(starlin_chunking_plan(problem->context, M, NULL, 0, &options, &problem->rows),
                 STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(problem->context, problem->rows, &x, &problem->x), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(problem->context, NULL, &w, &problem->w), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(problem->context, problem->rows, &y, &problem->y), STARLIN_SUCCESS);
}

static void problem_destroy(problem_t *problem)
{
    starlin_matrix_destroy(problem->x);
    starlin_matrix_destroy(problem->w);
    starlin_matrix_destroy(problem->y);
    starlin_chunking_destroy(problem->rows);
    CHECK_STATUS(starlin_context_destroy(problem->context), STARLIN_SUCCESS);
}

static void problem_run(problem_t *problem, int nsteps)
{
    for (int step = 0; step < nsteps; step++) {
        CHECK_STATUS(starlin_row_linear(problem->context, problem->x, problem->w, problem->y, NULL),
                     STARLIN_SUCCESS);
        CHECK_STATUS(starlin_context_wait(problem->context), STARLIN_SUCCESS);
    }
}

static starlin_report_step_t step(const starlin_report_t *report, size_t i)
{
    starlin_report_step_t out = {.struct_size = sizeof out};
    CHECK_STATUS(starlin_report_step(report, i, &out), STARLIN_SUCCESS);
    return out;
}

static double parts(const starlin_report_t *report, size_t i)
{
    double sum_us = 0;
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
        sum_us += starlin_report_exposed_us(report, i, (starlin_cause_t)cause);
    return sum_us;
}

static void test_report(problem_t *problem)
{
    starlin_report_t *report = NULL;
    starlin_report_options_t options = STARLIN_REPORT_OPTIONS_INIT;
    problem_run(problem, 2);
    CHECK_STATUS(starlin_report_create(problem->context, NULL, &report), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "recording is off");
    /* the spans' memory is not there until recording is switched on */
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(starlin_report_enable(problem->context, true), STARLIN_ERR_NO_MEMORY);
    starlin__alloc_fail_at = 0;
    CHECK_STATUS(starlin_report_enable(problem->context, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_create(problem->context, NULL, &report), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "recording is on");
    options.comm_us = -1;
    problem_run(problem, NSTEPS);
    CHECK_STATUS(starlin_report_create(problem->context, &options, &report), STARLIN_ERR_INVALID);
    options.comm_us = 0;
    struct {
        starlin_report_options_t options;
        uint64_t later;
    } newer = {.options = {.struct_size = sizeof newer}, .later = 1};
    CHECK_STATUS(starlin_report_create(problem->context, &newer.options, &report), STARLIN_ERR_UNSUPPORTED);
    newer.later = 0; /* what this version does not know is not asked for */
    CHECK_STATUS(starlin_report_create(problem->context, &newer.options, &report), STARLIN_SUCCESS);
    starlin_report_destroy(report);
    options.operators_per_step = 1;
    options.chunking = problem->rows;
    CHECK_STATUS(starlin_report_create(problem->context, &options, &report), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin_report_nsteps(report), NSTEPS);
    CHECK_EQ_INT(starlin_report_ncollectives(report), NSTEPS * NCHUNKS);
    CHECK_EQ_INT(starlin_report_nspans(report), 2 * NSTEPS * NCHUNKS);
    CHECK_EQ_INT(starlin_report_chunk_rows(report, 0), M / NCHUNKS);
    CHECK_EQ_INT(starlin_report_chunk_rows(report, NCHUNKS), 0);
    CHECK_EQ_INT(step(report, 0).first_sequence, 3);
    starlin_report_step_t mean = step(report, STARLIN_REPORT_MEAN);
    CHECK(mean.time_us > 0 && mean.compute_busy_us > 0);
    for (size_t i = 0; i < starlin_report_nsteps(report); i++)
        CHECK(fabs(parts(report, i) - step(report, i).time_us + step(report, i).ideal_us) < 1e-3);
    for (size_t i = 0; i < starlin_report_ncollectives(report); i++) {
        starlin_report_collective_t one = {.struct_size = sizeof one};
        CHECK_STATUS(starlin_report_collective(report, i, &one), STARLIN_SUCCESS);
        CHECK(one.gap_us >= 0); /* nothing is summed before it is multiplied */
    }
    for (size_t i = 0; i < starlin_report_nspans(report); i++) {
        starlin_report_span_t one = {.struct_size = sizeof one};
        CHECK_STATUS(starlin_report_span(report, i, &one), STARLIN_SUCCESS);
        CHECK_EQ_STR(one.op, "row_linear");
        CHECK_EQ_STR(one.stage, i % 2 == 0 ? "gemm" : "allreduce");
        CHECK_EQ_INT(one.is_link, i % 2);
    }
    if (starlin_context_rank(problem->context) == 0) {
        char text[8192];
        CHECK(starlin_report_print(report, text, sizeof text) < sizeof text);
        CHECK_CONTAINS(text, "cblas");
        fputs(text, stdout);
    }
    starlin_report_destroy(report);
}

/* A modelled link knows what a collective should take: all beyond it is the machine's, however busy it is. */
static void test_planned(void)
{
    problem_t problem = {0};
    starlin_report_t *report = NULL;
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    options.comm = "model:gbps=1,latency_us=50,ranks=2";
    CHECK_STATUS(starlin_context_create(&options, &problem.context), STARLIN_SUCCESS);
    if (problem.context == NULL)
        return;
    problem_create(&problem);
    CHECK_STATUS(starlin_report_enable(problem.context, true), STARLIN_SUCCESS);
    problem_run(&problem, NSTEPS);
    CHECK_STATUS(starlin_report_create(problem.context, NULL, &report), STARLIN_SUCCESS);
    if (report != NULL) {
        /* 4 x (50 us + 128 x 256 x 4 bytes at 1 GB/s) */
        double planned_us = 4 * (50 + 131.072);
        starlin_report_step_t mean = step(report, STARLIN_REPORT_MEAN);
        CHECK(mean.comm_us > 0 && mean.comm_us < 1.001 * planned_us);
        CHECK(mean.comm_busy_us >= mean.comm_us - 1e-3);
    }
    starlin_report_destroy(report);
    problem_destroy(&problem);
}

int main(int argc, char **argv)
{
    int provided;
    problem_t problem = {0};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_STATUS(starlin_mpi_context_create(MPI_COMM_WORLD, NULL, &problem.context), STARLIN_SUCCESS);
    if (problem.context != NULL) {
        problem_create(&problem);
        test_report(&problem);
        int nranks = starlin_context_nranks(problem.context);
        problem_destroy(&problem);
        if (nranks == 1)
            test_planned();
    }
    MPI_Finalize();
    return CHECK_RESULT();
}
