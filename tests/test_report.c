/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on scripted timelines: known overlaps have exact figures, and the parts sum to the whole. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "report/report.h"

/* Times are small integers, so every sum is exact. */
#define CHECK_EQ_US(actual, expected)                                                                        \
    do {                                                                                                     \
        double actual_us = (actual), expected_us = (expected);                                               \
        check_count++;                                                                                       \
        if (actual_us != expected_us)                                                                        \
            CHECK_FAIL("%s is %.9g, expected %.9g", #actual, actual_us, expected_us);                        \
    } while (0)

static starlin__span_t gemm(uint64_t sequence, unsigned chunk, double ready, double start, double end)
{
    return (starlin__span_t){.kind = STARLIN__SPAN_GEMM,
                             .sequence = sequence,
                             .chunk = chunk,
                             .rows = 100,
                             .ready_us = 1000 + ready,
                             .launch_us = 1000 + start,
                             .start_us = 1000 + start,
                             .end_us = 1000 + end};
}

static starlin__span_t comm(uint64_t sequence, unsigned chunk, double ready, double start, double end)
{
    starlin__span_t span = gemm(sequence, chunk, ready, start, end);
    span.kind = STARLIN__SPAN_ALLREDUCE;
    span.lane = STARLIN__LANE_LINK;
    span.nbytes = 4096;
    return span;
}

static double parts(const starlin_report_step_t *step)
{
    double sum_us = 0;
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
        sum_us += step->exposed_us[cause];
    return sum_us;
}

static starlin_report_t *make(const starlin__report_input_t *input)
{
    starlin_report_t *report = NULL;
    CHECK_STATUS(starlin__report_make(input, &report), STARLIN_SUCCESS);
    return report;
}

/* The first collective starts when the next gemm ends, and the link is slower than planned. */
static void test_waited_for_core(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), gemm(1, 1, 1, 101, 201), comm(1, 0, 101, 201, 231),
                               comm(1, 1, 201, 231, 261)};
    double planned_us[] = {100, 100, 25, 25};
    starlin__report_input_t input = {.spans = spans,
                                     .nspans = 4,
                                     .planned_us = planned_us,
                                     .gemm_us = 200,
                                     .comm_us = 50,
                                     .launch_us = 10,
                                     .configuration = "cblas, model",
                                     .fallback = "because"};
    starlin_report_t *report = make(&input);
    CHECK_EQ_INT(report->nsteps, 1);
    CHECK_EQ_US(report->mean.time_us, 260);
    CHECK_EQ_US(report->mean.ideal_us, 200);
    CHECK_EQ_US(report->mean.hidden_pct, -20);
    CHECK_EQ_US(report->mean.beside_us, 0);
    /* started at once, the first collective would have been hidden: 30 less; both would take 25 */
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_CORE], 30);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_LINK], 5);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_TAIL], 25);
    CHECK_EQ_US(parts(&report->mean), 60);
    CHECK_EQ_INT(report->ncollectives, 2);
    CHECK_EQ_US(report->collectives[0].gap_us, 100);
    CHECK_EQ_INT(report->collectives[0].cause, STARLIN_CAUSE_CORE);
    CHECK_EQ_US(report->collectives[0].exposed_us, 30);
    CHECK_EQ_US(report->collectives[1].gap_us, 30);
    CHECK_EQ_INT(report->collectives[1].cause, STARLIN_CAUSE_QUEUE);
    CHECK_EQ_INT(report->nlanes, 2);
    CHECK(!report->lanes[0].is_link && report->lanes[1].is_link);
    CHECK_EQ_US(report->lanes[0].busy_us, 200);
    CHECK_EQ_US(report->lanes[0].idle_us, 60);
    CHECK_EQ_US(report->lanes[1].busy_us, 60);
    CHECK_EQ_INT(report->nchunks, 2);
    CHECK_EQ_INT(report->rows[1], 100);

    char text[4096], cut[32];
    size_t length = starlin_report_print(report, text, sizeof text);
    CHECK_EQ_INT(length, strlen(text));
    CHECK_CONTAINS(text, "waited for SMs or a core");
    CHECK_CONTAINS(text, "2 (rows 100,100)");
    CHECK_CONTAINS(text, "because");
    CHECK_CONTAINS(text, "cblas, model");
    CHECK_EQ_INT(starlin_report_print(report, cut, sizeof cut), length);
    CHECK_EQ_INT(strlen(cut), sizeof cut - 1);
    CHECK_EQ_INT(starlin_report_print(report, NULL, 0), length);

    const char *titles[] = {"eager", "starlin"};
    const starlin_report_t *reports[] = {report, report};
    length = starlin__report_compare(titles, reports, 2, text, sizeof text);
    CHECK_EQ_INT(length, strlen(text));
    CHECK_CONTAINS(
        text, "starlin        260.0    1.000        200.0    -20.0         60.0  waited for SMs or a core");
    starlin_report_destroy(report);
}

