/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording of a few steps for the trace writers. Every rank sends its spans to rank 0, with its clock's
 * offset. Ranks of one host share a clock; between hosts an exchange returns on all ranks at nearly the same
 * time, and the median difference of many returns is the offset. */
#define _POSIX_C_SOURCE 200809L
#include "recording.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NSTEPS = 3, NROUNDS = 31 };

struct perf_record {
    trace_t trace;
    trace_report_t figures;
    char *text; /* of the report, for people */
    char title[160];
    starlin_report_t *report; /* owns what figures point at */
    trace_rank_t *ranks;
    char (*names)[300];
    trace_span_t *spans; /* of all ranks, one after the other */
    trace_step_t *steps;
    starlin_report_lane_t *lanes;
    starlin_report_collective_t *collectives;
    int64_t *rows;
};

typedef struct hello {
    char host[256];
    uint64_t nspans;
    double clock_us[NROUNDS]; /* when each exchange returned */
} hello_t;

static bool no_memory(perf_error_t *error)
{
    return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a timeline");
}

static bool run_steps(perf_graph_t *graph, perf_error_t *error)
{
    if (!perf_ok(starlin_report_reset(graph->context), error) ||
        !perf_ok(starlin_report_enable(graph->context, true), error))
        return false;
    for (int step = 0; step < NSTEPS; step++) {
        perf_ranks_barrier();
        if (!perf_graph_run(graph, error))
            return false;
    }
    return true;
}

/* The report is made while recording is on, since switching it off forgets. */
static bool make_report(perf_record_t *record, perf_graph_t *graph, const perf_row_t *row,
                        perf_error_t *error)
{
    starlin_report_options_t options = STARLIN_REPORT_OPTIONS_INIT;
    options.operators_per_step = row->layers;
    options.compute_us = row->gemm_us > 0 ? row->gemm_us * row->layers : 0;
    options.comm_us = row->comm_us > 0 ? row->comm_us * row->layers : 0;
    options.serial_us = row->serial_us > 0 ? row->serial_us * row->layers : 0;
    options.chunking = graph->chunking;
    return run_steps(graph, error) &&
           perf_ok(starlin_report_create(graph->context, &options, &record->report), error) &&
           perf_ok(starlin_report_enable(graph->context, false), error);
}

