/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of a context, and as text for people. */
#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "graph/context.h"

/* A dependent task's launch takes 5 to 8 us behind its predecessor (measured with StarPU 1.4 on an H200);
 * a start that is later than this has waited for something. */
#define DEFAULT_LAUNCH_US 10
/* Collectives that are printed. */
#define MOST_LINES 16

/* ----------------------------------------------------------- of a context */

starlin_status_t starlin_report_enable(starlin_context_t *context, bool enabled)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: context is NULL");
    if (!enabled)
        starlin__context_collect(context);
    else if (context->device != NULL && context->activity == NULL)
        STARLIN__FORWARD(starlin__activity_open(context->device, starlin__environment_get("STARLIN_ACTIVITY"),
                                                &context->activity));
    starlin_status_t status = starlin__timeline_enable(context->timeline, enabled);
    /* a launch that is under way still needs its source, which then stays open */
    bool on = enabled && status == STARLIN_SUCCESS;
    if (context->activity != NULL && (on || atomic_load(&context->inflight) == 0))
        STARLIN__FORWARD(starlin__activity_enable(context->activity, on));
    return status;
}

starlin_status_t starlin_report_reset(starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: context is NULL");
    starlin__context_collect(context);
    starlin__timeline_clear(context->timeline);
    return STARLIN_SUCCESS;
}

/* A copy of the recorded spans of whole operators, which the caller frees. */
static starlin_status_t recorded(starlin_context_t *context, starlin__span_t **spans_p, size_t *nspans_p)
{
    bool overwritten = false;
    size_t capacity = starlin__timeline_count(context->timeline, &overwritten), nspans = 0;
    starlin__span_t *spans = starlin__alloc((capacity + 1) * sizeof *spans);
    uint64_t oldest = UINT64_MAX;
    if (spans == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "report: no memory for %zu spans", capacity);
    capacity = starlin__timeline_read(context->timeline, spans, capacity);
    for (size_t i = 0; i < capacity; i++)
        oldest = spans[i].sequence < oldest ? spans[i].sequence : oldest;
    for (size_t i = 0; i < capacity; i++) /* of the oldest operator a part may have been overwritten */
        if (!overwritten || spans[i].sequence != oldest)
            spans[nspans++] = spans[i];
    *spans_p = spans;
    *nspans_p = nspans;
    return STARLIN_SUCCESS;
}