/* Everything hidden but the last collective; gemms slow down by a half while a collective runs. */
static void test_slowdown(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), comm(1, 0, 101, 101, 161), gemm(1, 1, 1, 101, 221),
                               comm(1, 1, 221, 221, 281)};
    double planned_us[] = {100, 60, 100, 60};
    starlin__report_input_t input = {
        .spans = spans, .nspans = 4, .planned_us = planned_us, .gemm_us = 190, .comm_us = 120};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(report->mean.time_us, 280);
    CHECK_EQ_US(report->mean.beside_us, 60);
    CHECK_EQ_US(report->mean.gemm_slowdown, 1.5); /* 40 us of work took 60 */
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_GEMM], 20);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_CHUNKING], 10);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_TAIL], 60);
    CHECK_EQ_US(parts(&report->mean), 90);
    CHECK_EQ_US(report->mean.hidden_pct, 25);
    starlin_report_destroy(report);

    /* without a plan, the gemm that ran alone tells the rate, and the link is taken as it was */
    input.planned_us = NULL;
    input.gemm_us = input.comm_us = 0;
    report = make(&input);
    CHECK_EQ_US(report->mean.gemm_slowdown, 1.5);
    CHECK_EQ_US(report->mean.gemm_us, 200);
    CHECK_EQ_US(report->mean.comm_us, 120);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_GEMM], 20);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_TAIL], 60);
    CHECK_EQ_US(parts(&report->mean), 80);
    starlin_report_destroy(report);
}

/* A late start within launch latency, a late peer, an input that came late, a cast at the end. */
static void test_small_causes(void)
{
    starlin__span_t cast = gemm(1, 1, 280, 280, 290);
    cast.kind = STARLIN__SPAN_CAST;
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), comm(1, 0, 101, 106, 136), gemm(1, 1, 120, 121, 221),
                               comm(1, 1, 221, 225, 280), cast};
    spans[4].lane = 0;
    double arrival_us[] = {0, 0, 0, 1250, 0};
    starlin__report_input_t input = {.spans = spans,
                                     .nspans = 5,
                                     .arrival_us = arrival_us,
                                     .gemm_us = 200,
                                     .comm_us = 60,
                                     .launch_us = 10};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(report->mean.time_us, 289);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_LAUNCH], 5); /* the first collective's are hidden */
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_IDLE], 19);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_PEER], 25);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_CAST], 10);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_CORE], 0);
    CHECK_EQ_US(parts(&report->mean), 89);
    CHECK_EQ_INT(report->collectives[0].cause, STARLIN_CAUSE_LAUNCH);
    CHECK_EQ_US(report->collectives[0].gap_us, 5);
    starlin_report_destroy(report);
}

/* Up to launch_us a late start is launch latency, beyond it a wait; for a gemm whose readiness nobody
 * recorded beyond it an idle gap. */
