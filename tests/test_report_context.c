/* SPDX-License-Identifier: BSD-3-Clause */
/* Report and traces of a context that has really run; alone and under mpirun. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "starlin/starlin_mpi.h"
#include "trace.h"

enum { NSTEPS = 6, NCHUNKS = 4, M = 512, N = 256, K = 256 };

typedef struct problem {
    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *x, *w, *y;
} problem_t;

static void problem_create(problem_t *problem)
{
    starlin_linear_shape_t shape = {.m = M, .n = N, .k_local = K, .dtype = STARLIN_F32};
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_matrix_layout_t x = {.cols = K}, w = {.rows = N, .cols = K}, y = {.cols = N};
    options.count = NCHUNKS;
    CHECK_STATUS(starlin_chunking_plan(problem->context, &shape, 1, &options, &problem->rows),
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

static double parts(const starlin_report_step_t *step)
{
    double sum_us = 0;
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
        sum_us += step->exposed_us[cause];
    return sum_us;
}

static void test_report(problem_t *problem)
{
    starlin_report_t *report = NULL;
    starlin_report_options_t options = STARLIN_REPORT_OPTIONS_INIT;
    problem_run(problem, 2);
    CHECK_STATUS(starlin_report_create(problem->context, NULL, &report), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "recording is off");
    CHECK_STATUS(starlin_report_enable(problem->context, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_create(problem->context, NULL, &report), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "recording is on");
    options.comm_us = -1;
    problem_run(problem, NSTEPS);
    CHECK_STATUS(starlin_report_create(problem->context, &options, &report), STARLIN_ERR_INVALID);
    options.comm_us = 0;
    options.operators_per_step = 1;
    options.chunking = problem->rows;
    CHECK_STATUS(starlin_report_create(problem->context, &options, &report), STARLIN_SUCCESS);
    CHECK_EQ_INT(report->nsteps, NSTEPS);
    CHECK_EQ_INT(report->ncollectives, NSTEPS * NCHUNKS);
    CHECK_EQ_INT(report->nchunks, NCHUNKS);
    CHECK_EQ_INT(report->rows[0], M / NCHUNKS);
    CHECK_EQ_INT(report->steps[0].first_sequence, 3);
    CHECK(report->mean.time_us > 0 && report->mean.gemm_busy_us > 0);
    for (size_t i = 0; i < report->nsteps; i++)
        CHECK(fabs(parts(&report->steps[i]) - report->steps[i].time_us + report->steps[i].ideal_us) < 1e-3);
    for (size_t i = 0; i < report->ncollectives; i++)
        CHECK(report->collectives[i].gap_us >= 0); /* nothing is summed before it is multiplied */
    if (starlin_context_rank(problem->context) == 0) {
        char text[8192];
        CHECK(starlin_report_print(report, text, sizeof text) < sizeof text);
        CHECK_CONTAINS(text, "cblas");
        fputs(text, stdout);
    }
    starlin_report_destroy(report);
}

static void test_trace(problem_t *problem)
{
    starlin__trace_t trace;
    int nranks = starlin_context_nranks(problem->context), rank = starlin_context_rank(problem->context);
    CHECK_STATUS(starlin__trace_gather(problem->context, "title", NULL, &trace), STARLIN_SUCCESS);
    CHECK_EQ_INT(trace.nranks, nranks);
    CHECK_EQ_INT(trace.report_rank, rank);
    CHECK(trace.report != NULL);
    for (int r = 0; r < nranks; r++) {
        CHECK_EQ_INT(trace.ranks[r].nspans, NSTEPS * NCHUNKS * 2);
        CHECK(trace.ranks[r].offset_us == 0); /* one host */
    }
    if (rank == 0) {
        char path[64];
        snprintf(path, sizeof path, "report_context_%d_%ld.html", nranks, (long)getpid());
        CHECK_STATUS(starlin__trace_write(&trace, 1, "Test", path), STARLIN_SUCCESS);
        if (getenv("STARLIN_KEEP_TRACE") == NULL)
            unlink(path);
    }
    starlin__trace_release(&trace);
    CHECK_STATUS(starlin_report_reset(problem->context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__trace_gather(problem->context, "title", NULL, &trace), STARLIN_SUCCESS);
    CHECK(trace.report == NULL && trace.ranks[0].nspans == 0);
    starlin__trace_release(&trace);
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
        CHECK(report->mean.comm_us > 0 && report->mean.comm_us < 1.001 * planned_us);
        CHECK(report->mean.comm_busy_us >= report->mean.comm_us - 1e-3);
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
        test_trace(&problem);
        int nranks = starlin_context_nranks(problem.context);
        problem_destroy(&problem);
        if (nranks == 1)
            test_planned();
    }
    MPI_Finalize();
    return CHECK_RESULT();
}
