/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on scripted timelines: known overlaps have exact figures, and the parts sum to the whole. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
    span.kind = STARLIN__SPAN_COLLECTIVE;
    span.lane = STARLIN__LANE_LINK;
    span.nbytes = 4096;
    return span;
}

static starlin_report_step_t step(const starlin_report_t *report, size_t i)
{
    starlin_report_step_t out = {.struct_size = sizeof out};
    CHECK_STATUS(starlin_report_step(report, i, &out), STARLIN_SUCCESS);
    return out;
}

static starlin_report_step_t mean(const starlin_report_t *report)
{
    return step(report, STARLIN_REPORT_MEAN);
}

static starlin_report_summary_t summary(const starlin_report_t *report)
{
    starlin_report_summary_t out = {.struct_size = sizeof out};
    CHECK_STATUS(starlin_report_summary(report, &out), STARLIN_SUCCESS);
    return out;
}

static starlin_report_collective_t collective(const starlin_report_t *report, size_t i)
{
    starlin_report_collective_t out = {.struct_size = sizeof out};
    CHECK_STATUS(starlin_report_collective(report, i, &out), STARLIN_SUCCESS);
    return out;
}

static starlin_report_lane_t lane(const starlin_report_t *report, size_t i)
{
    starlin_report_lane_t out = {.struct_size = sizeof out};
    CHECK_STATUS(starlin_report_lane(report, i, &out), STARLIN_SUCCESS);
    return out;
}

static double exposed(const starlin_report_t *report, starlin_cause_t cause)
{
    return starlin_report_exposed_us(report, STARLIN_REPORT_MEAN, cause);
}

static double parts(const starlin_report_t *report, size_t i)
{
    double sum_us = 0;
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
        sum_us += starlin_report_exposed_us(report, i, (starlin_cause_t)cause);
    return sum_us;
}

#define MEAN STARLIN_REPORT_MEAN

static void plan(starlin__span_t *spans, const double *planned_us, size_t n)
{
    for (size_t i = 0; i < n; i++)
        spans[i].planned_us = planned_us != NULL ? planned_us[i] : 0;
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
    plan(spans, (double[]){100, 100, 25, 25}, 4);
    starlin__report_input_t input = {.spans = spans,
                                     .nspans = 4,
                                     .options = {.compute_us = 200, .comm_us = 50, .launch_us = 10},
                                     .configuration = "cblas, model",
                                     .fallback = "because"};
    starlin_report_t *report = make(&input);
    CHECK_EQ_INT(starlin_report_nsteps(report), 1);
    CHECK_EQ_US(mean(report).time_us, 260);
    CHECK_EQ_US(mean(report).ideal_us, 200);
    CHECK_EQ_US(mean(report).hidden_pct, -20);
    CHECK_EQ_US(mean(report).beside_us, 0);
    /* started at once, the first collective would have been hidden: 30 less; both would take 25 */
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_CORE), 30);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_LINK), 5);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 25);
    CHECK_EQ_US(parts(report, MEAN), 60);
    CHECK_EQ_INT(starlin_report_ncollectives(report), 2);
    CHECK_EQ_US(collective(report, 0).gap_us, 100);
    CHECK_EQ_INT(collective(report, 0).cause, STARLIN_CAUSE_CORE);
    CHECK_EQ_US(collective(report, 0).exposed_us, 30);
    CHECK_EQ_US(collective(report, 1).gap_us, 30);
    CHECK_EQ_INT(collective(report, 1).cause, STARLIN_CAUSE_QUEUE);
    CHECK_EQ_INT(starlin_report_nlanes(report), 2);
    CHECK(!lane(report, 0).is_link && lane(report, 1).is_link);
    CHECK_EQ_US(lane(report, 0).busy_us, 200);
    CHECK_EQ_US(lane(report, 0).idle_us, 60);
    CHECK_EQ_US(lane(report, 1).busy_us, 60);
    CHECK_EQ_INT(summary(report).nchunks, 2);
    CHECK_EQ_INT(starlin_report_chunk_rows(report, 1), 100);

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
    CHECK_EQ_INT(starlin_report_print(NULL, cut, sizeof cut), 0);
    CHECK_EQ_STR(cut, "");
    CHECK_EQ_INT(starlin_report_print(NULL, NULL, 0), 0);
    starlin_report_destroy(report);
}

