/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording of a few steps for the trace writers. */
#include "recording.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ranks.h"

#define NSTEPS 3

static starlin_status_t record(perf_graph_t *graph)
{
    STARLIN__FORWARD(starlin_report_reset(graph->context));
    STARLIN__FORWARD(starlin_report_enable(graph->context, true));
    for (int step = 0; step < NSTEPS; step++) {
        perf_ranks_barrier();
        STARLIN__FORWARD(perf_graph_run(graph));
    }
    return starlin_report_enable(graph->context, false);
}

starlin_status_t perf_recording_add(perf_recording_t *recording, perf_graph_t *graph, const perf_row_t *row)
{
    starlin_report_options_t options = STARLIN_REPORT_OPTIONS_INIT;
    char title[160];
    starlin__trace_t *traces = realloc(recording->traces, (recording->ntraces + 1) * sizeof(*traces));
    if (traces == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "timeline of %zu cases", recording->ntraces + 1);
    recording->traces = traces;
    options.operators_per_step = row->layers;
    options.gemm_us = row->gemm_us > 0 ? row->gemm_us : 0;
    options.comm_us = row->comm_us > 0 ? row->comm_us : 0;
    options.chunking = graph->chunking;
    snprintf(title, sizeof(title), "%s%sM %" PRId64 ", N %" PRId64 ", K %" PRId64 ", %s, %zu chunk%s",
             row->policy, row->policy[0] != '\0' ? ": " : "", row->m, row->n, row->k,
             starlin_dtype_name(row->dtype), row->nchunks, row->nchunks == 1 ? "" : "s");
    STARLIN__FORWARD(record(graph));
    STARLIN__FORWARD(starlin__trace_gather(graph->context, title, &options, &traces[recording->ntraces]));
    recording->ntraces++;
    return STARLIN_SUCCESS;
}

starlin_status_t perf_recording_write(const perf_recording_t *recording, const char *path)
{
    return starlin__trace_write(recording->traces, recording->ntraces, "starlin-perf", path);
}

/* The text of one report, as long as it is. */
static starlin_status_t print_one(const starlin__trace_t *trace, FILE *stream)
{
    size_t nbytes = starlin_report_print(trace->report, NULL, 0) + 1;
    char *text = malloc(nbytes);
    if (text == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "report of %zu bytes", nbytes);
    starlin_report_print(trace->report, text, nbytes);
    fprintf(stream, "\n# %s\n%s", trace->title, text);
    free(text);
    return STARLIN_SUCCESS;
}

/* All of them in one table, best seen one under the other. */
static starlin_status_t print_comparison(const perf_recording_t *recording, FILE *stream)
{
    size_t n = recording->ntraces;
    const char **titles = calloc(n, sizeof(*titles));
    const starlin_report_t **reports = calloc(n, sizeof(*reports));
    char *text = NULL;
    if (titles != NULL && reports != NULL) {
        for (size_t i = 0; i < n; i++) {
            titles[i] = recording->traces[i].title;
            reports[i] = recording->traces[i].report;
        }
        size_t nbytes = starlin__report_compare(titles, reports, n, NULL, 0) + 1;
        text = malloc(nbytes);
        if (text != NULL)
            starlin__report_compare(titles, reports, n, text, nbytes);
    }
    bool printed = text != NULL && fprintf(stream, "\n%s", text) > 0;
    free(text);
    free(titles);
    free(reports);
    return printed ? STARLIN_SUCCESS : starlin__error(STARLIN_ERR_NO_MEMORY, "comparison of reports");
}

starlin_status_t perf_recording_print(const perf_recording_t *recording, FILE *stream)
{
    for (size_t i = 0; i < recording->ntraces; i++)
        if (recording->traces[i].report != NULL)
            STARLIN__FORWARD(print_one(&recording->traces[i], stream));
    for (size_t i = 0; i < recording->ntraces; i++)
        if (recording->traces[i].report == NULL)
            return STARLIN_SUCCESS;
    return recording->ntraces > 1 ? print_comparison(recording, stream) : STARLIN_SUCCESS;
}

void perf_recording_release(perf_recording_t *recording)
{
    for (size_t i = 0; i < recording->ntraces; i++)
        starlin__trace_release(&recording->traces[i]);
    free(recording->traces);
    *recording = (perf_recording_t){NULL, 0};
}
