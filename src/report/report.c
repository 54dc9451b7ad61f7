/* SPDX-License-Identifier: BSD-3-Clause */
/* The report: puts spans in order, groups them into steps and turns sums into figures. Steps do not overlap:
 * every span lies within its step, and what lies between two steps belongs to neither. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "report/report_work.h"

static int span_compare(const void *a, const void *b)
{
    const starlin__span_t *x = ((const starlin__work_span_t *)a)->span;
    const starlin__span_t *y = ((const starlin__work_span_t *)b)->span;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x < y ? -1 : x > y;
}

static starlin_status_t input_check(const starlin__report_input_t *input)
{
    if (input->nspans == 0)
        return starlin__error(STARLIN_ERR_INVALID, "report: nothing was recorded");
    for (size_t i = 0; i < input->nspans; i++) {
        const starlin__span_t *span = &input->spans[i];
        bool finite = isfinite(span->ready_us) && isfinite(span->launch_us) && isfinite(span->start_us) &&
                      isfinite(span->end_us);
        if (!finite || span->end_us < span->start_us || (unsigned)span->kind > STARLIN__SPAN_CAST)
            return starlin__error(
                STARLIN_ERR_INVALID, "report: span %zu (operator %llu, chunk %u) runs from %g to %g us", i,
                (unsigned long long)span->sequence, span->chunk, span->start_us, span->end_us);
    }
    return STARLIN_SUCCESS;
}

/* What span i takes alone as far as was planned; 0: not known. */
static double span_planned(const starlin__report_work_t *work, const starlin__work_span_t *one)
{
    const double *planned_us = work->input->planned_us;
    return planned_us != NULL ? planned_us[one->span - work->input->spans] : 0;
}

/* ready and launch come before start with every clock that is right; 0 means not recorded. Behind an event of
 * the device, work is launched before it is ready. */
static void span_clip(const starlin__report_work_t *work, starlin__work_span_t *one)
{
    const starlin__span_t *span = one->span;
    double launch_us = span->launch_us > 0 ? fmin(span->launch_us, span->start_us) : span->start_us;
    double ready_us = span->ready_us > 0 ? fmin(span->ready_us, span->start_us) : launch_us;
    one->ready_us = ready_us - work->origin_us;
    one->launch_us = launch_us - work->origin_us;
    one->start_us = span->start_us - work->origin_us;
    one->end_us = span->end_us - work->origin_us;
    if (span->kind != STARLIN__SPAN_ALLREDUCE)
        return;
    double duration_us = starlin__work_duration(one), planned_us = span_planned(work, one);
    if (work->input->arrival_us != NULL) {
        double arrival_us = work->input->arrival_us[span - work->input->spans];
        one->peer_us = fmin(fmax(arrival_us - span->start_us, 0), duration_us);
    }
    if (planned_us > 0)
        one->slow_us = fmax(duration_us - one->peer_us - planned_us, 0);
}

static double span_earliest(const starlin__span_t *span)
{
    double earliest_us = span->start_us;
    if (span->launch_us > 0)
        earliest_us = fmin(earliest_us, span->launch_us);
    return span->ready_us > 0 ? fmin(earliest_us, span->ready_us) : earliest_us;
}

/* For sorting: start, end, index. */
static int triple_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Sorts the spans both ways and pairs each collective with its gemm. */
static void work_order(starlin__report_work_t *work)
{
    const starlin__report_input_t *input = work->input;
    work->origin_us = INFINITY;
    for (size_t i = 0; i < work->nspans; i++) {
        work->spans[i].span = &input->spans[i];
        work->origin_us = fmin(work->origin_us, span_earliest(&input->spans[i]));
    }
    qsort(work->spans, work->nspans, sizeof work->spans[0], span_compare);
    for (size_t i = 0; i < work->nspans; i++) {
        starlin__work_span_t *one = &work->spans[i];
        span_clip(work, one);
        const starlin__span_t *previous = i > 0 ? work->spans[i - 1].span : one->span;
        bool paired = one->span->kind == STARLIN__SPAN_ALLREDUCE && previous->kind == STARLIN__SPAN_GEMM &&
                      previous->sequence == one->span->sequence && previous->chunk == one->span->chunk;
        one->gemm = paired ? i - 1 : STARLIN__NO_SPAN;
        work->scratch[3 * i] = one->start_us;
        work->scratch[3 * i + 1] = one->end_us;
        work->scratch[3 * i + 2] = (double)i;
    }
    qsort(work->scratch, work->nspans, 3 * sizeof(double), triple_compare);
    for (size_t i = 0; i < work->nspans; i++)
        work->by_start[i] = (size_t)work->scratch[3 * i + 2];
}

