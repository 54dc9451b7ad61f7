/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators in one piece over matrices in chunks: exact for every dtype, reduction, list, slice of k and (on
 * one and two ranks) policy, between chunked operators and without a wait; one gemm, one collective; failures
 * as of a chunk. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>
#include <starpu_scheduler.h>
#include <time.h>

#include "check.h"
#include "linear.h"
#include "policy/policy.h"
#include "operators/row_linear_insert.h"
#include "starlin/starlin_starpu.h"
#include "world.h"

enum { M = 37, N = 19, TIMEOUT_MS = 20000 };

static const int64_t uneven[] = {20, 1, 9, 7};

static starlin_status_t submit(linear_t *linear, bool whole)
{
    starlin__row_linear_t one = {
        .x = linear->x, .w = linear->w, .y = linear->y, .reduction = linear->reduction, .whole = whole};

    CHECK(starlin__row_linear_joins(&one));
    return starlin__row_linear_submit(linear->context, &one);
}

static uint64_t hash_of(const linear_t *linear)
{
    size_t nbytes = (size_t)(linear->m * linear->n) * starlin_dtype_nbytes(linear->dtype);
    return starlin__hash(STARLIN__HASH_INIT, linear->y_data, nbytes);
}

static void forget(linear_t *linear)
{
    memset(linear->y_data, 0xff, (size_t)(linear->m * linear->n) * starlin_dtype_nbytes(linear->dtype));
}

/* Chunked, whole and mixed without a wait: each leaves the same bits. */
static void run_kind(starlin_context_t *context, linear_t *linear)
{
    static const unsigned patterns[] = {0x0, 0xf, 0x5, 0xa, 0x6};
    uint64_t hash = 0, tasks;

    linear->context = context;
    CHECK_STATUS(linear_open(linear), STARLIN_SUCCESS);
    for (size_t i = 0; linear->y != NULL && i < sizeof patterns / sizeof *patterns; i++) {
        forget(linear);
        for (int j = 0; j < 4; j++)
            CHECK_STATUS(submit(linear, patterns[i] >> j & 1), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_matrix_wait(linear->y), STARLIN_SUCCESS);
        CHECK_EQ_INT(linear_wrong(linear), 0);
        hash = hash != 0 ? hash : hash_of(linear);
        CHECK(hash == hash_of(linear));
    }
    tasks = context->ntasks;
    CHECK_STATUS(submit(linear, true), STARLIN_SUCCESS);
    CHECK_EQ_INT(context->ntasks - tasks, linear->y->partial != NULL ? 3 : 2);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    linear_close(linear);
}

/* Lists of more and of less buffers than StarPU has room for in a task; slices of k that are empty on all
 * ranks but the first. The first `nlists` of them. */
static void run_all(starlin_context_t *context, int nlists)
{
    for (int dtype = 0; dtype < 4; dtype++) {
        for (int reduction = 0; reduction < 2; reduction++) {
            linear_t linear = {.m = M,
                               .n = N,
                               .k = 23,
                               .dtype = (starlin_dtype_t)dtype,
                               .reduction = (starlin_reduction_t)reduction};
            linear_t lists[4] = {linear, linear, linear, linear};
            lists[0].list = uneven;
            lists[0].nlist = 4;
            lists[1].count = 3;
            lists[2].count = M;
            lists[3].count = 2;
            lists[3].k = 1;
            for (int i = 0; i < nlists; i++)
                run_kind(context, &lists[i]);
        }
    }
}

static bool delay(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    uint64_t words[3] = {(uint64_t)rank, sequence, chunk};
    uint64_t draw = starlin__hash(STARLIN__HASH_INIT, words, sizeof words) >> 11;

    (void)arg;
    nanosleep(&(struct timespec){.tv_nsec = (long)(draw % 1000) * 1000}, NULL);
    return true;
}

/* Layers that hand on what the one before has summed (rank 0's weight is the identity, the others' are zero),
 * chunk by chunk and in one piece in all orders, with gemms that take their time. */
