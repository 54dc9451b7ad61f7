/* SPDX-License-Identifier: BSD-3-Clause */
/* Planning over numbers of thread blocks, the room that small gemms leave, and the lists of a rehearsal. */
#include "check.h"
#include "plan/planner.h"
#include "plan/rehearse_lists.h"

#include <math.h>
#include <string.h>

enum { MOST = 9 };

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/* One microsecond for each row of a gemm, comm_us for the collective of all rows. */
static starlin__plan_input_t line_input(int64_t m, double comm_us, unsigned ctas)
{
    starlin__plan_input_t input = {
        .m = m, .nbytes_per_row = 2.0, .row_quantum = 1, .min_gain = 0.01, .ctas = ctas};

    starlin__curve_add(&input.gemm, 0.0, 0.0);
    starlin__curve_add(&input.gemm, (double)m, (double)m);
    starlin__curve_add(&input.comm, 0.0, 0.0);
    starlin__curve_add(&input.comm, 2.0 * (double)m, comm_us);
    input.comm_delay_us = 1e9;
    return input;
}

/* Two gemms of 100 us, two collectives of 50: one that has to wait for the next gemm's end, or not. */
static void check_room(void)
{
    const int64_t rows[] = {100, 100};
    starlin__plan_input_t input = line_input(200, 100.0, 0);

    input.gemm_slowdown = 2.0;
    CHECK(is_near(starlin__plan_simulate(&input, rows, 2), 300.0));
    input.prompt_rows = 99.0;
    CHECK(is_near(starlin__plan_simulate(&input, rows, 2), 300.0));
    input.prompt_rows = 100.0;
    CHECK(is_near(starlin__plan_simulate(&input, rows, 2), 250.0));
    input.wait_us = 7.0; /* once, however many chunks */
    CHECK(is_near(starlin__plan_simulate(&input, rows, 2), 257.0));
}

/* A gemm that yields has the collective before it start first, and starts later itself. */
static void check_yields(void)
{
    const int64_t rows[] = {100, 100}, small[] = {100, 60};
    starlin__plan_input_t input = line_input(200, 100.0, 0);

    CHECK(starlin__plan_is_chancy(&input, rows, 2));
    input.yield_rows = 99.0;
    input.yield_us = 10.0;
    CHECK(is_near(starlin__plan_simulate(&input, rows, 2), 260.0));
    CHECK(!starlin__plan_is_chancy(&input, rows, 2));
    CHECK(starlin__plan_is_chancy(&input, small, 2));
    input.prompt_rows = 60.0;
    CHECK(!starlin__plan_is_chancy(&input, small, 2));
    input.yield_rows = 100.0; /* of more rows than this */
    CHECK(starlin__plan_is_chancy(&input, rows, 2));
}

/* Each collective has a latency of 150 us: larger chunks are better, if only their gemms leave room. Without
 * latency pieces bring nothing. */
static void check_pieces(void)
{
    starlin__costs_t costs = {.ninputs = 2,
                              .inputs = {line_input(1600, 800.0, 0), line_input(1600, 800.0, 0)}};
    starlin__plan_t plan, second;

    for (size_t i = 0; i < 2; i++) {
        costs.inputs[i].prompt_rows = 100.0;
        costs.inputs[i].row_quantum = 100;
    }
    costs.inputs[1].piece_rows = 100;
    starlin__plan_choose_ctas(&costs, &plan, &second);
    CHECK_EQ_INT(plan.piece_rows, 0);
    CHECK(plan.nchunks > 4);
    for (size_t i = 0; i < 2; i++) {
        costs.inputs[i].comm.npoints = 0;
        starlin__curve_add(&costs.inputs[i].comm, 0.0, 150.0);
        starlin__curve_add(&costs.inputs[i].comm, 3200.0, 950.0);
    }
    starlin__plan_choose_ctas(&costs, &plan, &second);
    CHECK_EQ_INT(plan.piece_rows, 100);
    CHECK(plan.nchunks > 1 && plan.rows[0] > 100);
    CHECK(starlin__costs_input(&costs, 0, 100) == &costs.inputs[1]);
}