/* Cuts the operators into steps: as long as they overlap in time, or a number of them and as long. */
static void work_steps(starlin__report_work_t *work)
{
    double last_us = 0;
    uint64_t noperators = 0;
    for (size_t i = 0, next; i < work->nspans; i = next, noperators++) {
        uint64_t sequence = work->spans[i].span->sequence;
        double ready_us = INFINITY, start_us = INFINITY, end_us = 0;
        for (next = i; next < work->nspans && work->spans[next].span->sequence == sequence; next++) {
            ready_us = fmin(ready_us, work->spans[next].ready_us);
            start_us = fmin(start_us, work->spans[next].start_us);
            end_us = fmax(end_us, work->spans[next].end_us);
        }
        bool full = noperators >= work->input->operators_per_step;
        if (work->nsteps == 0 || (full && start_us >= last_us)) {
            work->step_first[work->nsteps] = work->nsteps == 0 ? ready_us : fmax(ready_us, last_us);
            work->nsteps++;
            noperators = 0;
        }
        size_t step = work->nsteps - 1;
        double floor_us = step > 0 ? work->step_last[step - 1] : 0;
        work->step_first[step] = fmin(work->step_first[step], fmax(ready_us, floor_us));
        last_us = fmax(last_us, end_us);
        work->step_last[step] = last_us;
        for (size_t j = i; j < next; j++)
            work->step_of[j] = step;
    }
}

static void union_make(const starlin__report_work_t *work, starlin__span_kind_t kind, starlin__union_t *all)
{
    for (size_t k = 0; k < work->nspans; k++) {
        const starlin__work_span_t *one = &work->spans[work->by_start[k]];
        if (one->span->kind != kind)
            continue;
        size_t n = all->n;
        if (n > 0 && one->start_us <= all->last[n - 1]) {
            all->last[n - 1] = fmax(all->last[n - 1], one->end_us);
            continue;
        }
        all->first[n] = one->start_us;
        all->last[n] = one->end_us;
        all->before[n] = n > 0 ? all->before[n - 1] + all->last[n - 1] - all->first[n - 1] : 0;
        all->n++;
    }
}

/* Time up to an instant with at least one of the spans. */
static double union_until(const starlin__union_t *all, double time_us)
{
    size_t low = 0, high = all->n; /* the first interval that starts later */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all->first[middle] < time_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? 0 : all->before[low - 1] + fmin(time_us, all->last[low - 1]) - all->first[low - 1];
}

double starlin__union_between(const starlin__union_t *all, double first_us, double last_us)
{
    return last_us > first_us ? union_until(all, last_us) - union_until(all, first_us) : 0;
}

static double gemm_alone(const starlin__report_work_t *work, const starlin__work_span_t *one)
{
    double planned_us = span_planned(work, one);
    return planned_us > 0 ? planned_us : work->us_per_row * (double)one->span->rows;
}

/* What ran beside what, and what that did to the gemms. Alone, they ran at the median rate: the first of all
 * is often many times slower. */