/* Everything hidden but the last collective; gemms slow down by a half while a collective runs. */
static void test_slowdown(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), comm(1, 0, 101, 101, 161), gemm(1, 1, 1, 101, 221),
                               comm(1, 1, 221, 221, 281)};
    plan(spans, (double[]){100, 60, 100, 60}, 4);
    starlin__report_input_t input = {
        .spans = spans, .nspans = 4, .options = {.compute_us = 190, .comm_us = 120}};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(mean(report).time_us, 280);
    CHECK_EQ_US(mean(report).beside_us, 60);
    CHECK_EQ_US(mean(report).gemm_slowdown, 1.5); /* 40 us of work took 60 */
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_GEMM), 20);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_CHUNKING), 10);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 60);
    CHECK_EQ_US(parts(report, MEAN), 90);
    CHECK_EQ_US(mean(report).hidden_pct, 25);
    starlin_report_destroy(report);

    /* without a plan, the gemm that ran alone tells the rate, and the link is taken as it was */
    plan(spans, NULL, 4);
    input.options.compute_us = input.options.comm_us = 0;
    report = make(&input);
    CHECK_EQ_US(mean(report).gemm_slowdown, 1.5);
    CHECK_EQ_US(mean(report).compute_us, 200);
    CHECK_EQ_US(mean(report).comm_us, 120);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_GEMM), 20);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 60);
    CHECK_EQ_US(parts(report, MEAN), 80);
    starlin_report_destroy(report);
}

/* A late start within launch latency, a late peer, an input that came late, row-wise work at the end. */
static void test_small_causes(void)
{
    starlin__span_t rowwise = gemm(1, 1, 280, 280, 290);
    rowwise.kind = STARLIN__SPAN_ROWWISE;
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), comm(1, 0, 101, 106, 136), gemm(1, 1, 120, 121, 221),
                               comm(1, 1, 221, 225, 280), rowwise};
    spans[4].lane = 0;
    double arrival_us[] = {0, 0, 0, 1250, 0}; /* in the report's order: by chunk, then start */
    starlin__report_input_t input = {
        .spans = spans, .nspans = 5, .options = {.compute_us = 210, .comm_us = 60, .launch_us = 10}};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_PEER), 0);
    CHECK_STATUS(starlin_report_set_arrivals(report, arrival_us, 4), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin_report_set_arrivals(report, NULL, 5), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin_report_set_arrivals(NULL, arrival_us, 5), STARLIN_ERR_INVALID);
    for (int i = 0; i < 2; i++) /* the second time changes nothing */
        CHECK_STATUS(starlin_report_set_arrivals(report, arrival_us, 5), STARLIN_SUCCESS);
    CHECK_EQ_US(mean(report).time_us, 289);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_LAUNCH), 5); /* the first collective's are hidden */
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_IDLE), 19);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_PEER), 25);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_ROWWISE), 0); /* computing takes that long anyway */
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 30);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_CORE), 0);
    CHECK_EQ_US(parts(report, MEAN), 79);
    CHECK_EQ_INT(collective(report, 0).cause, STARLIN_CAUSE_LAUNCH);
    CHECK_EQ_US(collective(report, 0).gap_us, 5);
    starlin_report_destroy(report);
}

/* Up to launch_us a late start is launch latency, beyond it a wait; for a gemm whose readiness nobody
 * recorded beyond it an idle gap. */
static void test_patience(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), gemm(1, 1, 1, 101, 201), comm(1, 0, 101, 151, 251),
                               comm(1, 1, 201, 251, 281)};
    starlin__report_input_t input = {
        .spans = spans, .nspans = 4, .options = {.compute_us = 200, .comm_us = 130, .launch_us = 10}};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_CORE), 40);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_LAUNCH), 10);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 30);
    CHECK_EQ_US(parts(report, MEAN), 80);
    CHECK_EQ_INT(collective(report, 0).cause, STARLIN_CAUSE_CORE);
    starlin_report_destroy(report);

    starlin__span_t gap[] = {gemm(1, 0, 1, 1, 101), gemm(1, 1, 113, 113, 213)};
    input =
        (starlin__report_input_t){.spans = gap, .nspans = 2, .options = {.compute_us = 200, .launch_us = 10}};
    report = make(&input);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_LAUNCH), 10);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_IDLE), 2);
    CHECK_EQ_US(mean(report).comm_us, 0);
    starlin_report_destroy(report);
}