/* 3 x 50 + 50 rows with multiples of 40 preferred; one chunk of any size is what it is. */
static void check_uneven(void)
{
    const int64_t rows[] = {50, 80, 30, 40}, one[] = {200};
    starlin__plan_input_t input = line_input(200, 0.0, 0);

    input.even_rows = 40;
    input.uneven_slowdown = 1.1;
    CHECK(is_near(starlin__plan_simulate(&input, rows, 4), 55.0 + 80.0 + 30.0 + 40.0));
    input.even_rows = 150;
    CHECK(is_near(starlin__plan_simulate(&input, one, 1), 200.0));
}

static void check_inputs(void)
{
    const int64_t rows[] = {50, 50};
    starlin__costs_t costs = {
        .ninputs = 3,
        .inputs = {line_input(100, 80.0, 0), line_input(100, 160.0, 2), line_input(100, 79.9, 24)}};
    unsigned ctas = 77;

    CHECK(starlin__costs_input(&costs, 2, 0) == &costs.inputs[1]);
    CHECK(starlin__costs_input(&costs, 3, 0) == &costs.inputs[0]);
    CHECK(is_near(starlin__plan_best_ctas(&costs, rows, 2, &ctas),
                  starlin__plan_simulate(&costs.inputs[0], rows, 2)));
    CHECK_EQ_INT(ctas, 0); /* a tenth of a microsecond is no reason */
    costs.inputs[2] = line_input(100, 40.0, 24);
    (void)starlin__plan_best_ctas(&costs, rows, 2, &ctas);
    CHECK_EQ_INT(ctas, 24);
}

/* With few CTAs collectives are slower, but leave the gemms alone: worth it only where they can be hidden. */
static void check_choice(void)
{
    starlin__costs_t costs = {.ninputs = 2,
                              .inputs = {line_input(1000, 200.0, 0), line_input(1000, 400.0, 2)}};
    starlin__plan_t plan, second;

    costs.inputs[0].gemm_slowdown = 1.5;
    costs.inputs[0].comm_delay_us = costs.inputs[1].comm_delay_us = 0.0;
    starlin__plan_choose_ctas(&costs, &plan, &second);
    CHECK_EQ_INT(plan.ctas, 2);
    CHECK(second.ctas == 0 && second.nchunks > 1 && second.predicted_us >= plan.predicted_us);
    CHECK(plan.nchunks > 1);
    CHECK(is_near(plan.serial_us, 1200.0));
    CHECK(plan.predicted_us < 1100.0);

    /* nothing can be hidden: the fastest collective, in one piece */
    for (size_t i = 0; i < 2; i++)
        costs.inputs[i].comm_uses_core = true;
    starlin__plan_choose_ctas(&costs, &plan, &second);
    CHECK_EQ_INT(plan.ctas, 0);
    CHECK_EQ_INT(plan.nchunks, 1);
    CHECK(is_near(plan.predicted_us, 1200.0));
    CHECK(plan.reason[0] != '\0');
}

/* Chunks of the second number gain against their own single chunk, and lose against the first one's. */
static void check_against_fastest(void)
{
    starlin__costs_t costs = {.ninputs = 2,
                              .inputs = {line_input(1000, 10.0, 0), line_input(1000, 100.0, 2)}};
    starlin__plan_t plan, second;

    costs.inputs[0].task_us = 50.0;
    costs.inputs[1].comm_delay_us = 0.0;
    costs.inputs[1].task_us = 9.0;
    starlin__plan_choose(&costs.inputs[1], &plan);
    CHECK(plan.nchunks > 1);
    costs.inputs[0].task_us = 0.0;
    starlin__plan_choose_ctas(&costs, &plan, &second);
    CHECK_EQ_INT(plan.nchunks, 1);
    CHECK_EQ_INT(plan.ctas, 0);
    CHECK_EQ_INT(plan.rows[0], 1000);
    CHECK(is_near(plan.predicted_us, 1010.0));
}