static void work_beside(starlin__report_work_t *work)
{
    size_t nalone = 0;
    for (size_t i = 0; i < work->nspans; i++) {
        starlin__work_span_t *one = &work->spans[i];
        const starlin__union_t *other =
            one->span->kind == STARLIN__SPAN_ALLREDUCE ? &work->gemm : &work->comm;
        one->beside_us = starlin__union_between(other, one->start_us, one->end_us);
        if (one->span->kind == STARLIN__SPAN_GEMM && !(one->beside_us > 0) && one->span->rows > 0)
            work->scratch[nalone++] = starlin__work_duration(one) / (double)one->span->rows;
    }
    starlin__numbers_sort(work->scratch, nalone);
    work->us_per_row = nalone > 0 ? (work->scratch[(nalone - 1) / 2] + work->scratch[nalone / 2]) / 2 : 0;
    for (size_t i = 0; i < work->nspans; i++) {
        starlin__work_span_t *one = &work->spans[i];
        double alone_us = gemm_alone(work, one), excess_us = starlin__work_duration(one) - alone_us;
        if (one->span->kind != STARLIN__SPAN_GEMM || !(one->beside_us > 0) || !(alone_us > 0))
            continue;
        /* faster than an estimate says only that the estimate was wrong */
        one->excess_us = span_planned(work, one) > 0 ? excess_us : fmax(excess_us, 0);
    }
}

double starlin__report_slowdown(const starlin__report_work_t *work, size_t step)
{
    double beside_us = 0, worked_us = 0;
    for (size_t i = 0; i < work->nspans; i++) {
        const starlin__work_span_t *one = &work->spans[i];
        double alone_us = gemm_alone(work, one);
        if (one->span->kind != STARLIN__SPAN_GEMM || !(one->beside_us > 0) || !(alone_us > 0) ||
            (step != SIZE_MAX && work->step_of[i] != step))
            continue;
        beside_us += one->beside_us;
        worked_us += one->beside_us - one->excess_us; /* what this time would have sufficed for, alone */
    }
    return worked_us > 0 ? beside_us / worked_us : 0;
}

/* Sums over the spans of each step, before the figures are made of them. */
static void steps_sum(const starlin__report_work_t *work, starlin_report_step_t *steps)
{
    for (size_t i = 0; i < work->nspans; i++) {
        const starlin__work_span_t *one = &work->spans[i];
        starlin_report_step_t *out = &steps[work->step_of[i]];
        if (i == 0 || one->span->sequence != work->spans[i - 1].span->sequence) {
            out->first_sequence = out->noperators == 0 ? one->span->sequence : out->first_sequence;
            out->noperators++;
        }
        if (one->span->kind == STARLIN__SPAN_GEMM)
            out->gemm_us -= one->excess_us;
        if (one->span->kind == STARLIN__SPAN_ALLREDUCE)
            out->comm_us -= one->peer_us + one->slow_us;
    }
}

static void step_finish(starlin__report_work_t *work, size_t index, starlin_report_step_t *out)
{
    const starlin__report_input_t *input = work->input;
    double first_us = work->step_first[index], last_us = work->step_last[index];
    out->start_us = work->origin_us + first_us;
    out->time_us = last_us - first_us;
    out->gemm_busy_us = starlin__union_between(&work->gemm, first_us, last_us);
    out->comm_busy_us = starlin__union_between(&work->comm, first_us, last_us);
    for (size_t i = 0; i < work->comm.n; i++)
        if (work->comm.first[i] >= first_us && work->comm.last[i] <= last_us)
            out->beside_us += starlin__union_between(&work->gemm, work->comm.first[i], work->comm.last[i]);
    out->gemm_us = fmax(out->gemm_us + out->gemm_busy_us, 0);
    out->comm_us = fmax(out->comm_us + out->comm_busy_us, 0);
    if (input->gemm_us > 0)
        out->gemm_us = input->gemm_us * (double)out->noperators;
    if (input->comm_us > 0 && out->comm_busy_us > 0)
        out->comm_us = input->comm_us * (double)out->noperators;
    out->ideal_us = fmax(out->gemm_us, out->comm_us);
    double least_us = fmin(out->gemm_us, out->comm_us);
    out->hidden_pct = least_us > 0 ? 100 * (out->gemm_us + out->comm_us - out->time_us) / least_us : 0;
    out->gemm_slowdown = starlin__report_slowdown(work, index);
    starlin__replay_step(work, index, out);
}