/* A slow link: the collectives decide, and the first gemm is what cannot be hidden. */
static void test_comm_bound(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 51), comm(1, 0, 51, 51, 151), gemm(1, 1, 1, 51, 101),
                               comm(1, 1, 101, 151, 251)};
    starlin__report_input_t input = {
        .spans = spans, .nspans = 4, .options = {.compute_us = 100, .comm_us = 200}};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(mean(report).ideal_us, 200);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_HEAD), 50);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 0);
    CHECK_EQ_US(parts(report, MEAN), 50);
    CHECK_EQ_US(mean(report).hidden_pct, 50);
    CHECK_EQ_INT(collective(report, 1).cause, STARLIN_CAUSE_QUEUE);
    starlin_report_destroy(report);
}

/* Row-wise work behind the last collective, where the link decides: nothing hides it. */
static void test_rowwise(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 51),   comm(1, 0, 51, 51, 151),   gemm(1, 0, 151, 151, 161),
                               gemm(1, 1, 1, 51, 101), comm(1, 1, 101, 151, 251), gemm(1, 1, 251, 251, 261)};
    spans[2].kind = spans[5].kind = STARLIN__SPAN_ROWWISE;
    spans[5].name = "round";
    spans[5].op = "row_linear";
    starlin__report_input_t input = {.spans = spans, .nspans = 6};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(mean(report).compute_us, 120); /* gemms and row-wise work */
    CHECK_EQ_US(mean(report).compute_busy_us, 120);
    CHECK_EQ_US(mean(report).comm_us, 200);
    CHECK_EQ_US(mean(report).serial_us, 320);
    CHECK_EQ_US(mean(report).hidden_pct, 50);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_HEAD), 50);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_ROWWISE), 10);
    CHECK_EQ_US(parts(report, MEAN), 60);
    starlin_report_span_t span = {.struct_size = sizeof span};
    CHECK_STATUS(starlin_report_span(report, 5, &span), STARLIN_SUCCESS);
    CHECK_EQ_INT(span.kind, STARLIN_REPORT_ROWWISE);
    CHECK_EQ_STR(span.stage, "round");
    CHECK_EQ_STR(span.op, "row_linear");
    CHECK(span.start_us == 1251 && span.end_us == 1261 && span.chunk == 1 && !span.is_link);
    CHECK_STATUS(starlin_report_span(report, 4, &span), STARLIN_SUCCESS);
    CHECK(span.kind == STARLIN_REPORT_COLLECTIVE && span.is_link && span.nbytes == 4096 && span.op == NULL);
    starlin_report_destroy(report);

    /* of a step that took longer one after the other than its parts say */
    input.options.serial_us = 360;
    report = make(&input);
    CHECK_EQ_US(mean(report).hidden_pct, 100.0 * 100 / 120);
    starlin_report_destroy(report);
}

/* A share of next to nothing is no figure. */
static void test_noise(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 1001), comm(1, 0, 1001, 1001, 1010)};
    starlin__report_input_t input = {.spans = spans, .nspans = 2};
    starlin_report_t *report = make(&input);
    char text[4096];
    CHECK(isnan(mean(report).hidden_pct) && isnan(step(report, 0).hidden_pct)); /* 9 us of 1000 */
    CHECK(isnan(mean(report).gemm_slowdown));
    starlin_report_print(report, text, sizeof text);
    CHECK_CONTAINS(text, "hidden                  -; ");
    starlin_report_destroy(report);
    spans[1].end_us = 2011; /* 10 of 1000 */
    report = make(&input);
    CHECK_EQ_US(mean(report).hidden_pct, 0);
    starlin_report_destroy(report);
    spans[0].end_us = spans[1].start_us = 1011;
    spans[1].end_us = 1011.5; /* less than a microsecond */
    report = make(&input);
    CHECK(isnan(mean(report).hidden_pct));
    starlin_report_destroy(report);
}