static void test_patience(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), gemm(1, 1, 1, 101, 201), comm(1, 0, 101, 151, 251),
                               comm(1, 1, 201, 251, 281)};
    starlin__report_input_t input = {
        .spans = spans, .nspans = 4, .gemm_us = 200, .comm_us = 130, .launch_us = 10};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_CORE], 40);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_LAUNCH], 10);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_TAIL], 30);
    CHECK_EQ_US(parts(&report->mean), 80);
    CHECK_EQ_INT(report->collectives[0].cause, STARLIN_CAUSE_CORE);
    starlin_report_destroy(report);

    starlin__span_t gap[] = {gemm(1, 0, 1, 1, 101), gemm(1, 1, 113, 113, 213)};
    input = (starlin__report_input_t){.spans = gap, .nspans = 2, .gemm_us = 200, .launch_us = 10};
    report = make(&input);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_LAUNCH], 10);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_IDLE], 2);
    CHECK_EQ_US(report->mean.comm_us, 0);
    starlin_report_destroy(report);
}

/* A slow link: the collectives decide, and the first gemm is what cannot be hidden. */
static void test_comm_bound(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 51), comm(1, 0, 51, 51, 151), gemm(1, 1, 1, 51, 101),
                               comm(1, 1, 101, 151, 251)};
    starlin__report_input_t input = {.spans = spans, .nspans = 4, .gemm_us = 100, .comm_us = 200};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(report->mean.ideal_us, 200);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_HEAD], 50);
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_TAIL], 0);
    CHECK_EQ_US(parts(&report->mean), 50);
    CHECK_EQ_US(report->mean.hidden_pct, 50);
    CHECK_EQ_INT(report->collectives[1].cause, STARLIN_CAUSE_QUEUE);
    starlin_report_destroy(report);
}

/* Steps: separate in time, or a fixed number of operators; a chain of layers waits for its inputs. */
static void test_steps(void)
{
    starlin__span_t spans[] = {gemm(7, 0, 1, 1, 11),       comm(7, 0, 11, 11, 16),
                               gemm(8, 0, 16, 16, 26),     comm(8, 0, 26, 26, 31),
                               gemm(9, 0, 101, 101, 111),  comm(9, 0, 111, 111, 118),
                               gemm(10, 0, 118, 118, 130), comm(10, 0, 130, 130, 135)};
    starlin__report_input_t input = {.spans = spans, .nspans = 8};
    starlin_report_t *report = make(&input);
    CHECK_EQ_INT(report->nsteps, 4);
    CHECK_EQ_US(report->min_us, 15);
    CHECK_EQ_US(report->max_us, 17);
    CHECK_EQ_US(report->median_us, 16);
    CHECK_EQ_US(report->mean.time_us, 16);
    CHECK_EQ_US(report->mean.gemm_us, 10.5);
    CHECK_EQ_US(report->mean.comm_us, 5.5);
    CHECK_EQ_US(report->mean.hidden_pct, 0); /* (10.5 + 5.5 - 16) / 5.5 */
    CHECK_EQ_US(report->mean.exposed_us[STARLIN_CAUSE_TAIL], 5.5);
    starlin_report_destroy(report);

    input.operators_per_step = 2;
    input.gemm_us = 10;
    input.comm_us = 5;
    report = make(&input);
    CHECK_EQ_INT(report->nsteps, 2);
    CHECK_EQ_INT(report->steps[1].first_sequence, 9);
    CHECK_EQ_INT(report->steps[1].noperators, 2);
    CHECK_EQ_US(report->steps[0].time_us, 30);
    CHECK_EQ_US(report->steps[0].ideal_us, 20);
    CHECK_EQ_US(report->steps[0].exposed_us[STARLIN_CAUSE_TAIL], 10);
    CHECK_EQ_US(report->steps[1].time_us, 34);
    CHECK_EQ_US(parts(&report->steps[1]), 14);
    CHECK_EQ_US(parts(&report->mean), report->mean.time_us - report->mean.ideal_us);
    starlin_report_destroy(report);
}

