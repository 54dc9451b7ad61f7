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
    char title[128];
    starlin__trace_t *traces = realloc(recording->traces, (recording->ntraces + 1) * sizeof(*traces));
    if (traces == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "timeline of %zu cases", recording->ntraces + 1);
    recording->traces = traces;
    options.operators_per_step = row->layers;
    options.gemm_us = row->gemm_us > 0 ? row->gemm_us : 0;
    options.comm_us = row->comm_us > 0 ? row->comm_us : 0;
    options.chunking = graph->chunking;
    snprintf(title, sizeof(title), "M %" PRId64 ", N %" PRId64 ", K %" PRId64 ", %s, %zu chunk%s", row->m,
             row->n, row->k, starlin_dtype_name(row->dtype), row->nchunks, row->nchunks == 1 ? "" : "s");
    STARLIN__FORWARD(record(graph));
    STARLIN__FORWARD(starlin__trace_gather(graph->context, title, &options, &traces[recording->ntraces]));
    recording->ntraces++;
    return STARLIN_SUCCESS;
}

starlin_status_t perf_recording_write(const perf_recording_t *recording, const char *path)
{
    return starlin__trace_write(recording->traces, recording->ntraces, "starlin-perf", path);
}

void perf_recording_release(perf_recording_t *recording)
{
    for (size_t i = 0; i < recording->ntraces; i++)
        starlin__trace_release(&recording->traces[i]);
    free(recording->traces);
    *recording = (perf_recording_t){NULL, 0};
}