/* Gemms of unlike shapes: the rate is that of the operations, not of the rows. */
static void test_flop(void)
{
    starlin__span_t spans[] = {gemm(1, 0, 1, 1, 101), comm(1, 0, 101, 101, 141), gemm(2, 0, 1, 101, 321)};
    spans[0].flop = 1000;
    spans[2].flop = 2000; /* 200 us alone, 20 of 40 lost beside the collective */
    starlin__report_input_t input = {.spans = spans, .nspans = 3};
    starlin_report_t *report = make(&input);
    CHECK_EQ_US(mean(report).gemm_slowdown, 2);
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_GEMM), 20);
    CHECK_EQ_US(mean(report).compute_us, 300);
    starlin_report_destroy(report);
}

/* Structs of another version, and numbers that are none. */
static void test_accessors(void)
{
    starlin__span_t span = gemm(1, 0, 1, 1, 11);
    starlin__report_input_t input = {.spans = &span, .nspans = 1};
    starlin_report_t *report = make(&input);
    struct {
        starlin_report_lane_t lane;
        uint64_t later[4];
    } wide;
    starlin_report_lane_t one = {0};
    CHECK_STATUS(starlin_report_lane(report, 0, &one), STARLIN_SUCCESS);
    CHECK_EQ_INT(one.struct_size, 0); /* this version's */
    CHECK_EQ_INT(one.nspans, 1);
    memset(&wide, 0xff, sizeof wide);
    wide.lane.struct_size = sizeof wide; /* of a later version */
    CHECK_STATUS(starlin_report_lane(report, 0, &wide.lane), STARLIN_SUCCESS);
    CHECK(wide.lane.nspans == 1 && wide.later[0] == 0 && wide.later[3] == 0);
    memset(&wide, 0xff, sizeof wide);
    wide.lane.struct_size = offsetof(starlin_report_lane_t, nspans); /* of an earlier one */
    CHECK_STATUS(starlin_report_lane(report, 0, &wide.lane), STARLIN_SUCCESS);
    CHECK(!wide.lane.is_link && wide.lane.nspans == UINT64_MAX);
    wide.lane.struct_size = 4;
    CHECK_STATUS(starlin_report_lane(report, 0, &wide.lane), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "struct_size is 4");
    CHECK_STATUS(starlin_report_lane(report, 1, &one), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "no entry 1, there are 1");
    CHECK_STATUS(starlin_report_lane(report, 0, NULL), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin_report_lane(NULL, 0, &one), STARLIN_ERR_INVALID);
    starlin_report_step_t mean_step = {0};
    starlin_report_summary_t all = {0};
    CHECK_STATUS(starlin_report_step(NULL, MEAN, &mean_step), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin_report_summary(NULL, &all), STARLIN_ERR_INVALID);
    CHECK_EQ_INT(starlin_report_nsteps(NULL) + starlin_report_nlanes(NULL) +
                     starlin_report_ncollectives(NULL) + starlin_report_nspans(NULL),
                 0);
    CHECK(isnan(starlin_report_exposed_us(NULL, MEAN, STARLIN_CAUSE_TAIL)));
    CHECK(isnan(starlin_report_exposed_us(report, 1, STARLIN_CAUSE_TAIL)));
    CHECK(isnan(starlin_report_exposed_us(report, MEAN, STARLIN_NCAUSES)));
    starlin_report_destroy(report);
    starlin_report_destroy(NULL);
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
    CHECK_EQ_INT(starlin_report_nsteps(report), 4);
    CHECK_EQ_US(summary(report).min_us, 15);
    CHECK_EQ_US(summary(report).max_us, 17);
    CHECK_EQ_US(summary(report).median_us, 16);
    CHECK_EQ_US(mean(report).time_us, 16);
    CHECK_EQ_US(mean(report).compute_us, 10.5);
    CHECK_EQ_US(mean(report).comm_us, 5.5);
    CHECK_EQ_US(mean(report).hidden_pct, 0); /* (10.5 + 5.5 - 16) / 5.5 */
    CHECK_EQ_US(exposed(report, STARLIN_CAUSE_TAIL), 5.5);
    starlin_report_destroy(report);

    input.options = (starlin_report_options_t){.operators_per_step = 2, .compute_us = 20, .comm_us = 10};
    report = make(&input);
    CHECK_EQ_INT(starlin_report_nsteps(report), 2);
    CHECK_EQ_INT(step(report, 1).first_sequence, 9);
    CHECK_EQ_INT(step(report, 1).noperators, 2);
    CHECK_EQ_US(step(report, 0).time_us, 30);
    CHECK_EQ_US(step(report, 0).ideal_us, 20);
    CHECK_EQ_US(starlin_report_exposed_us(report, 0, STARLIN_CAUSE_TAIL), 10);
    CHECK_EQ_US(step(report, 1).time_us, 34);
    CHECK_EQ_US(parts(report, 1), 14);
    CHECK_EQ_US(parts(report, MEAN), mean(report).time_us - mean(report).ideal_us);
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
    CHECK_EQ_US(mean(report).time_us, mean(report).ideal_us);
    CHECK(isnan(mean(report).hidden_pct)); /* there is nothing to hide */
    starlin_report_destroy(report);
    CHECK(starlin_cause_name(STARLIN_NCAUSES) == NULL && starlin_cause_text((starlin_cause_t)-1) == NULL);
    CHECK_EQ_STR(starlin_cause_name(STARLIN_CAUSE_TAIL), "tail");
}

