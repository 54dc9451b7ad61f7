/* SPDX-License-Identifier: BSD-3-Clause */
/* The report over all steps: collectives, lanes, means, chunk list. */
#include <math.h>
#include <stdlib.h>

#include "base/numbers.h"
#include "report/report_work.h"

/* Which of its three possible causes took most of the gap between a gemm and its collective? */
static starlin_cause_t gap_cause(const starlin__report_work_t *work, const starlin__work_span_t *one,
                                 double gap_us)
{
    double from_us = one->start_us - gap_us;
    double queue_us = starlin__union_between(&work->comm, from_us, one->start_us);
    double rest_us = gap_us - queue_us - one->core_us;
    if (gap_us <= work->input->launch_us || (rest_us >= queue_us && rest_us >= one->core_us))
        return STARLIN_CAUSE_LAUNCH;
    return queue_us > one->core_us ? STARLIN_CAUSE_QUEUE : STARLIN_CAUSE_CORE;
}

static void report_collectives(const starlin__report_work_t *work, starlin_report_t *report)
{
    starlin_report_collective_t *out = (starlin_report_collective_t *)report->collectives;
    for (size_t i = 0; i < work->nspans; i++) {
        const starlin__work_span_t *one = &work->spans[i];
        if (one->span->kind != STARLIN__SPAN_ALLREDUCE)
            continue;
        double gap_us = one->gemm != STARLIN__NO_SPAN ? one->start_us - work->spans[one->gemm].end_us : 0;
        out[report->ncollectives++] =
            (starlin_report_collective_t){.sequence = one->span->sequence,
                                          .chunk = one->span->chunk,
                                          .time_us = starlin__work_duration(one),
                                          .gap_us = gap_us,
                                          .cause = gap_cause(work, one, gap_us),
                                          .exposed_us = starlin__work_duration(one) - one->beside_us};
        if (one->span->grid > report->ctas)
            report->ctas = one->span->grid;
    }
}

static int interval_compare(const void *a, const void *b)
{
    const double *x = a, *y = b; /* lane, start, end */
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Busy is the union of a lane's spans, all of which lie within steps. */
static void report_lanes(const starlin__report_work_t *work, starlin_report_t *report)
{
    size_t nspans = work->nspans;
    double *scratch = work->scratch;
    double total_us = 0;
    for (size_t i = 0; i < work->nsteps; i++)
        total_us += work->step_last[i] - work->step_first[i];
    for (size_t i = 0; i < nspans; i++) {
        scratch[3 * i] = work->spans[i].span->lane;
        scratch[3 * i + 1] = work->spans[i].start_us;
        scratch[3 * i + 2] = work->spans[i].end_us;
    }
    qsort(scratch, nspans, 3 * sizeof(double), interval_compare);
    starlin_report_lane_t *lanes = (starlin_report_lane_t *)report->lanes;
    double until_us = 0;
    for (size_t i = 0; i < nspans; i++) {
        unsigned lane = (unsigned)scratch[3 * i];
        if (report->nlanes == 0 || lanes[report->nlanes - 1].lane != lane) {
            lanes[report->nlanes++] =
                (starlin_report_lane_t){.lane = lane, .is_link = lane >= STARLIN__LANE_LINK};
            until_us = 0;
        }
        starlin_report_lane_t *out = &lanes[report->nlanes - 1];
        out->nspans++;
        out->busy_us += fmax(0, scratch[3 * i + 2] - fmax(until_us, scratch[3 * i + 1]));
        until_us = fmax(until_us, scratch[3 * i + 2]);
    }
    for (size_t i = 0; i < report->nlanes; i++)
        lanes[i].idle_us = total_us - lanes[i].busy_us;
}

static void report_means(const starlin__report_work_t *work, starlin_report_t *report)
{
    starlin_report_step_t *mean = &report->mean;
    double *scratch = work->scratch;
    size_t n = report->nsteps;
    for (size_t i = 0; i < n; i++) {
        const starlin_report_step_t *step = &report->steps[i];
        scratch[i] = step->time_us;
        mean->noperators += step->noperators;
        mean->time_us += step->time_us / (double)n;
        mean->ideal_us += step->ideal_us / (double)n;
        mean->gemm_us += step->gemm_us / (double)n;
        mean->comm_us += step->comm_us / (double)n;
        mean->gemm_busy_us += step->gemm_busy_us / (double)n;
        mean->comm_busy_us += step->comm_busy_us / (double)n;
        mean->beside_us += step->beside_us / (double)n;
        for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
            mean->exposed_us[cause] += step->exposed_us[cause] / (double)n;
    }
    mean->first_sequence = report->steps[0].first_sequence;
    mean->noperators /= n;
    mean->gemm_slowdown = starlin__report_slowdown(work, SIZE_MAX);
    starlin__numbers_sort(scratch, n);
    report->min_us = scratch[0];
    report->max_us = scratch[n - 1];
    report->median_us = (scratch[(n - 1) / 2] + scratch[n / 2]) / 2;
    /* of the median time: a few disturbed steps do not decide */
    double least_us = fmin(mean->gemm_us, mean->comm_us);
    double saved_us = mean->gemm_us + mean->comm_us - report->median_us;
    mean->hidden_pct = least_us > 0 ? 100 * saved_us / least_us : 0;
}

/* The gemms of the newest operator stand last, in chunk order. */
static void report_rows(const starlin__report_work_t *work, starlin_report_t *report)
{
    int64_t *rows = (int64_t *)report->rows;
    size_t nspans = work->nspans;
    uint64_t newest = work->spans[nspans - 1].span->sequence;
    for (size_t i = 0; i < nspans; i++)
        if (work->spans[i].span->sequence == newest && work->spans[i].span->kind == STARLIN__SPAN_GEMM)
            rows[report->nchunks++] = work->spans[i].span->rows;
}

void starlin__report_totals(const starlin__report_work_t *work, starlin_report_t *report)
{
    report_collectives(work, report);
    report_lanes(work, report);
    report_means(work, report);
    report_rows(work, report);
}