static bool has_list(const starlin__plan_t *plans, size_t count, unsigned ctas, size_t nchunks, int64_t rows)
{
    for (size_t i = 0; i < count; i++) {
        bool is_equal = plans[i].ctas == ctas && plans[i].nchunks == nchunks;
        for (size_t j = 0; is_equal && j < nchunks; j++)
            is_equal = plans[i].rows[j] == rows;
        if (is_equal)
            return true;
    }
    return false;
}

/* What holds for every set of lists. */
static size_t make_lists(const starlin__costs_t *costs, bool on_device, size_t limit, starlin__plan_t *plans)
{
    starlin__plan_t plan, second;
    size_t count;

    starlin__plan_choose_ctas(costs, &plan, &second);
    count = starlin__rehearse_lists(costs, on_device, &plan, &second, limit, plans);
    CHECK(count >= 1 && count <= limit);
    CHECK_EQ_INT(plans[0].nchunks, 1);
    for (size_t i = 0; i < count; i++) {
        int64_t total = 0;
        for (size_t j = 0; j < plans[i].nchunks; j++) {
            CHECK(plans[i].rows[j] >= 1);
            total += plans[i].rows[j];
        }
        CHECK_EQ_INT(total, costs->inputs[0].m);
        CHECK(starlin__costs_input(costs, plans[i].ctas, plans[i].piece_rows)->ctas == plans[i].ctas);
        for (size_t j = 0; j < i; j++)
            CHECK(plans[i].ctas != plans[j].ctas || plans[i].nchunks != plans[j].nchunks ||
                  memcmp(plans[i].rows, plans[j].rows, plans[i].nchunks * sizeof plans[i].rows[0]) != 0);
    }
    return count;
}

/* As on an H200: 132 processors, 32 tiles for each 128 rows. */
static starlin__costs_t device_costs(int64_t m, unsigned nlayers)
{
    static const unsigned ctas[] = {0, 2, 4, 16};
    starlin__costs_t costs = {.ninputs = 4};

    for (size_t i = 0; i < 4; i++) {
        unsigned blocks = ctas[i] != 0 ? ctas[i] : 8;
        costs.inputs[i] = line_input(m, 0.3 * (double)m * (ctas[i] == 2 ? 2.5 : 1.0), ctas[i]);
        costs.inputs[i].prompt_rows = (double)(128 * ((132 - blocks) / 32));
        costs.inputs[i].gemm_slowdown = 1.0 + blocks / 132.0;
        costs.inputs[i].row_quantum = m >= 2048 ? 256 : 128;
        costs.inputs[i].even_rows = m >= 4096 ? 512 : 0;
        costs.inputs[i].uneven_slowdown = 1.05;
        costs.inputs[i].nlayers = nlayers;
    }
    return costs;
}

static void check_lists(void)
{
    starlin__costs_t costs = device_costs(8192, 1);
    starlin__plan_t plans[MOST];
    size_t count = make_lists(&costs, true, MOST, plans);

    CHECK(has_list(plans, count, 4, 16, 512));
    CHECK(has_list(plans, count, 0, 16, 512));
    CHECK(has_list(plans, count, 0, 4, 2048));
    costs = device_costs(8192, 3);
    count = make_lists(&costs, true, MOST, plans);
    CHECK(has_list(plans, count, 0, 4, 2048) && has_list(plans, count, 4, 8, 1024) &&
          has_list(plans, count, 2, 16, 512));
    costs.ninputs = 1; /* no choice of CTAs: no list asks for any */
    count = make_lists(&costs, true, MOST, plans);
    CHECK(count > 2);
    costs = device_costs(1024, 1);
    count = make_lists(&costs, true, MOST, plans);
    CHECK(has_list(plans, count, 4, 2, 512));
    for (int64_t m = 1; m <= 3000; m = m * 3 / 2 + 1) {
        costs = device_costs(m, m % 2 ? 1 : 3);
        (void)make_lists(&costs, true, MOST, plans);
        (void)make_lists(&costs, false, MOST, plans);
        (void)make_lists(&costs, true, 2, plans);
    }
}

int main(void)
{
    check_room();
    check_yields();
    check_pieces();
    check_uneven();
    check_inputs();
    check_choice();
    check_against_fastest();
    check_lists();
    return CHECK_RESULT();
}