static const char *text_copy(const char *text)
{
    char *copy = starlin__alloc(strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* The report's arrays are as long as there are spans: an upper bound of every count. */
static starlin_status_t report_alloc(const starlin__report_input_t *input, starlin_report_t **report_p)
{
    starlin_report_t *report = starlin__alloc(sizeof *report);
    if (report != NULL) {
        size_t n = input->nspans;
        const char *configuration = input->configuration != NULL ? input->configuration : "";
        report->configuration = text_copy(configuration);
        report->source = input->source != NULL ? input->source : "tasks";
        report->fallback = input->fallback != NULL ? text_copy(input->fallback) : NULL;
        report->steps = starlin__alloc(n * sizeof *report->steps);
        report->lanes = starlin__alloc(n * sizeof *report->lanes);
        report->collectives = starlin__alloc(n * sizeof *report->collectives);
        report->rows = starlin__alloc(n * sizeof *report->rows);
    }
    if (report == NULL || report->configuration == NULL || (input->fallback && !report->fallback) ||
        report->steps == NULL || report->lanes == NULL || report->collectives == NULL ||
        report->rows == NULL) {
        starlin_report_destroy(report);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "report: no memory for %zu spans", input->nspans);
    }
    *report_p = report;
    return STARLIN_SUCCESS;
}

void starlin_report_destroy(starlin_report_t *report)
{
    if (report == NULL)
        return;
    starlin__free((void *)report->configuration);
    starlin__free((void *)report->fallback);
    starlin__free((void *)report->steps);
    starlin__free((void *)report->lanes);
    starlin__free((void *)report->collectives);
    starlin__free((void *)report->rows);
    starlin__free(report);
}

static void report_fill(starlin__report_work_t *work, starlin_report_t *report)
{
    starlin_report_step_t *steps = (starlin_report_step_t *)report->steps;
    work_order(work);
    work_steps(work);
    union_make(work, STARLIN__SPAN_GEMM, &work->gemm);
    union_make(work, STARLIN__SPAN_ALLREDUCE, &work->comm);
    work_beside(work);
    starlin__replay_prepare(work);
    report->nsteps = work->nsteps;
    steps_sum(work, steps);
    for (size_t i = 0; i < work->nsteps; i++)
        step_finish(work, i, &steps[i]);
    starlin__report_totals(work, report);
}

starlin_status_t starlin__report_make(const starlin__report_input_t *input, starlin_report_t **report_p)
{
    STARLIN__FORWARD(input_check(input));
    starlin_report_t *report = NULL;
    STARLIN__FORWARD(report_alloc(input, &report));
    size_t n = input->nspans;
    starlin__report_work_t work = {.input = input,
                                   .nspans = n,
                                   .spans = starlin__alloc(n * sizeof *work.spans),
                                   .by_start = starlin__alloc(2 * n * sizeof(size_t)),
                                   .scratch = starlin__alloc(11 * n * sizeof(double))};
    starlin_status_t status = STARLIN_SUCCESS;
    if (work.spans == NULL || work.by_start == NULL || work.scratch == NULL) {
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "report: no memory for %zu spans", n);
    } else {
        double *rest = work.scratch + 3 * n; /* eight more arrays */
        work.step_of = work.by_start + n;
        work.step_first = rest;
        work.step_last = rest + n;
        work.gemm = (starlin__union_t){0, rest + 2 * n, rest + 3 * n, rest + 4 * n};
        work.comm = (starlin__union_t){0, rest + 5 * n, rest + 6 * n, rest + 7 * n};
        report_fill(&work, report);
    }
    starlin__free(work.spans);
    starlin__free(work.by_start);
    starlin__free(work.scratch);
    if (status == STARLIN_SUCCESS)
        *report_p = report;
    else
        starlin_report_destroy(report);
    return status;
}
