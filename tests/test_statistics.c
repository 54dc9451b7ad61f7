/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of the tool's rows: order statistics, ideal time, hidden share. */
#include "results.h"

#include "check.h"

static void test_order(void)
{
    double one[] = {5}, four[] = {4, 1, 3, 2}, many[200];
    perf_statistics_t figures = perf_statistics(one, 1);
    CHECK(figures.min == 5 && figures.median == 5 && figures.mean == 5 && figures.p99 == 5 &&
          figures.max == 5);
    figures = perf_statistics(four, 4);
    CHECK(figures.min == 1 && figures.median == 2.5 && figures.mean == 2.5 && figures.p99 == 4 &&
          figures.max == 4);
    for (int i = 0; i < 200; i++)
        many[i] = 200 - i;
    figures = perf_statistics(many, 200);
    CHECK(figures.min == 1 && figures.median == 100.5 && figures.p99 == 198 && figures.max == 200);
    CHECK(figures.spread == 99);          /* 150 - 51 */
    figures = perf_statistics(many, 101); /* sorted by now */
    CHECK(figures.median == 51 && figures.p99 == 100);
}

static void test_row(void)
{
    double hidden_pct = 0;
    perf_row_t row = {.time_us = {.median = 105}, .serial_us = 140, .gemm_us = 100, .comm_us = 40};
    CHECK(perf_row_ideal_us(&row) == 100);
    CHECK(perf_row_hidden_pct(&row, &hidden_pct));
    CHECK(hidden_pct == 87.5);
    row.time_us.spread = 41; /* noise as large as what could be hidden */
    CHECK(!perf_row_hidden_pct(&row, &hidden_pct));
    row.time_us.spread = 39;
    CHECK(perf_row_hidden_pct(&row, &hidden_pct));
    row.time_us.spread = 0;
    row.comm_us = 0.9; /* nothing to hide */
    CHECK(!perf_row_hidden_pct(&row, &hidden_pct));
    row.comm_us = 1.1;
    CHECK(perf_row_hidden_pct(&row, &hidden_pct));
    row.comm_us = 0;
    CHECK(!perf_row_hidden_pct(&row, &hidden_pct));
    row.comm_us = PERF_NOT_MEASURED;
    CHECK(!perf_row_hidden_pct(&row, &hidden_pct));
    CHECK(perf_row_ideal_us(&row) < 0);
    row.comm_us = 400;
    CHECK(perf_row_ideal_us(&row) == 400);
    row.serial_us = PERF_NOT_MEASURED;
    CHECK(!perf_row_hidden_pct(&row, &hidden_pct));
}

static void test_similar(void)
{
    CHECK_EQ_INT(perf_similar_distance("", ""), 0);
    CHECK_EQ_INT(perf_similar_distance("", "abc"), 3);
    CHECK_EQ_INT(perf_similar_distance("weight", "wieght"), 2);
    CHECK_EQ_INT(perf_similar_distance("kitten", "sitting"), 3);
}

int main(void)
{
    test_order();
    test_row();
    test_similar();
    return CHECK_RESULT();
}
