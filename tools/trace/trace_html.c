/* SPDX-License-Identifier: BSD-3-Clause */
/* The page: the template (trace_page.html, embedded by the build) with a title and the data put in its two
 * marked places. Times are microseconds from each timeline's first instant. */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

extern const char trace_page[]; /* made by the build */

enum { MOST_NAMES = 256 }; /* operators and stages of a library */

/* Names of operators and stages, each once, as spans count them. */
typedef struct names {
    const char *names[MOST_NAMES];
    size_t count;
} names_t;

/* Its number; it is added if it is new and there is room, else it is the last one. */
static size_t name_number(names_t *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], name) == 0)
            return i;
    if (names->count == MOST_NAMES)
        return MOST_NAMES - 1;
    names->names[names->count] = name;
    return names->count++;
}

static void put_spans(perf_file_t *file, const trace_rank_t *rank, names_t *names, double origin_us)
{
    double shift = rank->offset_us - origin_us;
    trace_put(file, "\"spans\":[");
    for (size_t i = 0; i < rank->nspans; i++) {
        const trace_span_t *span = &rank->spans[i];
        double launch_us = span->launch_us > 0 ? span->launch_us : span->start_us;
        double ready_us = span->ready_us > 0 ? span->ready_us : launch_us;
        trace_put(file, "%s[%d,%u,%llu,%u,%u,%.2f,%.2f,%.2f,%.2f,%.0f,%lld,%zu,%zu]", i == 0 ? "" : ",\n",
                  (int)span->kind, trace_lane(span), (unsigned long long)span->sequence, span->chunk,
                  span->grid, ready_us + shift, launch_us + shift, span->start_us + shift,
                  span->end_us + shift, span->nbytes, (long long)span->rows, name_number(names, span->op),
                  name_number(names, span->stage));
    }
    trace_put(file, "]");
}

static void put_figure(perf_file_t *file, const char *name, double value, int digits)
{
    trace_put(file, ",\"%s\":", name);
    trace_put_number(file, value, digits);
}

static void put_step(perf_file_t *file, const trace_step_t *step, double shift)
{
    const starlin_report_step_t *figures = &step->figures;
    trace_put(file, "{\"sequence\":%llu,\"operators\":%llu", (unsigned long long)figures->first_sequence,
              (unsigned long long)figures->noperators);
    put_figure(file, "start", figures->start_us + shift, 2);
    put_figure(file, "time", figures->time_us, 3);
    put_figure(file, "ideal", figures->ideal_us, 3);
    put_figure(file, "compute", figures->compute_us, 3);
    put_figure(file, "comm", figures->comm_us, 3);
    put_figure(file, "beside", figures->beside_us, 3);
    put_figure(file, "hidden", figures->hidden_pct, 2);
    put_figure(file, "slowdown", figures->gemm_slowdown, 4);
    trace_put(file, ",\"exposed\":[");
    for (int cause = 0; cause < STARLIN_CAUSE_QUEUE; cause++) {
        trace_put(file, cause == 0 ? "" : ",");
        trace_put_number(file, step->exposed_us[cause], 3);
    }
    trace_put(file, "]}");
}