static void test_chain(starlin_context_t *context)
{
    enum { NLAYERS = 5 };
    linear_t first = {.context = context, .m = M, .n = N, .k = 23, .list = uneven, .nlist = 4};
    starlin_matrix_layout_t layout = {.cols = N}, weight = {.rows = N, .cols = N};
    starlin_matrix_t *w = NULL, *y[NLAYERS] = {0};
    float identity[N * N] = {0}, result[M * N];

    for (int i = 0; i < N && world_rank == 0; i++)
        identity[i * N + i] = 1.0f;
    CHECK_STATUS(linear_open(&first), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wrap(context, NULL, identity, &weight, &w), STARLIN_SUCCESS);
    for (int i = 0; i < NLAYERS; i++)
        CHECK_STATUS(starlin_matrix_create(context, first.rows, &layout, &y[i]), STARLIN_SUCCESS);
    starlin__gemm_hook = delay;
    for (unsigned pattern = 0; pattern < 1u << (NLAYERS + 1); pattern += 3) {
        forget(&first);
        CHECK_STATUS(submit(&first, pattern >> NLAYERS & 1), STARLIN_SUCCESS);
        for (int i = 0; i < NLAYERS; i++) {
            linear_t layer = {.context = context, .x = i == 0 ? first.y : y[i - 1], .w = w, .y = y[i]};
            CHECK_STATUS(submit(&layer, pattern >> i & 1), STARLIN_SUCCESS);
        }
        CHECK_STATUS(starlin_matrix_read(y[NLAYERS - 1], result, 0), STARLIN_SUCCESS);
        CHECK_EQ_INT(linear_wrong(&first), 0);
        CHECK(memcmp(result, first.y_data, sizeof result) == 0);
    }
    starlin__gemm_hook = NULL;
    for (int i = 0; i < NLAYERS; i++)
        starlin_matrix_destroy(y[i]);
    linear_close(&first);
    starlin_matrix_destroy(w);
}

/* A task of the application between the layers sees its chunk only. */
static void count_chunk(void *buffers[], void *arg)
{
    (void)buffers;
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
}

static void test_handles(starlin_context_t *context)
{
    static struct starpu_codelet codelet = {
        .cpu_funcs = {count_chunk}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "count_chunk"};
    linear_t linear = {.context = context, .m = M, .n = N, .k = 23, .list = uneven, .nlist = 4};
    int seen = 0;

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    for (int round = 0; round < 3; round++) {
        CHECK_STATUS(submit(&linear, round % 2 == 0), STARLIN_SUCCESS);
        for (size_t i = 0; i < 4; i++) {
            struct starpu_task *task = starpu_task_create();
            task->cl = &codelet;
            task->cl_arg = &seen;
            task->handles[0] = starlin_matrix_chunk_handle(linear.y, i);
            CHECK_EQ_INT(starpu_task_submit(task), 0);
        }
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    starpu_task_wait_for_all();
    CHECK_EQ_INT(seen, 12);
    CHECK_EQ_INT(linear_wrong(&linear), 0);
    linear_close(&linear);
}

/* One gemm and one collective of all rows, in the report too. */
static void test_report(starlin_context_t *context)
{
    linear_t linear = {.context = context, .m = M, .n = N, .k = 23, .list = uneven, .nlist = 4};
    starlin_report_t *report = NULL;

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_enable(context, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_reset(context), STARLIN_SUCCESS);
    CHECK_STATUS(submit(&linear, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_create(context, NULL, &report), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_report_enable(context, false), STARLIN_SUCCESS);
    if (report != NULL) {
        CHECK_EQ_INT(report->nchunks, 1);
        CHECK_EQ_INT(report->rows[0], M);
        CHECK_EQ_INT(report->ncollectives, 1);
        CHECK_EQ_INT(report->collectives[0].chunk, 0);
    }
    starlin_report_destroy(report);
    linear_close(&linear);
}

/* What cannot be computed in one piece. */
static void test_joins(starlin_context_t *context)
{
    linear_t linear = {.context = context, .m = 8, .n = 4, .k = 3, .count = 2};
    starlin__row_linear_t one = {0};
    starpu_data_handle_t handles[2];
    starlin_matrix_layout_t layout = {.cols = 4};
    starlin_matrix_t *borrowed = NULL, large;
    float data[2][4 * 4] = {{0}};

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    for (int i = 0; i < 2; i++)
        starpu_matrix_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)data[i], 4, 4, 4, sizeof(float));
    CHECK_STATUS(starlin_matrix_from_handles(context, linear.rows, handles, &layout, &borrowed),
                 STARLIN_SUCCESS);
    one = (starlin__row_linear_t){.x = linear.x, .w = linear.w, .y = linear.y};
    CHECK(starlin__row_linear_joins(&one));
    one.y = borrowed;
    CHECK(!starlin__row_linear_joins(&one));
    one = (starlin__row_linear_t){.x = borrowed, .w = linear.w, .y = linear.y};
    CHECK(!starlin__row_linear_joins(&one));
    large = *linear.y;
    large.rows = INT32_MAX / 4 + 1; /* more elements than a collective counts */
    one = (starlin__row_linear_t){.x = linear.x, .w = linear.w, .y = &large};
    CHECK(!starlin__row_linear_joins(&one));
    starlin_matrix_destroy(borrowed);
    for (int i = 0; i < 2; i++)
        starpu_data_unregister(handles[i]);
    linear_close(&linear);
}

