/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace events as chrome://tracing and Perfetto read them: a process per rank, a thread per lane, an arrow
 * where a chunk is handed to a collective or comes from one. Times are microseconds from the trace's first
 * instant. */
#include <math.h>
#include <stdlib.h>

#include "trace.h"

#define NLANES_MAX 1024

/* Processes of different timelines in one file stay apart. */
static unsigned long process_of(size_t trace, size_t rank)
{
    return (unsigned long)(trace * 10000 + rank + 1);
}

static unsigned thread_of(unsigned lane)
{
    return lane + 1; /* thread 0 is special to some readers */
}

static void put_metadata(perf_file_t *file, const trace_t *trace, size_t t, size_t r, bool several)
{
    const trace_rank_t *rank = &trace->ranks[r];
    unsigned long process = process_of(t, r);
    char name[512];
    snprintf(name, sizeof(name), "%s%s%s", several ? trace->title : "", several ? ": " : "", rank->name);
    trace_put(file, "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%lu,\"tid\":0,\"args\":{\"name\":",
              t + r == 0 ? "" : ",\n", process);
    trace_put_json(file, name);
    trace_put(file,
              "}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%lu,\"tid\":0,"
              "\"args\":{\"sort_index\":%lu}}",
              process, process);
    unsigned lanes[NLANES_MAX];
    size_t nlanes = trace_lanes(rank, lanes, NLANES_MAX);
    for (size_t i = 0; i < nlanes && i < NLANES_MAX; i++) {
        trace_lane_name(lanes[i], name, sizeof(name));
        trace_put(file,
                  ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%lu,\"tid\":%u,\"args\":"
                  "{\"name\":\"%s\"}}"
                  ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%lu,\"tid\":%u,\"args\":"
                  "{\"sort_index\":%u}}",
                  process, thread_of(lanes[i]), name, process, thread_of(lanes[i]), lanes[i]);
    }
}

static void put_span(perf_file_t *file, const trace_span_t *span, unsigned long process, double shift)
{
    static const char *const kinds[] = {"gemm", "collective", "rowwise"};
    trace_put(file,
              ",\n{\"ph\":\"X\",\"name\":\"%s %llu.%u\",\"cat\":\"%s\",\"pid\":%lu,\"tid\":%u,"
              "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"op\":\"%s\",\"operator\":%llu,\"chunk\":%u,"
              "\"rows\":%lld",
              span->stage, (unsigned long long)span->sequence, span->chunk, kinds[span->kind], process,
              thread_of(trace_lane(span)), span->start_us + shift, span->end_us - span->start_us, span->op,
              (unsigned long long)span->sequence, span->chunk, (long long)span->rows);
    if (span->nbytes > 0)
        trace_put(file, ",\"bytes\":%.0f", span->nbytes);
    if (span->grid > 0)
        trace_put(file, ",\"ctas\":%u", span->grid);
    if (span->ready_us > 0)
        trace_put(file, ",\"ready_to_start_us\":%.3f", span->start_us - span->ready_us);
    if (span->launch_us > 0)
        trace_put(file, ",\"launch_to_start_us\":%.3f", span->start_us - span->launch_us);
    trace_put(file, "}}");
}

/* An arrow starts inside the first slice (its end does not count as inside) and ends at the second. */
static void put_arrow(perf_file_t *file, const trace_span_t *from, const trace_span_t *to,
                      unsigned long process, double shift, unsigned long long id)
{
    double from_us = fmax(from->start_us, from->end_us - 0.002) + shift;
    trace_put(file,
              ",\n{\"ph\":\"s\",\"name\":\"chunk\",\"cat\":\"chunk\",\"id\":%llu,\"pid\":%lu,"
              "\"tid\":%u,\"ts\":%.3f}"
              ",\n{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"chunk\",\"cat\":\"chunk\",\"id\":%llu,"
              "\"pid\":%lu,\"tid\":%u,\"ts\":%.3f}",
              id, process, thread_of(trace_lane(from)), from_us, id, process, thread_of(trace_lane(to)),
              to->start_us + shift);
}

bool trace_write_json(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                      perf_error_t *error)
{
    unsigned long long narrows = 0;
    trace_put(file, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"schema_version\":1,\"title\":");
    trace_put_json(file, title);
    trace_put(file, ",\"configuration\":");
    trace_put_json(file, traces[0].subtitle != NULL ? traces[0].subtitle : "");
    trace_put(file, "},\n\"traceEvents\":[\n");
    for (size_t t = 0; t < ntraces; t++)
        for (size_t r = 0; r < traces[t].nranks; r++)
            put_metadata(file, &traces[t], t, r, ntraces > 1);
    for (size_t t = 0; t < ntraces; t++) {
        double origin_us = trace_origin(&traces[t]);
        for (size_t r = 0; r < traces[t].nranks; r++) {
            const trace_rank_t *rank = &traces[t].ranks[r];
            double shift = rank->offset_us - origin_us;
            const trace_span_t **sorted = trace_sorted(rank);
            if (sorted == NULL)
                return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for %s", rank->name);
            for (size_t i = 0; i < rank->nspans; i++) {
                put_span(file, sorted[i], process_of(t, r), shift);
                if (i > 0 && trace_is_handover(sorted[i - 1], sorted[i]))
                    put_arrow(file, sorted[i - 1], sorted[i], process_of(t, r), shift, ++narrows);
            }
            free(sorted);
        }
    }
    trace_put(file, "\n]}\n");
    return true;
}