static bool copy_spans(const starlin_report_t *report, trace_span_t *spans, perf_error_t *error)
{
    for (size_t i = 0; i < starlin_report_nspans(report); i++) {
        starlin_report_span_t span = {.struct_size = sizeof(span)};
        if (!perf_ok(starlin_report_span(report, i, &span), error))
            return false;
        trace_span_t *to = &spans[i];
        memset(to, 0, sizeof(*to));
        to->kind = (int32_t)span.kind;
        to->lane = span.lane;
        to->is_link = span.is_link;
        to->sequence = span.sequence;
        to->chunk = span.chunk;
        to->grid = span.grid;
        to->rows = span.rows;
        to->nbytes = span.nbytes;
        to->ready_us = span.ready_us;
        to->launch_us = span.launch_us;
        to->start_us = span.start_us;
        to->end_us = span.end_us;
        snprintf(to->op, sizeof(to->op), "%s", span.op != NULL ? span.op : "operator");
        snprintf(to->stage, sizeof(to->stage), "%s", span.stage != NULL ? span.stage : "stage");
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double clock_offset(const hello_t *reference, const hello_t *other)
{
    double differences[NROUNDS];
    if (strcmp(reference->host, other->host) == 0)
        return 0;
    for (int i = 0; i < NROUNDS; i++)
        differences[i] = reference->clock_us[i] - other->clock_us[i];
    qsort(differences, NROUNDS, sizeof(differences[0]), compare);
    return differences[NROUNDS / 2];
}

/* Everyone learns everyone's host, number of spans and clock. */
static void exchange_hellos(const starlin_context_info_t *info, uint64_t nspans, hello_t *hellos)
{
    hello_t mine = {.nspans = nspans};
    snprintf(mine.host, sizeof(mine.host), "%s", info->host);
    for (int i = 0; i < NROUNDS; i++) {
        perf_ranks_gather(&mine.nspans, sizeof(mine.nspans), hellos);
        mine.clock_us[i] = perf_now_us();
    }
    perf_ranks_gather(&mine, sizeof(mine), hellos);
}

/* The timeline on every rank is that of its own spans and, on rank 0, those of all. */
static bool assemble(perf_record_t *record, const perf_ranks_t *ranks, const hello_t *hellos,
                     const trace_span_t *mine, perf_error_t *error)
{
    size_t nranks = (size_t)ranks->nranks, total = 0;
    size_t *nbytes = malloc(nranks * sizeof(*nbytes));
    for (size_t r = 0; nbytes != NULL && r < nranks; r++) {
        nbytes[r] = hellos[r].nspans * sizeof(trace_span_t);
        total += hellos[r].nspans;
    }
    record->spans = malloc((ranks->rank == 0 ? total : 0) * sizeof(trace_span_t) + 1);
    record->ranks = calloc(nranks, sizeof(*record->ranks));
    record->names = calloc(nranks, sizeof(*record->names));
    perf_error_t lacking;
    bool here = nbytes != NULL && record->spans != NULL && record->ranks != NULL && record->names != NULL;
    if (perf_agree_count(ranks, here || no_memory(&lacking) ? NULL : &lacking) > 0) {
        free(nbytes);
        return no_memory(error);
    }
    perf_ranks_collect(mine, nbytes, record->spans);
    free(nbytes);
    for (size_t r = 0, first = 0; r < nranks; first += hellos[r].nspans, r++) {
        snprintf(record->names[r], sizeof(record->names[r]), "rank %zu (%s)", r, hellos[r].host);
        record->ranks[r] = (trace_rank_t){.name = record->names[r],
                                          .offset_us = clock_offset(&hellos[0], &hellos[r]),
                                          .spans = ranks->rank == 0 ? record->spans + first : NULL,
                                          .nspans = ranks->rank == 0 ? hellos[r].nspans : 0};
    }
    record->trace.ranks = record->ranks;
    record->trace.nranks = nranks;
    return true;
}

static bool gather(perf_record_t *record, const perf_ranks_t *ranks, const starlin_context_info_t *info,
                   perf_error_t *error)
{
    size_t nspans = starlin_report_nspans(record->report);
    hello_t *hellos = calloc((size_t)ranks->nranks, sizeof(*hellos));
    trace_span_t *mine = malloc(nspans * sizeof(*mine) + 1);
    bool ok = (hellos != NULL && mine != NULL) || no_memory(error);
    ok = ok && copy_spans(record->report, mine, error);
    perf_error_t why = ok ? (perf_error_t){.text = ""} : *error;
    if (perf_agree_count(ranks, ok ? NULL : &why) > 0) {
        free(hellos);
        free(mine);
        return ok ? perf_error_status(error, STARLIN_ERR_RUNTIME, "another rank has no timeline") : false;
    }
    exchange_hellos(info, nspans, hellos);
    ok = assemble(record, ranks, hellos, mine, error);
    free(hellos);
    free(mine);
    return ok;
}

/* Late peers told apart from a slow link. */
static bool set_arrivals(perf_record_t *record, perf_error_t *error)
{
    size_t nspans = record->ranks[0].nspans;
    double *arrival_us = malloc(nspans * sizeof(*arrival_us) + 1);
    bool ok = (arrival_us != NULL && trace_arrivals(&record->trace, 0, arrival_us)) || no_memory(error);
    ok = ok && perf_ok(starlin_report_set_arrivals(record->report, arrival_us, nspans), error);
    free(arrival_us);
    return ok;
}

static bool copy_step(const starlin_report_t *report, size_t i, trace_step_t *step, perf_error_t *error)
{
    step->figures.struct_size = sizeof(step->figures);
    for (int cause = 0; cause < STARLIN_NCAUSES; cause++)
        step->exposed_us[cause] = starlin_report_exposed_us(report, i, (starlin_cause_t)cause);
    return perf_ok(starlin_report_step(report, i, &step->figures), error);
}

static bool copy_lists(perf_record_t *record, perf_error_t *error)
{
    const starlin_report_t *report = record->report;
    trace_report_t *figures = &record->figures;
    bool ok = copy_step(report, STARLIN_REPORT_MEAN, &figures->mean, error);
    for (size_t i = 0; ok && i < figures->nsteps; i++)
        ok = copy_step(report, i, &record->steps[i], error);
    for (size_t i = 0; ok && i < figures->nlanes; i++) {
        record->lanes[i].struct_size = sizeof(record->lanes[i]);
        ok = perf_ok(starlin_report_lane(report, i, &record->lanes[i]), error);
    }
    for (size_t i = 0; ok && i < figures->ncollectives; i++) {
        record->collectives[i].struct_size = sizeof(record->collectives[i]);
        ok = perf_ok(starlin_report_collective(report, i, &record->collectives[i]), error);
    }
    for (size_t i = 0; i < figures->nchunks; i++)
        record->rows[i] = starlin_report_chunk_rows(report, i);
    return ok;
}

static bool copy_report(perf_record_t *record, perf_error_t *error)
{
    const starlin_report_t *report = record->report;
    trace_report_t *figures = &record->figures;
    figures->summary.struct_size = sizeof(figures->summary);
    if (!perf_ok(starlin_report_summary(report, &figures->summary), error))
        return false;
    figures->nsteps = starlin_report_nsteps(report);
    figures->nlanes = starlin_report_nlanes(report);
    figures->ncollectives = starlin_report_ncollectives(report);
    figures->nchunks = figures->summary.nchunks;
    figures->steps = record->steps = calloc(figures->nsteps + 1, sizeof(*record->steps));
    figures->lanes = record->lanes = calloc(figures->nlanes + 1, sizeof(*record->lanes));
    figures->collectives = record->collectives =
        calloc(figures->ncollectives + 1, sizeof(*record->collectives));
    figures->rows = record->rows = calloc(figures->nchunks + 1, sizeof(*record->rows));
    size_t nbytes = starlin_report_print(report, NULL, 0) + 1;
    record->text = malloc(nbytes);
    if (record->steps == NULL || record->lanes == NULL || record->collectives == NULL ||
        record->rows == NULL || record->text == NULL)
        return no_memory(error);
    starlin_report_print(report, record->text, nbytes);
    return copy_lists(record, error);
}

static void release(perf_record_t *record)
{
    starlin_report_destroy(record->report);
    free(record->text);
    free(record->ranks);
    free(record->names);
    free(record->spans);
    free(record->steps);
    free(record->lanes);
    free(record->collectives);
    free(record->rows);
}

bool perf_recording_add(perf_recording_t *recording, const perf_ranks_t *ranks, perf_graph_t *graph,
                        const perf_row_t *row, perf_error_t *error)
{
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;
    perf_record_t *records = realloc(recording->records, (recording->nrecords + 1) * sizeof(*records));
    if (records == NULL)
        return no_memory(error);
    recording->records = records;
    perf_record_t record;
    memset(&record, 0, sizeof(record));
    snprintf(record.title, sizeof(record.title),
             "%s%sM %" PRId64 ", N %" PRId64 ", K %" PRId64 ", %s, %zu chunk%s", row->policy,
             row->policy[0] != '\0' ? ": " : "", row->m, row->n, row->k, starlin_dtype_name(row->dtype),
             row->nchunks, row->nchunks == 1 ? "" : "s");
    bool ok = perf_ok(starlin_context_get_info(graph->context, &info), error) &&
              make_report(&record, graph, row, error) && gather(&record, ranks, &info, error);
    if (ok && ranks->rank == 0)
        ok = set_arrivals(&record, error) && copy_report(&record, error);
    if (!ok) {
        release(&record);
        return false;
    }
    records[recording->nrecords++] = record;
    return true;
}

/* Records may have been moved since. */
static void point(perf_record_t *record)
{
    record->trace.title = record->title;
    record->trace.subtitle = record->figures.summary.configuration;
    record->trace.report = &record->figures;
}

bool perf_recording_write(const perf_recording_t *recording, const char *path, perf_error_t *error)
{
    trace_t *traces = malloc(recording->nrecords * sizeof(*traces) + 1);
    if (traces == NULL)
        return no_memory(error);
    for (size_t i = 0; i < recording->nrecords; i++) {
        point(&recording->records[i]);
        traces[i] = recording->records[i].trace;
    }
    bool ok = trace_write(traces, recording->nrecords, "starlin-perf", path, error);
    free(traces);
    return ok;
}

/* One line per case, best seen one under the other. */
static void print_comparison(const perf_recording_t *recording, FILE *stream)
{
    double best_us = INFINITY;
    int width = 16;
    for (size_t i = 0; i < recording->nrecords; i++) {
        const perf_record_t *record = &recording->records[i];
        best_us = fmin(best_us, record->figures.summary.median_us);
        width = (int)strlen(record->title) > width ? (int)strlen(record->title) : width;
    }
    fprintf(stream, "\n#%*s %12s %8s %12s %8s %12s  %s\n", width - 1, "", "time", "to best", "ideal",
            "hidden", "beyond", "mostly because");
    fprintf(stream, "#%*s %12s %8s %12s %8s %12s\n", width - 1, "", "(us)", "", "(us)", "(%)", "(us)");
    for (size_t i = 0; i < recording->nrecords; i++) {
        const trace_report_t *figures = &recording->records[i].figures;
        const starlin_report_step_t *mean = &figures->mean.figures;
        char hidden[32] = "-";
        if (isfinite(mean->hidden_pct))
            snprintf(hidden, sizeof(hidden), "%.1f", mean->hidden_pct);
        fprintf(stream, "%*s %12.1f %8.3f %12.1f %8s %12.1f  %s\n", width, recording->records[i].title,
                figures->summary.median_us, figures->summary.median_us / best_us, mean->ideal_us, hidden,
                mean->time_us - mean->ideal_us, starlin_cause_text(trace_worst_cause(&figures->mean)));
    }
}

void perf_recording_print(const perf_recording_t *recording, FILE *stream)
{
    for (size_t i = 0; i < recording->nrecords; i++)
        fprintf(stream, "\n# %s\n%s", recording->records[i].title, recording->records[i].text);
    if (recording->nrecords > 1)
        print_comparison(recording, stream);
}

void perf_recording_release(perf_recording_t *recording)
{
    for (size_t i = 0; i < recording->nrecords; i++)
        release(&recording->records[i]);
    free(recording->records);
    *recording = (perf_recording_t){NULL, 0};
}