/* Random timelines of several workers: whatever happened, the parts sum to the whole. */
static void test_random(void)
{
    enum { NOPERATORS = 40, NCHUNKS = 7, NLANES = 3 };
    static starlin__span_t spans[NOPERATORS * NCHUNKS * 3];
    static double arrival_us[NOPERATORS * NCHUNKS * 3];
    srand(1);
    double lane_us[NLANES] = {0}, link_us = 0;
    size_t n = 0;
    for (uint64_t sequence = 1; sequence <= NOPERATORS; sequence++)
        for (unsigned chunk = 0; chunk < NCHUNKS; chunk++) {
            unsigned which = (unsigned)rand() % NLANES;
            double start = lane_us[which] + rand() % 30, end = start + 20 + rand() % 80;
            lane_us[which] = end;
            spans[n] = gemm(sequence, chunk, start - rand() % 20, start, end);
            spans[n].planned_us = 20 + rand() % 80;
            spans[n++].lane = which;
            double from = (link_us > end ? link_us : end) + rand() % 50;
            link_us = from + 10 + rand() % 60;
            arrival_us[n] = rand() % 2 ? 1000 + from + rand() % 30 : 0; /* of the same place in the report */
            spans[n] = comm(sequence, chunk, end, from, link_us);
            spans[n++].planned_us = rand() % 50;
            if (rand() % 2 == 0)
                continue;
            start = lane_us[0] > link_us ? lane_us[0] : link_us;
            lane_us[0] = start + rand() % 20;
            spans[n] = gemm(sequence, chunk, link_us, start, lane_us[0]);
            spans[n++].kind = STARLIN__SPAN_ROWWISE;
        }
    starlin__report_input_t input = {
        .spans = spans, .nspans = n, .options = {.operators_per_step = 3, .launch_us = 5}};
    starlin_report_t *report = make(&input);
    CHECK_STATUS(starlin_report_set_arrivals(report, arrival_us, n), STARLIN_SUCCESS);
    for (size_t i = 0; i < starlin_report_nsteps(report); i++) {
        CHECK(fabs(parts(report, i) - (step(report, i).time_us - step(report, i).ideal_us)) < 1e-6);
        for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
            if (cause != STARLIN_CAUSE_GEMM && cause != STARLIN_CAUSE_CHUNKING)
                CHECK(starlin_report_exposed_us(report, i, (starlin_cause_t)cause) >= -1e-6);
    }
    CHECK(fabs(parts(report, MEAN) - (mean(report).time_us - mean(report).ideal_us)) < 1e-6);
    CHECK_EQ_INT(starlin_report_nlanes(report), NLANES + 1);
    CHECK_EQ_INT(starlin_report_ncollectives(report), NOPERATORS * NCHUNKS);
    starlin_report_destroy(report);
}

int main(void)
{
    test_waited_for_core();
    test_slowdown();
    test_small_causes();
    test_patience();
    test_comm_bound();
    test_rowwise();
    test_noise();
    test_flop();
    test_accessors();
    test_steps();
    test_refused();
    test_random();
    return CHECK_RESULT();
}
