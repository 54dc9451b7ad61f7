/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace events as chrome://tracing and Perfetto read them: a process per rank, a thread per lane, an arrow
 * from each gemm to its collective. Times are microseconds from the trace's first instant. */
#include <math.h>

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

static void put_metadata(starlin__sink_t *sink, const starlin__trace_t *trace, size_t t, size_t r,
                         bool several)
{
    const starlin__trace_rank_t *rank = &trace->ranks[r];
    unsigned long process = process_of(t, r);
    char name[512];
    snprintf(name, sizeof name, "%s%s%s", several ? trace->title : "", several ? ": " : "", rank->name);
    starlin__sink_put(sink,
                      "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%lu,\"tid\":0,\"args\":{\"name\":",
                      t + r == 0 ? "" : ",\n", process);
    starlin__sink_json(sink, name);
    starlin__sink_put(sink,
                      "}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%lu,\"tid\":0,"
                      "\"args\":{\"sort_index\":%lu}}",
                      process, process);
    unsigned lanes[NLANES_MAX];
    size_t nlanes = starlin__trace_lanes(rank, lanes, NLANES_MAX);
    for (size_t i = 0; i < nlanes && i < NLANES_MAX; i++) {
        if (lanes[i] >= STARLIN__LANE_LINK)
            snprintf(name, sizeof name, "link");
        else
            snprintf(name, sizeof name, "lane %u", lanes[i]);
        starlin__sink_put(sink,
                          ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%lu,\"tid\":%u,\"args\":"
                          "{\"name\":\"%s\"}}"
                          ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%lu,\"tid\":%u,\"args\":"
                          "{\"sort_index\":%u}}",
                          process, thread_of(lanes[i]), name, process, thread_of(lanes[i]), lanes[i]);
    }
}

static void put_span(starlin__sink_t *sink, const starlin__span_t *span, unsigned long process, double shift)
{
    starlin__sink_put(sink,
                      ",\n{\"ph\":\"X\",\"name\":\"%s %llu.%u\",\"cat\":\"%s\",\"pid\":%lu,\"tid\":%u,"
                      "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"operator\":%llu,\"chunk\":%u,\"rows\":%lld",
                      starlin__span_name(span->kind), (unsigned long long)span->sequence, span->chunk,
                      starlin__span_name(span->kind), process, thread_of(span->lane), span->start_us + shift,
                      span->end_us - span->start_us, (unsigned long long)span->sequence, span->chunk,
                      (long long)span->rows);
    if (span->nbytes > 0)
        starlin__sink_put(sink, ",\"bytes\":%.0f", span->nbytes);
    if (span->grid > 0)
        starlin__sink_put(sink, ",\"ctas\":%u", span->grid);
    if (span->ready_us > 0)
        starlin__sink_put(sink, ",\"ready_to_start_us\":%.3f", span->start_us - span->ready_us);
    if (span->launch_us > 0)
        starlin__sink_put(sink, ",\"launch_to_start_us\":%.3f", span->start_us - span->launch_us);
    starlin__sink_put(sink, "}}");
}

/* An arrow starts inside the gemm's slice (its end does not count as inside) and ends at the collective's. */
static void put_arrow(starlin__sink_t *sink, const starlin__span_t *gemm, const starlin__span_t *comm,
                      unsigned long process, double shift, unsigned long long id)
{
    double from_us = fmax(gemm->start_us, gemm->end_us - 0.002) + shift;
    starlin__sink_put(sink,
                      ",\n{\"ph\":\"s\",\"name\":\"chunk\",\"cat\":\"chunk\",\"id\":%llu,\"pid\":%lu,"
                      "\"tid\":%u,\"ts\":%.3f}"
                      ",\n{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"chunk\",\"cat\":\"chunk\",\"id\":%llu,"
                      "\"pid\":%lu,\"tid\":%u,\"ts\":%.3f}",
                      id, process, thread_of(gemm->lane), from_us, id, process, thread_of(comm->lane),
                      comm->start_us + shift);
}

starlin_status_t starlin__trace_write_json(starlin__sink_t *sink, const starlin__trace_t *traces,
                                           size_t ntraces, const char *title)
{
    unsigned long long narrows = 0;
    starlin__sink_put(sink, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"schema_version\":1,\"title\":");
    starlin__sink_json(sink, title);
    starlin__sink_put(sink, ",\"configuration\":");
    starlin__sink_json(sink, traces[0].subtitle != NULL ? traces[0].subtitle : "");
    starlin__sink_put(sink, "},\n\"traceEvents\":[\n");
    for (size_t t = 0; t < ntraces; t++)
        for (size_t r = 0; r < traces[t].nranks; r++)
            put_metadata(sink, &traces[t], t, r, ntraces > 1);
    for (size_t t = 0; t < ntraces; t++) {
        double origin_us = starlin__trace_origin(&traces[t]);
        for (size_t r = 0; r < traces[t].nranks; r++) {
            const starlin__trace_rank_t *rank = &traces[t].ranks[r];
            double shift = rank->offset_us - origin_us;
            const starlin__span_t **sorted = starlin__trace_sorted(rank);
            if (sorted == NULL)
                return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for %s", rank->name);
            for (size_t i = 0; i < rank->nspans; i++) {
                const starlin__span_t *span = sorted[i], *before = i > 0 ? sorted[i - 1] : span;
                put_span(sink, span, process_of(t, r), shift);
                if (span->kind == STARLIN__SPAN_ALLREDUCE && before->kind == STARLIN__SPAN_GEMM &&
                    before->sequence == span->sequence && before->chunk == span->chunk)
                    put_arrow(sink, before, span, process_of(t, r), shift, ++narrows);
            }
            starlin__free(sorted);
        }
    }
    starlin__sink_put(sink, "\n]}\n");
    return STARLIN_SUCCESS;
}