static starlin_status_t read_options(const starlin_report_options_t *options, starlin_report_options_t *given)
{
    STARLIN__FORWARD(starlin__struct_copy(given, sizeof *given, options, "report options"));
    if (!(given->compute_us >= 0) || !(given->comm_us >= 0) || !(given->serial_us >= 0) ||
        !(given->launch_us >= 0))
        return starlin__error(
            STARLIN_ERR_INVALID,
            "report: a time is negative (compute_us %g, comm_us %g, serial_us %g, launch_us %g)",
            given->compute_us, given->comm_us, given->serial_us, given->launch_us);
    if (!(given->launch_us > 0))
        given->launch_us = DEFAULT_LAUNCH_US;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_report_create(starlin_context_t *context, const starlin_report_options_t *options,
                                       starlin_report_t **report_p)
{
    if (context == NULL || report_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: %s is NULL",
                              context == NULL ? "context" : "report_p");
    const starlin_context_info_t *info = &context->info;
    starlin__span_t *spans = NULL;
    char text[1024];
    snprintf(text, sizeof text,
             "%s + %s on %s, policy %s, StarPU %s%s, %u worker%s x %u BLAS thread%s, %s, %s", info->compute,
             info->comm, info->device, info->policy, info->starpu_version, info->adopted ? " (adopted)" : "",
             info->nworkers, info->nworkers == 1 ? "" : "s", info->nblas_threads,
             info->nblas_threads == 1 ? "" : "s", info->binding, info->host);
    starlin__report_input_t input = {
        .configuration = text,
        .source = context->activity != NULL ? starlin__activity_source(context->activity) : "tasks"};
    STARLIN__FORWARD(read_options(options, &input.options));
    if (input.options.chunking != NULL)
        input.fallback = starlin_chunking_fallback(input.options.chunking);
    starlin__context_collect(context);
    STARLIN__FORWARD(recorded(context, &spans, &input.nspans));
    input.spans = spans;
    starlin_status_t status =
        input.nspans > 0
            ? starlin__report_make(&input, report_p)
            : starlin__error(STARLIN_ERR_INVALID, "report: nothing was recorded (recording is %s)",
                             starlin__timeline_enabled(context->timeline) ? "on" : "off");
    starlin__free(spans);
    return status;
}

/* ------------------------------------------------------------------ text */

static const struct {
    const char *name, *text;
} causes[] = {
#define CAUSE_ENTRY(name, value, short_name, text) [value] = {short_name, text},
    STARLIN_CAUSE_MAP(CAUSE_ENTRY)
#undef CAUSE_ENTRY
};

const char *starlin_cause_name(starlin_cause_t cause)
{
    return (unsigned)cause < STARLIN_NCAUSES ? causes[cause].name : NULL;
}

const char *starlin_cause_text(starlin_cause_t cause)
{
    return (unsigned)cause < STARLIN_NCAUSES ? causes[cause].text : NULL;
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

static void put_lanes(output_t *output, const starlin_report_t *report)
{
    starlin_report_lane_t lane = {.struct_size = sizeof lane};
    for (size_t i = 0; starlin_report_lane(report, i, &lane) == STARLIN_SUCCESS; i++) {
        double total_us = lane.busy_us + lane.idle_us;
        char name[32];
        snprintf(name, sizeof name, lane.is_link ? "link" : "lane %u", lane.lane);
        put(output, "%-14s %10.1f us busy, %.1f us idle (%.1f%% busy), %llu spans\n", name, lane.busy_us,
            lane.idle_us, total_us > 0 ? 100 * lane.busy_us / total_us : 0, (unsigned long long)lane.nspans);
    }
}

/* The collectives of the newest step, one line each; a long list is cut. */
static void put_collectives(output_t *output, const starlin_report_t *report)
{
    starlin_report_step_t newest = {.struct_size = sizeof newest};
    starlin_report_collective_t one = {.struct_size = sizeof one};
    size_t n = starlin_report_ncollectives(report), nprinted = 0;
    (void)starlin_report_step(report, starlin_report_nsteps(report) - 1, &newest);
    for (size_t i = 0; i < n; i++) {
        (void)starlin_report_collective(report, i, &one);
        if (one.sequence < newest.first_sequence)
            continue;
        if (nprinted == MOST_LINES) {
            put(output, "               and %zu more\n", n - i);
            return;
        }
        if (nprinted++ == 0)
            put(output,
                "newest step    operator  chunk  start after work      time   exposed  cause of the gap\n");
        put(output, "               %8llu %6u %14.1f us %9.1f %9.1f  %s\n", (unsigned long long)one.sequence,
            one.chunk, one.gap_us, one.time_us, one.exposed_us, causes[one.cause].text);
    }
}

static void put_summary(output_t *output, const starlin_report_t *report, const starlin_report_summary_t *all)
{
    if (all->configuration[0] != '\0')
        put(output, "configuration  %s\n", all->configuration);
    if (strcmp(all->source, "tasks") != 0)
        put(output, "times          from %s%s\n", all->source,
            strcmp(all->source, "events") == 0
                ? ": a collective's start includes its launch and its wait for SMs"
                : "");
    put(output, "chunks         %zu (rows", all->nchunks);
    for (size_t i = 0; i < all->nchunks; i++)
        put(output, "%s%lld", i == 0 ? " " : ",", (long long)starlin_report_chunk_rows(report, i));
    put(output, ")");
    if (all->ctas > 0)
        put(output, ", collectives on %u CTAs", all->ctas);
    put(output, "\n");
    if (all->fallback != NULL)
        put(output, "fallback       %s\n", all->fallback);
}

size_t starlin_report_print(const starlin_report_t *report, char *text, size_t nbytes)
{
    output_t output = {.text = text, .capacity = nbytes};
    starlin_report_summary_t all = {.struct_size = sizeof all};
    starlin_report_step_t mean = {.struct_size = sizeof mean};
    if (nbytes > 0)
        text[0] = '\0';
    if (report == NULL)
        return 0;
    (void)starlin_report_summary(report, &all);
    (void)starlin_report_step(report, STARLIN_REPORT_MEAN, &mean);
    put_summary(&output, report, &all);
    put(&output, "time           %10.1f us, mean of %zu steps (min %.1f, median %.1f, max %.1f)\n",
        mean.time_us, all.nsteps, all.min_us, all.median_us, all.max_us);
    put(&output, "ideal          %10.1f us = max(compute %.1f, communication %.1f)\n", mean.ideal_us,
        mean.compute_us, mean.comm_us);
    if (isnan(mean.hidden_pct))
        put(&output, "hidden                  -");
    else
        put(&output, "hidden         %10.1f %%", mean.hidden_pct);
    put(&output, "; both ran together for %.1f us\n", mean.beside_us);
    if (mean.gemm_slowdown > 0)
        put(&output, "gemm slowdown  %10.2f x while a collective ran\n", mean.gemm_slowdown);
    put(&output, "exposed        %10.1f us beyond the ideal, of which\n", mean.time_us - mean.ideal_us);
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++) {
        double us = starlin_report_exposed_us(report, STARLIN_REPORT_MEAN, (starlin_cause_t)cause);
        if (fabs(us) >= 0.05)
            put(&output, "               %10.1f us %s\n", us, causes[cause].text);
    }
    put_lanes(&output, report);
    put_collectives(&output, report);
    return output.length;
}

int64_t starlin_report_chunk_rows(const starlin_report_t *report, size_t i)
{
    starlin_report_span_t span = {0}, newest = {0};
    size_t k = starlin_report_nspans(report);
    int64_t rows = 0;

    if (k > 0)
        starlin_report_span(report, k - 1, &newest);
    while (k-- > 0) { /* the newest operator's stand last */
        starlin_report_span(report, k, &span);
        if (span.sequence != newest.sequence)
            break;
        rows = span.chunk == i && span.rows > rows ? span.rows : rows;
    }
    return rows;
}
