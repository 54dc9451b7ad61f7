/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner's parts on inputs with known answers: curves, simulation, equal cuts, fallbacks. */
#include "check.h"
#include "plan/planner.h"

#include <math.h>

#define CHECK_NEAR(actual, expected)                                                                         \
    do {                                                                                                     \
        double actual__ = (actual), expected__ = (expected);                                                 \
        check_count++;                                                                                       \
        if (!(fabs(actual__ - expected__) <= 1e-9 * (1 + fabs(expected__))))                                 \
            CHECK_FAIL("%s is %.12g, expected %.12g", #actual, actual__, expected__);                        \
    } while (0)

static void test_curve(void)
{
    starlin__curve_t curve = {0};
    CHECK_NEAR(starlin__curve_eval(&curve, 5), 0);
    CHECK(starlin__curve_add(&curve, 100, 10));
    CHECK_NEAR(starlin__curve_eval(&curve, 1), 10);
    CHECK_NEAR(starlin__curve_eval(&curve, 200), 20); /* one point: proportional */
    CHECK(starlin__curve_add(&curve, 400, 70));
    CHECK(starlin__curve_add(&curve, 200, 30)); /* out of order */
    CHECK_NEAR(starlin__curve_eval(&curve, 100), 10);
    CHECK_NEAR(starlin__curve_eval(&curve, 150), 20);
    CHECK_NEAR(starlin__curve_eval(&curve, 300), 50);
    CHECK_NEAR(starlin__curve_eval(&curve, 400), 70);
    CHECK_NEAR(starlin__curve_eval(&curve, 500), 90);
    CHECK(starlin__curve_add(&curve, 400, 60)); /* replaces */
    CHECK_EQ_INT(curve.npoints, 3);
    CHECK_NEAR(starlin__curve_eval(&curve, 400), 60);
    CHECK(starlin__curve_add(&curve, 500, 40)); /* a falling end is noise: flat beyond it */
    CHECK_NEAR(starlin__curve_eval(&curve, 1000), 40);
    CHECK(!starlin__curve_add(&curve, -1, 1));
    CHECK(!starlin__curve_add(&curve, 1, NAN));
    CHECK(!starlin__curve_add(&curve, INFINITY, 1));
    CHECK_EQ_INT(curve.npoints, 4);
    for (size_t i = curve.npoints; i < STARLIN__CURVE_POINTS; i++)
        CHECK(starlin__curve_add(&curve, 1000 + (double)i, 1));
    CHECK(!starlin__curve_add(&curve, 1, 1));
    CHECK(starlin__curve_add(&curve, 100, 11)); /* full, but there already */
    CHECK_NEAR(starlin__curve_eval(&curve, 100), 11);
}

/* gemm: 10 us a row; collective: `comm` us a row of one byte. */
static starlin__plan_input_t linear_input(int64_t m, double gemm, double comm)
{
    starlin__plan_input_t input = {.m = m, .nbytes_per_row = 1, .row_quantum = 1, .min_gain = 0.01};
    starlin__curve_add(&input.gemm, 0, 0);
    starlin__curve_add(&input.gemm, 1, gemm);
    starlin__curve_add(&input.comm, 0, 0);
    starlin__curve_add(&input.comm, 1, comm);
    input.gemm_slowdown = input.comm_slowdown = 1;
    return input;
}

static void test_simulate(void)
{
    starlin__plan_input_t input = linear_input(4, 10, 5);
    const int64_t one[] = {4}, two[] = {2, 2}, four[] = {1, 1, 1, 1}, shrinking[] = {3, 1};
    CHECK_NEAR(starlin__plan_simulate(&input, one, 1), 60);
    CHECK_NEAR(starlin__plan_simulate(&input, two, 2), 50);
    CHECK_NEAR(starlin__plan_simulate(&input, four, 4), 45);
    CHECK_NEAR(starlin__plan_simulate(&input, shrinking, 2), 50); /* 30 + 15 + 5: the second one queues */
    input.task_us = 1;
    CHECK_NEAR(starlin__plan_simulate(&input, one, 1), 61);
    CHECK_NEAR(starlin__plan_simulate(&input, four, 4), 49);

    input = linear_input(4, 5, 10); /* the link is the bottleneck */
    CHECK_NEAR(starlin__plan_simulate(&input, four, 4), 45);
    CHECK_NEAR(starlin__plan_simulate(&input, (const int64_t[]){1, 3}, 2), 50); /* waits for gemm 1 */
}

static void test_simulate_contention(void)
{
    const int64_t two[] = {2, 2};
    starlin__plan_input_t input = linear_input(4, 10, 5);
    /* gemm 0: 0-20. Then both: the collective needs 10 x 1.5 = 15, until 35; the gemm has done 15 / 1.25 = 12
     * of 20, the rest alone until 43; then 10 */
    input.gemm_slowdown = 1.25;
    input.comm_slowdown = 1.5;
    CHECK_NEAR(starlin__plan_simulate(&input, two, 2), 53);
    /* starts at 32; gemm 1 then has 8 left and ends at 42, where the collective has done 10 / 1.5 of its 10
     */
    input.comm_delay_us = 12;
    CHECK_NEAR(starlin__plan_simulate(&input, two, 2), 42 + (10 - 10 / 1.5) + 10);
    /* never later than the end of the gemm that it waits for */
    input.comm_delay_us = 1000;
    CHECK_NEAR(starlin__plan_simulate(&input, two, 2), 60);
    /* from the end of gemm 1 (30) on beside gemm 2, which ends at 42.5 */
    CHECK_NEAR(starlin__plan_simulate(&input, (const int64_t[]){2, 1, 1}, 3), 42.5 + (10 - 12.5 / 1.5) + 10);
}

static void test_shared_core(void)
{
    starlin__plan_input_t input = linear_input(64, 10, 5);
    input.comm_uses_core = true;
    int64_t rows[STARLIN__MAX_CHUNKS];
    for (size_t count = 1; count <= 64; count *= 2) {
        starlin__plan_equal(64, count, rows);
        CHECK_NEAR(starlin__plan_simulate(&input, rows, count), 64 * 15); /* work is conserved */
    }
    starlin__plan_t plan;
    starlin__plan_choose(&input, &plan);
    CHECK_EQ_INT(plan.nchunks, 1);
    CHECK_CONTAINS(plan.reason, "needs the cores that gemms run on");
}

static void test_equal(void)
{
    int64_t rows[STARLIN__MAX_CHUNKS];
    CHECK_EQ_INT(starlin__plan_equal(37, 5, rows), 5);
    CHECK_EQ_INT(rows[0], 8);
    CHECK_EQ_INT(rows[1], 8);
    CHECK_EQ_INT(rows[2], 7);
    CHECK_EQ_INT(rows[4], 7);
    CHECK_EQ_INT(starlin__plan_equal(3, 8, rows), 3);
    CHECK_EQ_INT(rows[2], 1);
    CHECK_EQ_INT(starlin__plan_equal(1, 1, rows), 1);
    CHECK_EQ_INT(starlin__plan_equal(7, 0, rows), 1);
    CHECK_EQ_INT(rows[0], 7);
    CHECK_EQ_INT(starlin__plan_equal(INT64_MAX, 100000, rows), STARLIN__MAX_CHUNKS);
}

static void one_chunk(const starlin__plan_input_t *input, const char *why)
{
    starlin__plan_t plan;
    starlin__plan_choose(input, &plan);
    CHECK_EQ_INT(plan.nchunks, 1);
    CHECK_EQ_INT(plan.rows[0], input->m);
    CHECK_CONTAINS(plan.reason, why);
    CHECK_NEAR(plan.predicted_us, plan.serial_us);
}

static void test_fallback(void)
{
    starlin__plan_input_t input = linear_input(1, 10, 5);
    one_chunk(&input, "1 row cannot be cut");
    input = linear_input(100, 10, 5);
    input.row_quantum = 128;
    one_chunk(&input, "100 rows cannot be cut (chunks are multiples of 128)");
    input = linear_input(100, 10, 0);
    one_chunk(&input, "the collective takes no time");
    input = linear_input(100, 0, 5);
    one_chunk(&input, "the gemm takes no time");
    input = linear_input(100, 10, 0.001);
    one_chunk(&input, "the link is idle most of the time: chunking would take 1000 us, one chunk 1000 us");
    input = linear_input(100, 0.01, 10);
    one_chunk(&input, "the link is the bottleneck");
    input = linear_input(4, 10, 10);
    input.task_us = 100;
    one_chunk(&input, "chunks cost more than they hide: chunking would take ");
    input = linear_input(64, 10, 10); /* slow links have a latency, small chunks pay it each */
    input.comm.npoints = 0;
    starlin__curve_add(&input.comm, 0, 900);
    starlin__curve_add(&input.comm, 64, 1000);
    one_chunk(&input, "one chunk 1640 us: gain below 1.0%");
}

static void test_extreme(void)
{
    starlin__plan_t plan;
    starlin__plan_input_t input = linear_input((int64_t)1 << 40, 1e-3, 1e-3);
    starlin__plan_choose(&input, &plan);
    CHECK(plan.nchunks > 1);
    CHECK(plan.predicted_us < 0.6 * plan.serial_us);
    input.m = INT64_MAX;
    input.row_quantum = 512;
    starlin__plan_choose(&input, &plan);
    int64_t left = input.m;
    for (size_t i = 0; i < plan.nchunks; i++)
        left -= plan.rows[i];
    CHECK_EQ_INT(left, 0);
    input.row_quantum = INT64_MAX;
    one_chunk(&input, "cannot be cut");
    input = linear_input(1000, 10, 5);
    input.gemm.time_us[1] = NAN; /* a broken curve must not hang */
    input.comm.time_us[1] = INFINITY;
    starlin__plan_choose(&input, &plan);
    CHECK(plan.nchunks >= 1);
}

int main(void)
{
    test_curve();
    test_simulate();
    test_simulate_contention();
    test_shared_core();
    test_equal();
    test_fallback();
    test_extreme();
    return CHECK_RESULT();
}