static void test_refused(void)
{
    starlin__span_t span = gemm(1, 0, 1, 1, 11);
    starlin__report_input_t input = {.spans = &span, .nspans = 0};
    starlin_report_t *report = NULL;
    CHECK_STATUS(starlin__report_make(&input, &report), STARLIN_ERR_INVALID);
    input.nspans = 1;
    span.end_us = 5;
    CHECK_STATUS(starlin__report_make(&input, &report), STARLIN_ERR_INVALID);
    span.end_us = NAN;
    CHECK_STATUS(starlin__report_make(&input, &report), STARLIN_ERR_INVALID);
    span = gemm(1, 0, 1, 1, 11);
    for (uint64_t i = 1; i < 20; i++) {
        starlin__alloc_fail_at = starlin__alloc_count + i;
        starlin_status_t status = starlin__report_make(&input, &report);
        starlin__alloc_fail_at = 0;
        if (status == STARLIN_SUCCESS)
            break;
        CHECK_STATUS(status, STARLIN_ERR_NO_MEMORY);
        CHECK(report == NULL);
    }
    CHECK(report != NULL); /* with all its memory it works; a gemm alone is all ideal */
    CHECK_EQ_US(report->mean.time_us, report->mean.ideal_us);
    CHECK_EQ_US(report->mean.hidden_pct, 0);
    starlin_report_destroy(report);
    CHECK(starlin_cause_name(STARLIN_NCAUSES) == NULL && starlin_cause_text((starlin_cause_t)-1) == NULL);
    CHECK_EQ_STR(starlin_cause_name(STARLIN_CAUSE_TAIL), "tail");
}

/* Random timelines of several workers: whatever happened, the parts sum to the whole. */
static void test_random(void)
{
    enum { NOPERATORS = 40, NCHUNKS = 7, NLANES = 3 };
    static starlin__span_t spans[NOPERATORS * NCHUNKS * 2];
    static double planned_us[NOPERATORS * NCHUNKS * 2], arrival_us[NOPERATORS * NCHUNKS * 2];
    srand(1);
    double lane_us[NLANES] = {0}, link_us = 0;
    size_t n = 0;
    for (uint64_t sequence = 1; sequence <= NOPERATORS; sequence++)
        for (unsigned chunk = 0; chunk < NCHUNKS; chunk++) {
            unsigned lane = (unsigned)rand() % NLANES;
            double start = lane_us[lane] + rand() % 30, end = start + 20 + rand() % 80;
            lane_us[lane] = end;
            planned_us[n] = 20 + rand() % 80;
            spans[n] = gemm(sequence, chunk, start - rand() % 20, start, end);
            spans[n++].lane = lane;
            double from = (link_us > end ? link_us : end) + rand() % 50;
            link_us = from + 10 + rand() % 60;
            planned_us[n] = rand() % 50;
            arrival_us[n] = rand() % 2 ? 1000 + from + rand() % 30 : 0;
            spans[n++] = comm(sequence, chunk, end, from, link_us);
        }
    starlin__report_input_t input = {.spans = spans,
                                     .nspans = n,
                                     .planned_us = planned_us,
                                     .arrival_us = arrival_us,
                                     .operators_per_step = 3,
                                     .launch_us = 5};
    starlin_report_t *report = make(&input);
    for (size_t i = 0; i < report->nsteps; i++) {
        const starlin_report_step_t *step = &report->steps[i];
        CHECK(fabs(parts(step) - (step->time_us - step->ideal_us)) < 1e-6);
        for (int cause = 0; cause < STARLIN_CAUSE_GEMM; cause++)
            CHECK(step->exposed_us[cause] >= -1e-6);
    }
    CHECK(fabs(parts(&report->mean) - (report->mean.time_us - report->mean.ideal_us)) < 1e-6);
    CHECK_EQ_INT(report->nlanes, NLANES + 1);
    CHECK_EQ_INT(report->ncollectives, n / 2);
    starlin_report_destroy(report);
}

int main(void)
{
    test_waited_for_core();
    test_slowdown();
    test_small_causes();
    test_patience();
    test_comm_bound();
    test_steps();
    test_refused();
    test_random();
    return CHECK_RESULT();
}
