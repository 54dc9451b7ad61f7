/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as text for people, and the names of the causes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

const char *starlin_cause_name(starlin_cause_t cause)
{
    switch ((int)cause) {
#define CAUSE_CASE(name, value, short_name, text)                                                            \
    case value:                                                                                              \
        return short_name;
        STARLIN_CAUSE_MAP(CAUSE_CASE)
#undef CAUSE_CASE
    default:
        return NULL;
    }
}

const char *starlin_cause_text(starlin_cause_t cause)
{
    switch ((int)cause) {
#define CAUSE_CASE(name, value, short_name, text)                                                            \
    case value:                                                                                              \
        return text;
        STARLIN_CAUSE_MAP(CAUSE_CASE)
#undef CAUSE_CASE
    default:
        return NULL;
    }
}

/* A text that is cut at its capacity and knows how long it would have been. */
typedef struct output {
    char *text;
    size_t capacity, length;
} output_t;

__attribute__((format(printf, 2, 3))) static void put(output_t *output, const char *format, ...)
{
    bool fits = output->length < output->capacity;
    va_list arguments;
    va_start(arguments, format);
    int ret = vsnprintf(fits ? output->text + output->length : NULL,
                        fits ? output->capacity - output->length : 0, format, arguments);
    va_end(arguments);
    output->length += ret > 0 ? (size_t)ret : 0;
}

static void put_rows(output_t *output, const starlin_report_t *report)
{
    put(output, "chunks         %zu (rows", report->nchunks);
    for (size_t i = 0; i < report->nchunks; i++)
        put(output, "%s%lld", i == 0 ? " " : ",", (long long)report->rows[i]);
    put(output, ")");
    if (report->ctas > 0)
        put(output, ", collectives on %u CTAs", report->ctas);
    put(output, "\n");
    if (report->fallback != NULL)
        put(output, "fallback       %s\n", report->fallback);
}

static void put_exposed(output_t *output, const starlin_report_step_t *step)
{
    put(output, "exposed        %10.1f us beyond the ideal, of which\n", step->time_us - step->ideal_us);
    for (int cause = 0; cause < STARLIN_CAUSE_QUEUE; cause++)
        if (step->exposed_us[cause] >= 0.05 || step->exposed_us[cause] <= -0.05)
            put(output, "               %10.1f us %s\n", step->exposed_us[cause], starlin_cause_text(cause));
}

static void put_lanes(output_t *output, const starlin_report_t *report)
{
    for (size_t i = 0; i < report->nlanes; i++) {
        const starlin_report_lane_t *lane = &report->lanes[i];
        double total_us = lane->busy_us + lane->idle_us;
        char name[32];
        snprintf(name, sizeof name, lane->is_link ? "link" : "lane %u", lane->lane);
        put(output, "%-14s %10.1f us busy, %.1f us idle (%.1f%% busy), %llu spans\n", name, lane->busy_us,
            lane->idle_us, total_us > 0 ? 100 * lane->busy_us / total_us : 0,
            (unsigned long long)lane->nspans);
    }
}

/* The collectives of the newest step, one line each; a long list is cut. */
static void put_collectives(output_t *output, const starlin_report_t *report)
{
    const size_t nlines = 16;
    uint64_t first = report->steps[report->nsteps - 1].first_sequence;
    size_t i = 0, nprinted = 0;
    while (i < report->ncollectives && report->collectives[i].sequence < first)
        i++;
    if (i == report->ncollectives)
        return;
    put(output, "newest step    operator  chunk  start after gemm      time   exposed  cause of the gap\n");
    for (; i < report->ncollectives && nprinted < nlines; i++, nprinted++) {
        const starlin_report_collective_t *one = &report->collectives[i];
        put(output, "               %8llu %6u %14.1f us %9.1f %9.1f  %s\n", (unsigned long long)one->sequence,
            one->chunk, one->gap_us, one->time_us, one->exposed_us, starlin_cause_text(one->cause));
    }
    if (i < report->ncollectives)
        put(output, "               and %zu more\n", report->ncollectives - i);
}

size_t starlin_report_print(const starlin_report_t *report, char *text, size_t nbytes)
{
    output_t output = {.text = text, .capacity = nbytes};
    const starlin_report_step_t *mean = &report->mean;
    if (nbytes > 0)
        text[0] = '\0';
    if (report->configuration[0] != '\0')
        put(&output, "configuration  %s\n", report->configuration);
    if (strcmp(report->source, "tasks") != 0)
        put(&output, "times          from %s\n",
            strcmp(report->source, "events") != 0
                ? report->source
                : "events: a collective's start includes its launch and its wait for SMs");
    put_rows(&output, report);
    put(&output, "time           %10.1f us, mean of %zu steps (min %.1f, median %.1f, max %.1f)\n",
        mean->time_us, report->nsteps, report->min_us, report->median_us, report->max_us);
    put(&output, "ideal          %10.1f us = max(gemm %.1f, communication %.1f)\n", mean->ideal_us,
        mean->gemm_us, mean->comm_us);
    put(&output, "hidden         %10.1f %%; a gemm and a collective ran together for %.1f us\n",
        mean->hidden_pct, mean->beside_us);
    if (mean->gemm_slowdown > 0)
        put(&output, "gemm slowdown  %10.2f x while a collective ran\n", mean->gemm_slowdown);
    put_exposed(&output, mean);
    put_lanes(&output, report);
    put_collectives(&output, report);
    return output.length;
}

size_t starlin__report_compare(const char *const *titles, const starlin_report_t *const *reports, size_t n,
                               char *text, size_t nbytes)
{
    output_t output = {.text = text, .capacity = nbytes};
    double best_us = 0;
    int width = 16;
    if (nbytes > 0)
        text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        best_us = best_us > 0 && best_us < reports[i]->median_us ? best_us : reports[i]->median_us;
        width = strlen(titles[i]) > (size_t)width ? (int)strlen(titles[i]) : width;
    }
    put(&output, "#%*s %12s %8s %12s %8s %12s  %s\n", width - 1, "", "time", "to best", "ideal", "hidden",
        "beyond", "mostly because");
    put(&output, "#%*s %12s %8s %12s %8s %12s\n", width - 1, "", "(us)", "", "(us)", "(%)", "(us)");
    for (size_t i = 0; i < n; i++) {
        const starlin_report_step_t *mean = &reports[i]->mean;
        int worst = 0;
        for (int cause = 1; cause < STARLIN_CAUSE_QUEUE; cause++)
            worst = mean->exposed_us[cause] > mean->exposed_us[worst] ? cause : worst;
        put(&output, "%*s %12.1f %8.3f %12.1f %8.1f %12.1f  %s\n", width, titles[i], reports[i]->median_us,
            reports[i]->median_us / best_us, mean->ideal_us, mean->hidden_pct, mean->time_us - mean->ideal_us,
            starlin_cause_text((starlin_cause_t)worst));
    }
    return output.length;
}
