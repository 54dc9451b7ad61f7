/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunkings on several ranks: counts and lists, blocks, refusals, estimates, measurements and wisdom. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

#include "plan/plan.h"
#include "watchdog.h"
#include "world.h"

enum { M = 301, N = 24, K = 16 };
static char wisdom_path[64];

static starlin_operation_t row_linear(starlin_placement_t to)
{
    starlin_operation_t operation = STARLIN_OPERATION_INIT;

    operation.op = STARLIN_OP_ROW_LINEAR;
    operation.n = N;
    operation.k = K + world_rank; /* may differ */
    operation.to = to;
    operation.bias = to != STARLIN_PARTIAL;
    return operation;
}

/* The same list on every rank? */
static void check_alike(const starlin_chunking_t *chunking)
{
    int64_t mine[2] = {(int64_t)starlin_chunking_count(chunking), 0}, first[2];

    for (size_t i = 0; i < starlin_chunking_count(chunking); i++)
        mine[1] = mine[1] * 31 + starlin_chunking_rows(chunking, i);
    memcpy(first, mine, sizeof mine);
    MPI_Bcast(first, 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
    CHECK_EQ_INT(mine[0], first[0]);
    CHECK_EQ_INT(mine[1], first[1]);
}

static starlin_chunking_t *plan(starlin_context_t *context, int64_t m, const starlin_operation_t *operations,
                                size_t count, const starlin_chunking_options_t *options)
{
    starlin_chunking_t *chunking = NULL;

    CHECK_STATUS(starlin_chunking_plan(context, m, operations, count, options, &chunking), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin_chunking_total_rows(chunking), m);
    check_alike(chunking);
    return chunking;
}

static void test_fixed(starlin_context_t *context)
{
    const int64_t rows[] = {200, 100, 1};
    starlin_operation_t operation = row_linear(STARLIN_SHARD_ROWS);
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_plan_summary_t summary = STARLIN_PLAN_SUMMARY_INIT;
    starlin_chunking_t *chunking;
    int64_t first, count, sum = 0;

    options.count = 4;
    chunking = plan(context, M, NULL, 0, &options);
    CHECK_EQ_INT(starlin_chunking_count(chunking), 4);
    CHECK_EQ_INT(starlin_chunking_rows(chunking, 0), 76);
    CHECK_EQ_INT(starlin_chunking_rows(chunking, 4), 0);
    CHECK(starlin_chunking_fallback(chunking) == NULL);
    CHECK_STATUS(starlin_chunking_plan_summary(chunking, &summary), STARLIN_SUCCESS);
    CHECK_EQ_INT(summary.source, STARLIN_PLAN_ASKED);
    CHECK_EQ_INT(summary.struct_size, sizeof summary);
    CHECK_EQ_INT(summary.ncandidates, 0);
    starlin_chunking_destroy(chunking);

    chunking = plan(context, 3, NULL, 0, &options);
    CHECK_EQ_STR(starlin_chunking_fallback(chunking), "3 chunks instead of 4: there are only 3 rows");
    starlin_chunking_destroy(chunking);

    options.count = 0;
    options.rows = rows;
    options.nrows = 3;
    chunking = plan(context, M, NULL, 0, &options);
    CHECK_EQ_INT(starlin_chunking_rows(chunking, 1), 100);
    CHECK_EQ_INT(starlin_chunking_blocks(chunking), 1);
    starlin_chunking_run(chunking, 2, 0, &first, &count);
    CHECK_EQ_INT(first, 300);
    CHECK_EQ_INT(count, 1);
    starlin_chunking_destroy(chunking);

    options = (starlin_chunking_options_t){.count = 8};
    chunking = plan(context, 5 * world_nranks, &operation, 1, &options); /* blocks of five rows */
    CHECK_EQ_INT(starlin_chunking_count(chunking), world_nranks > 1 ? 5 : 5);
    CHECK_EQ_INT(starlin_chunking_blocks(chunking), world_nranks);
    CHECK_EQ_STR(starlin_chunking_fallback(chunking),
                 world_nranks > 1 ? "5 chunks instead of 8: a rank's block has only 5 rows"
                                  : "5 chunks instead of 8: there are only 5 rows");
    for (size_t b = 0; b < (size_t)world_nranks; b++) {
        starlin_chunking_run(chunking, 1, b, &first, &count);
        CHECK_EQ_INT(first, 5 * (int64_t)b + 1);
        sum += count;
    }
    CHECK_EQ_INT(sum, starlin_chunking_rows(chunking, 1));
    starlin_chunking_destroy(chunking);
}

/* A wrong argument on the last rank is an error on every rank, with one text on several. */
static void check_refused(starlin_context_t *context, int64_t m, const starlin_operation_t *operation,
                          const starlin_chunking_options_t *options, const char *part)
{
    const starlin_operation_t right = row_linear(STARLIN_REPLICATE);
    bool is_last = world_rank == world_nranks - 1;
    starlin_chunking_t *chunking = NULL;
    char first[512];

    step_begin(part, 0);
    CHECK_STATUS(starlin_chunking_plan(context, is_last ? m : M, is_last ? operation : &right, 1,
                                       is_last ? options : NULL, &chunking),
                 world_nranks > 1 ? STARLIN_ERR_MISMATCH : STARLIN_ERR_INVALID);
    CHECK(chunking == NULL);
    CHECK_CONTAINS(starlin_last_error(), part);
    snprintf(first, sizeof first, "%s", starlin_last_error());
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ_STR(starlin_last_error(), first);
}

static void test_refusals(starlin_context_t *context)
{
    starlin_operation_t operation = row_linear(STARLIN_REPLICATE);
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    const int64_t rows[] = {300, 2};
    starlin_chunking_t *chunking;

    check_refused(context, 0, &operation, NULL, "m is 0");
    check_refused(context, (int64_t)1 << 41, &operation, NULL, "m is 2199023255552");
    operation.dtype = (starlin_dtype_t)9;
    check_refused(context, M, &operation, NULL, "dtype is 9");
    operation = row_linear((starlin_placement_t)7);
    check_refused(context, M, &operation, NULL, "to is 7");
    operation = row_linear(STARLIN_REPLICATE);
    operation.n = -1;
    check_refused(context, M, &operation, NULL, "n is -1");
    operation.n = (int64_t)1 << 40;
    check_refused(context, (int64_t)1 << 40, &operation, NULL, "a matrix has at most");
    operation = row_linear(STARLIN_REPLICATE);
    options.count = 3;
    options.rows = rows;
    options.nrows = 2;
    check_refused(context, M, &operation, &options, "count is 3");
    options.count = 0;
    check_refused(context, M, &operation, &options, "sum is 302");
    options = (starlin_chunking_options_t){.count = STARLIN__MAX_CHUNKS + 1};
    check_refused(context, M, &operation, &options, "count is 257");
    options = (starlin_chunking_options_t){.effort = (starlin_effort_t)5};
    check_refused(context, M, &operation, &options, "effort is 5");
    if (world_nranks > 1) { /* agreeing, each by itself */
        options = (starlin_chunking_options_t){.count = 3};
        check_refused(context, M, &operation, &options, "the chunk list");
        operation.reduction = STARLIN_REDUCTION_F32;
        check_refused(context, M, &operation, NULL, "operation 0");
    }
    chunking = NULL;
    CHECK_STATUS(starlin_chunking_plan(context, M, NULL, 0, NULL, &chunking), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "nothing to plan for");
}

static void test_estimate(starlin_context_t *context)
{
    starlin_operation_t operations[2] = {row_linear(STARLIN_REPLICATE), row_linear(STARLIN_SHARD_ROWS)};
    starlin_chunking_options_t options = {.effort = STARLIN_EFFORT_ESTIMATE};
    starlin_plan_summary_t summary = {0};
    starlin_plan_candidate_t candidate = {0};
    uint64_t before = starlin_context_ntasks(context);
    starlin_chunking_t *chunking;

    for (size_t i = 0; i < 2; i++) {
        operations[i].n = 1024;
        operations[i].k = 2048;
        chunking = plan(context, 2048, &operations[i], 1, &options);
        CHECK_STATUS(starlin_chunking_plan_summary(chunking, &summary), STARLIN_SUCCESS);
        CHECK_EQ_INT(summary.source, STARLIN_PLAN_ESTIMATED);
        CHECK(summary.predicted_us > 0 && summary.predicted_us <= summary.serial_us);
        CHECK(summary.measured_us <= 0 && summary.ncandidates >= 6);
        CHECK_STATUS(starlin_chunking_plan_candidate(chunking, 0, &candidate), STARLIN_SUCCESS);
        CHECK_EQ_STR(candidate.rows, "2048");
        CHECK_EQ_STR(candidate.origin, "equal");
        CHECK_EQ_INT(candidate.nrounds, 0);
        CHECK_STATUS(starlin_chunking_plan_candidate(chunking, summary.ncandidates, &candidate),
                     STARLIN_ERR_INVALID);
        starlin_chunking_destroy(chunking);
    }
    CHECK_EQ_INT(starlin_context_ntasks(context), before); /* nothing ran */
}

static void damage(void)
{
    FILE *file = world_rank == 0 ? fopen(wisdom_path, "r+") : NULL;

    if (file != NULL) {
        fseek(file, -9, SEEK_END);
        fputc('~', file);
        fclose(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_measure(starlin_context_t *context)
{
    starlin_operation_t chain[40];
    starlin_plan_summary_t first = {0}, second = {0}, third = {0};
    starlin_chunking_t *chunking, *again;
    char text[8192];
    size_t length = 0, nchosen = 0;

    for (size_t i = 0; i < 40; i++)
        chain[i] = row_linear(STARLIN_REPLICATE);
    for (size_t count = 1; count <= 40; count += 39) {
        step_begin("measure", (int)count);
        chunking = plan(context, M, chain, count, NULL);
        CHECK_STATUS(starlin_chunking_plan_summary(chunking, &first), STARLIN_SUCCESS);
        CHECK_EQ_INT(first.source, STARLIN_PLAN_MEASURED);
        CHECK_EQ_INT(first.nplanned, count == 1 ? 1 : 4);
        CHECK(first.measured_us > 0 && first.measured_us <= first.serial_us);
        CHECK(first.notice == NULL);
        for (size_t i = 0; i < first.ncandidates; i++) {
            starlin_plan_candidate_t candidate = STARLIN_PLAN_CANDIDATE_INIT;
            CHECK_STATUS(starlin_chunking_plan_candidate(chunking, i, &candidate), STARLIN_SUCCESS);
            CHECK(candidate.nrounds > 0 && candidate.measured_us > 0 && !candidate.refused);
            nchosen += candidate.chosen;
            if (candidate.chosen)
                CHECK_EQ_INT(candidate.nchunks, starlin_chunking_count(chunking));
        }
        CHECK_STATUS(starlin_chunking_explain(chunking, text, sizeof text, &length), STARLIN_SUCCESS);
        CHECK_EQ_INT(strlen(text), length);
        CHECK_CONTAINS(text, "measured for");
        CHECK_CONTAINS(text, "chosen ");
        if (world_rank == 0 && count == 1)
            printf("%s", text);

        again = plan(context, M, chain, count, NULL);
        CHECK_STATUS(starlin_chunking_plan_summary(again, &second), STARLIN_SUCCESS);
        CHECK_EQ_INT(second.source, STARLIN_PLAN_WISDOM);
        CHECK_EQ_INT(starlin_chunking_count(again), starlin_chunking_count(chunking));
        for (size_t i = 0; i < starlin_chunking_count(again); i++)
            CHECK_EQ_INT(starlin_chunking_rows(again, i), starlin_chunking_rows(chunking, i));
        CHECK(second.measured_us > first.measured_us - 1 && second.measured_us < first.measured_us + 1);
        starlin_chunking_destroy(again);
        starlin_chunking_destroy(chunking);
    }
    CHECK_EQ_INT(nchosen, 2);

    damage();
    step_begin("damaged", 0);
    chunking = plan(context, M, chain, 40, NULL);
    CHECK_STATUS(starlin_chunking_plan_summary(chunking, &third), STARLIN_SUCCESS);
    CHECK_EQ_INT(third.source, STARLIN_PLAN_MEASURED);
    CHECK_CONTAINS(third.notice, "damaged");
    starlin_chunking_destroy(chunking);
}

/* Whichever allocation fails: a list, or an error. With one rank: the exchanges of several need memory. */
static void test_memory(starlin_context_t *context)
{
    starlin_operation_t operation = row_linear(STARLIN_REPLICATE);
    starlin_chunking_options_t options = {.effort = STARLIN_EFFORT_ESTIMATE};

    for (uint64_t i = 1; world_nranks == 1 && i < 400; i += i < 20 ? 1 : 23) {
        starlin_chunking_t *chunking = NULL;
        starlin_status_t status;
        step_begin("memory", (int)i);
        starlin__alloc_fail_at = starlin__alloc_count + i;
        status = starlin_chunking_plan(context, M, &operation, 1, &options, &chunking);
        starlin__alloc_fail_at = 0;
        CHECK(status == STARLIN_SUCCESS || status == STARLIN_ERR_NO_MEMORY);
        CHECK((chunking != NULL) == (status == STARLIN_SUCCESS));
        starlin_chunking_destroy(chunking);
    }
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    world_begin(&argc, &argv);
    step_limit(100);
    snprintf(wisdom_path, sizeof wisdom_path, "/tmp/starlin-plan-%ld", (long)getpid());
    MPI_Bcast(wisdom_path, sizeof wisdom_path, MPI_CHAR, 0, MPI_COMM_WORLD);
    setenv("STARLIN_WISDOM", wisdom_path, 1);
    setenv("STARLIN_PLAN_MS", "60000", 1); /* rounds end it, however busy the machine is */
    context = world_context(60000);
    if (context != NULL) {
        test_fixed(context);
        test_refusals(context);
        test_estimate(context);
        test_measure(context);
        test_memory(context);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    if (world_rank == 0) {
        unlink(wisdom_path);
        strcat(wisdom_path, ".lock");
        unlink(wisdom_path);
    }
    return world_end();
}