/* One rank computes in one piece what the others do in chunks: an error on each, no hang. */
static void test_mismatch(void)
{
    linear_t linear = {.m = M, .n = N, .k = 23, .count = 5};

    if (world_nranks == 1)
        return;
    linear.context = world_context(TIMEOUT_MS);
    if (linear.context == NULL)
        return;
    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(submit(&linear, world_rank == 0), STARLIN_ERR_MISMATCH);
    CHECK_CONTAINS(starlin_last_error(), "in one piece");
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_SUCCESS);
}

static bool fail_third(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    (void)arg;
    (void)chunk;
    return rank != world_nranks - 1 || sequence != 3;
}

/* The third operator fails on the last rank; those before it are unharmed, and every rank hears of it. */
static void test_failure(unsigned pattern)
{
    linear_t linears[4] = {{0}};
    char expected[80];
    starlin_context_t *context = world_context(TIMEOUT_MS);

    if (context == NULL)
        return;
    for (int i = 0; i < 4; i++) {
        linears[i] = (linear_t){.context = context, .m = 12, .n = 5, .k = 9, .count = 6};
        CHECK_STATUS(linear_open(&linears[i]), STARLIN_SUCCESS);
    }
    starlin__gemm_hook = fail_third;
    for (int i = 0; i < 4; i++)
        CHECK_STATUS(submit(&linears[i], pattern >> i & 1), STARLIN_SUCCESS);
    for (int i = 0; i < 4; i++) {
        CHECK_STATUS(starlin_matrix_wait(linears[i].y), i < 2 ? STARLIN_SUCCESS : STARLIN_ERR_COMPUTE);
        if (i < 2)
            CHECK_EQ_INT(linear_wrong(&linears[i]), 0);
    }
    snprintf(expected, sizeof expected, "rank %d, operator 3: gemm of chunk 0", world_nranks - 1);
    CHECK_CONTAINS(starlin_last_error(), expected);
    starlin__gemm_hook = NULL;
    for (int i = 0; i < 4; i++)
        linear_close(&linears[i]);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_ERR_COMPUTE);
}

static void run_policy(const char *name)
{
    starlin_context_t *context;

    setenv("STARPU_SCHED", name, 1);
    context = world_context(60000);
    if (context == NULL)
        return;
    run_all(context, 1);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

int main(int argc, char **argv)
{
    struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies();
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(60000);
    if (context != NULL) {
        run_all(context, 4);
        test_chain(context);
        test_handles(context);
        test_report(context);
        test_joins(context);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    test_mismatch();
    for (unsigned pattern = 4; pattern < 16; pattern += 3)
        test_failure(pattern | 4);
    for (; world_nranks < 3 && *policy != NULL; policy++)
        if ((*policy)->policy_name != NULL)
            run_policy((*policy)->policy_name);
    return world_end();
}