static void put_report(perf_file_t *file, const trace_report_t *report, double shift)
{
    const starlin_report_summary_t *summary = &report->summary;
    trace_put(file, "{\"mean\":");
    put_step(file, &report->mean, 0);
    trace_put(file, ",\"min\":%.3f,\"median\":%.3f,\"max\":%.3f,\"ctas\":%u,\"fallback\":", summary->min_us,
              summary->median_us, summary->max_us, summary->ctas);
    trace_put_json(file, summary->fallback != NULL ? summary->fallback : "");
    trace_put(file, ",\"configuration\":");
    trace_put_json(file, summary->configuration != NULL ? summary->configuration : "");
    trace_put(file, ",\"rows\":[");
    for (size_t i = 0; i < report->nchunks; i++)
        trace_put(file, "%s%lld", i == 0 ? "" : ",", (long long)report->rows[i]);
    trace_put(file, "],\"steps\":[");
    for (size_t i = 0; i < report->nsteps; i++) {
        trace_put(file, i == 0 ? "" : ",\n");
        put_step(file, &report->steps[i], shift);
    }
    trace_put(file, "],\"lanes\":[");
    for (size_t i = 0; i < report->nlanes; i++)
        trace_put(file, "%s[%u,%.3f,%.3f]", i == 0 ? "" : ",",
                  trace_lane_number(report->lanes[i].lane, report->lanes[i].is_link),
                  report->lanes[i].busy_us, report->lanes[i].idle_us);
    trace_put(file, "],\"collectives\":[");
    for (size_t i = 0; i < report->ncollectives; i++) {
        const starlin_report_collective_t *one = &report->collectives[i];
        trace_put(file, "%s[%llu,%u,%.3f,%.3f,%d,%.3f]", i == 0 ? "" : ",", (unsigned long long)one->sequence,
                  one->chunk, one->time_us, one->gap_us, (int)one->cause, one->exposed_us);
    }
    trace_put(file, "]}");
}

static void put_group(perf_file_t *file, const trace_t *trace, names_t *names)
{
    double origin_us = trace_origin(trace);
    trace_put(file, "{\"title\":");
    trace_put_json(file, trace->title);
    trace_put(file, ",\"subtitle\":");
    trace_put_json(file, trace->subtitle != NULL ? trace->subtitle : "");
    trace_put(file, ",\"report\":");
    if (trace->report != NULL)
        put_report(file, trace->report, trace->ranks[trace->report_rank].offset_us - origin_us);
    else
        trace_put(file, "null");
    trace_put(file, ",\n\"report_rank\":%zu,\"ranks\":[", trace->report_rank);
    for (size_t r = 0; r < trace->nranks; r++) {
        trace_put(file, "%s{\"name\":", r == 0 ? "" : ",\n");
        trace_put_json(file, trace->ranks[r].name);
        trace_put(file, ",");
        put_spans(file, &trace->ranks[r], names, origin_us);
        trace_put(file, "}");
    }
    trace_put(file, "]}");
}

/* Schema 2 has names of operators and stages, and `compute` where 1 had `gemm`. */
static void put_data(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title)
{
    names_t names = {.count = 0};
    trace_put(file, "{\"schema_version\":2,\"title\":");
    trace_put_json(file, title);
    trace_put(file, ",\"causes\":[");
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++) {
        trace_put(file, cause == 0 ? "" : ",");
        trace_put_json(file, starlin_cause_text((starlin_cause_t)cause));
    }
    trace_put(file, "],\"groups\":[");
    for (size_t t = 0; t < ntraces; t++) {
        trace_put(file, t == 0 ? "" : ",\n");
        put_group(file, &traces[t], &names);
    }
    trace_put(file, "],\"names\":[");
    for (size_t i = 0; i < names.count; i++) {
        trace_put(file, i == 0 ? "" : ",");
        trace_put_json(file, names.names[i]);
    }
    trace_put(file, "]}");
}

bool trace_write_html(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                      perf_error_t *error)
{
    static const char title_mark[] = "@TITLE@", data_mark[] = "@DATA@";
    const char *title_at = strstr(trace_page, title_mark);
    const char *data_at = strstr(trace_page, data_mark);
    if (title_at == NULL || data_at == NULL || title_at > data_at)
        return perf_error_status(error, STARLIN_ERR_RUNTIME, "the page template has lost its marks");
    trace_put_raw(file, trace_page, (size_t)(title_at - trace_page));
    trace_put_xml(file, title);
    const char *rest = title_at + sizeof(title_mark) - 1;
    trace_put_raw(file, rest, (size_t)(data_at - rest));
    put_data(file, traces, ntraces, title);
    rest = data_at + sizeof(data_mark) - 1;
    trace_put_raw(file, rest, strlen(rest));
    return true;
}
