/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: the spans of all ranks in one file, to be looked at. Three writers: Chrome/Perfetto trace events
 * (.json), a self-contained page (.html), a figure (.svg). */
#ifndef STARLIN_TRACE_H
#define STARLIN_TRACE_H

#include <stdio.h>

#include "report/report.h"

typedef struct starlin__trace_rank {
    const char *name; /* "rank 0 (host)" */
    double offset_us; /* add it to the rank's times to get the trace's common clock */
    const starlin__span_t *spans;
    size_t nspans;
} starlin__trace_rank_t;

/* One timeline. Several in one file lie under each other, each from its own zero, to be compared. */
typedef struct starlin__trace {
    const char *title;    /* of the timeline, such as a policy's name */
    const char *subtitle; /* its configuration; may be NULL */
    size_t nranks;
    const starlin__trace_rank_t *ranks;
    const starlin_report_t *report; /* may be NULL */
    size_t report_rank;             /* whose it is */
} starlin__trace_t;

/* Writes the file whose type its name ends in: .json, .html or .svg. It is written beside its place and
 * renamed when complete, so that a reader never sees half of it; on failure nothing is left.
 *   title   of the whole file
 * Errors: ERR_INVALID (another ending, no spans at all, or the file cannot be written: the text says why). */
starlin_status_t starlin__trace_write(const starlin__trace_t *traces, size_t ntraces, const char *title,
                                      const char *path);

/* Would the ending do? For checking a command line before anything runs. */
starlin_status_t starlin__trace_check_path(const char *path);

/* When the last rank had started each collective of `rank`, on that rank's clock; 0 for other spans and for
 * those that not every rank has recorded. Input of starlin__report_make(). arrival_us: one per span. */
starlin_status_t starlin__trace_arrivals(const starlin__trace_t *trace, size_t rank, double *arrival_us);

/* Collects the recorded spans of every rank on every rank, with their clocks' offsets to rank 0 measured
 * (0 between ranks of one host), and makes a report of this rank's with late peers told apart.
 *   options   as for starlin_report_create(); may be NULL
 * Collective; blocks. Free with starlin__trace_release(). */
starlin_status_t starlin__trace_gather(starlin_context_t *context, const char *title,
                                       const starlin_report_options_t *options, starlin__trace_t *trace_p);
void starlin__trace_release(starlin__trace_t *trace);

/* ------------------------------------------------ what the writers share */

/* A file being written; the first failure is kept. */
typedef struct starlin__sink {
    FILE *file;
    int failed; /* errno, 0: none */
} starlin__sink_t;

void starlin__sink_put(starlin__sink_t *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
void starlin__sink_raw(starlin__sink_t *sink, const char *text, size_t nbytes);
void starlin__sink_json(starlin__sink_t *sink, const char *text); /* quoted; safe inside a script element */
void starlin__sink_xml(starlin__sink_t *sink, const char *text);

/* Earliest time of a trace on its common clock. */
double starlin__trace_origin(const starlin__trace_t *trace);

/* Spans of a rank by operator, chunk and kind, so that a gemm and its collective are neighbours; freed with
 * starlin__free(). NULL when out of memory. */
const starlin__span_t **starlin__trace_sorted(const starlin__trace_rank_t *rank);

/* Lanes of a rank, rising, the link last; returns how many (at most `capacity` are stored). */
size_t starlin__trace_lanes(const starlin__trace_rank_t *rank, unsigned *lanes, size_t capacity);

const char *starlin__span_name(starlin__span_kind_t kind);

typedef starlin_status_t (*starlin__trace_writer_fn_t)(starlin__sink_t *sink, const starlin__trace_t *traces,
                                                       size_t ntraces, const char *title);
starlin_status_t starlin__trace_write_json(starlin__sink_t *sink, const starlin__trace_t *traces,
                                           size_t ntraces, const char *title);
starlin_status_t starlin__trace_write_html(starlin__sink_t *sink, const starlin__trace_t *traces,
                                           size_t ntraces, const char *title);
starlin_status_t starlin__trace_write_svg(starlin__sink_t *sink, const starlin__trace_t *traces,
                                          size_t ntraces, const char *title);

#endif
