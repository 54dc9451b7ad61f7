/* SPDX-License-Identifier: BSD-3-Clause */
/* The page: the template (trace_page.html, embedded by the build) with a title and the data put in its two
 * marked places. Times are microseconds from each timeline's first instant. */
#include <string.h>

#include "trace.h"
#include "trace_page.h"

static void put_spans(starlin__sink_t *sink, const starlin__trace_rank_t *rank, double origin_us)
{
    double shift = rank->offset_us - origin_us;
    starlin__sink_put(sink, "\"spans\":[");
    for (size_t i = 0; i < rank->nspans; i++) {
        const starlin__span_t *span = &rank->spans[i];
        double launch_us = span->launch_us > 0 ? span->launch_us : span->start_us;
        double ready_us = span->ready_us > 0 ? span->ready_us : launch_us;
        starlin__sink_put(sink, "%s[%d,%u,%llu,%u,%u,%.2f,%.2f,%.2f,%.2f,%.0f,%lld]", i == 0 ? "" : ",\n",
                          (int)span->kind, span->lane, (unsigned long long)span->sequence, span->chunk,
                          span->grid, ready_us + shift, launch_us + shift, span->start_us + shift,
                          span->end_us + shift, span->nbytes, (long long)span->rows);
    }
    starlin__sink_put(sink, "]");
}

static void put_step(starlin__sink_t *sink, const starlin_report_step_t *step, double shift)
{
    starlin__sink_put(sink,
                      "{\"sequence\":%llu,\"operators\":%llu,\"start\":%.2f,\"time\":%.3f,\"ideal\":%.3f,"
                      "\"gemm\":%.3f,\"comm\":%.3f,\"beside\":%.3f,\"hidden\":%.2f,\"slowdown\":%.4f,"
                      "\"exposed\":[",
                      (unsigned long long)step->first_sequence, (unsigned long long)step->noperators,
                      step->start_us + shift, step->time_us, step->ideal_us, step->gemm_us, step->comm_us,
                      step->beside_us, step->hidden_pct, step->gemm_slowdown);
    for (int cause = 0; cause < STARLIN_CAUSE_QUEUE; cause++)
        starlin__sink_put(sink, "%s%.3f", cause == 0 ? "" : ",", step->exposed_us[cause]);
    starlin__sink_put(sink, "]}");
}

static void put_report(starlin__sink_t *sink, const starlin_report_t *report, double shift)
{
    starlin__sink_put(sink, "{\"mean\":");
    put_step(sink, &report->mean, 0);
    starlin__sink_put(sink,
                      ",\"min\":%.3f,\"median\":%.3f,\"max\":%.3f,\"ctas\":%u,\"fallback\":", report->min_us,
                      report->median_us, report->max_us, report->ctas);
    starlin__sink_json(sink, report->fallback != NULL ? report->fallback : "");
    starlin__sink_put(sink, ",\"configuration\":");
    starlin__sink_json(sink, report->configuration);
    starlin__sink_put(sink, ",\"rows\":[");
    for (size_t i = 0; i < report->nchunks; i++)
        starlin__sink_put(sink, "%s%lld", i == 0 ? "" : ",", (long long)report->rows[i]);
    starlin__sink_put(sink, "],\"steps\":[");
    for (size_t i = 0; i < report->nsteps; i++) {
        starlin__sink_put(sink, i == 0 ? "" : ",\n");
        put_step(sink, &report->steps[i], shift);
    }
    starlin__sink_put(sink, "],\"lanes\":[");
    for (size_t i = 0; i < report->nlanes; i++)
        starlin__sink_put(sink, "%s[%u,%.3f,%.3f]", i == 0 ? "" : ",", report->lanes[i].lane,
                          report->lanes[i].busy_us, report->lanes[i].idle_us);
    starlin__sink_put(sink, "],\"collectives\":[");
    for (size_t i = 0; i < report->ncollectives; i++) {
        const starlin_report_collective_t *one = &report->collectives[i];
        starlin__sink_put(sink, "%s[%llu,%u,%.3f,%.3f,%d,%.3f]", i == 0 ? "" : ",",
                          (unsigned long long)one->sequence, one->chunk, one->time_us, one->gap_us,
                          (int)one->cause, one->exposed_us);
    }
    starlin__sink_put(sink, "]}");
}

static void put_data(starlin__sink_t *sink, const starlin__trace_t *traces, size_t ntraces, const char *title)
{
    starlin__sink_put(sink, "{\"schema_version\":1,\"title\":");
    starlin__sink_json(sink, title);
    starlin__sink_put(sink, ",\"causes\":[");
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++) {
        starlin__sink_put(sink, cause == 0 ? "" : ",");
        starlin__sink_json(sink, starlin_cause_text((starlin_cause_t)cause));
    }
    starlin__sink_put(sink, "],\"groups\":[");
    for (size_t t = 0; t < ntraces; t++) {
        const starlin__trace_t *trace = &traces[t];
        double origin_us = starlin__trace_origin(trace);
        starlin__sink_put(sink, "%s{\"title\":", t == 0 ? "" : ",\n");
        starlin__sink_json(sink, trace->title);
        starlin__sink_put(sink, ",\"subtitle\":");
        starlin__sink_json(sink, trace->subtitle != NULL ? trace->subtitle : "");
        starlin__sink_put(sink, ",\"report\":");
        if (trace->report != NULL)
            put_report(sink, trace->report, trace->ranks[trace->report_rank].offset_us - origin_us);
        else
            starlin__sink_put(sink, "null");
        starlin__sink_put(sink, ",\n\"report_rank\":%zu,\"ranks\":[", trace->report_rank);
        for (size_t r = 0; r < trace->nranks; r++) {
            starlin__sink_put(sink, "%s{\"name\":", r == 0 ? "" : ",\n");
            starlin__sink_json(sink, trace->ranks[r].name);
            starlin__sink_put(sink, ",");
            put_spans(sink, &trace->ranks[r], origin_us);
            starlin__sink_put(sink, "}");
        }
        starlin__sink_put(sink, "]}");
    }
    starlin__sink_put(sink, "]}");
}

starlin_status_t starlin__trace_write_html(starlin__sink_t *sink, const starlin__trace_t *traces,
                                           size_t ntraces, const char *title)
{
    static const char title_mark[] = "@TITLE@", data_mark[] = "@DATA@";
    const char *title_at = strstr(starlin__trace_page, title_mark);
    const char *data_at = strstr(starlin__trace_page, data_mark);
    if (title_at == NULL || data_at == NULL || title_at > data_at)
        return starlin__error(STARLIN_ERR_RUNTIME, "trace: the page template has lost its marks");
    starlin__sink_raw(sink, starlin__trace_page, (size_t)(title_at - starlin__trace_page));
    starlin__sink_xml(sink, title);
    const char *rest = title_at + sizeof title_mark - 1;
    starlin__sink_raw(sink, rest, (size_t)(data_at - rest));
    put_data(sink, traces, ntraces, title);
    rest = data_at + sizeof data_mark - 1;
    starlin__sink_raw(sink, rest, strlen(rest));
    return STARLIN_SUCCESS;
}
