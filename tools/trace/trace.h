/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: the spans of all ranks in one file, to be looked at. Three writers: Chrome/Perfetto trace events
 * (.json), a self-contained page (.html), a figure (.svg). Names of operators and of stages come with the
 * spans; nothing here knows one. */
#ifndef STARLIN_TRACE_H
#define STARLIN_TRACE_H

#include <starlin/starlin_report.h>

#include "file.h"

/* One stage of one chunk, as starlin_report_span_t; without pointers, so that ranks can send it. */
typedef struct trace_span {
    int32_t kind; /* starlin_report_kind_t */
    uint32_t lane, chunk, grid;
    uint64_t sequence;
    int64_t rows;
    double nbytes, ready_us, launch_us, start_us, end_us;
    char op[32], stage[32];
    uint8_t is_link;
} trace_span_t;

typedef struct trace_rank {
    const char *name; /* "rank 0 (host)" */
    double offset_us; /* add it to the rank's times to get the trace's common clock */
    const trace_span_t *spans;
    size_t nspans;
} trace_rank_t;

/* Figures of one step, or of their means. */
typedef struct trace_step {
    starlin_report_step_t figures;
    double exposed_us[STARLIN_NCAUSES];
} trace_step_t;

/* A report, copied out. */
typedef struct trace_report {
    starlin_report_summary_t summary; /* its texts belong to whoever made it */
    trace_step_t mean;
    size_t nsteps, nlanes, ncollectives, nchunks;
    const trace_step_t *steps;
    const starlin_report_lane_t *lanes;
    const starlin_report_collective_t *collectives;
    const int64_t *rows; /* of each chunk */
} trace_report_t;

/* One timeline. Several in one file lie under each other, each from its own zero, to be compared. */
typedef struct trace {
    const char *title;    /* of the timeline, such as a policy's name */
    const char *subtitle; /* its configuration; may be NULL */
    size_t nranks;
    const trace_rank_t *ranks;
    const trace_report_t *report; /* may be NULL */
    size_t report_rank;           /* whose it is */
} trace_t;

/* Writes the file whose type its name ends in: .json, .html or .svg, whole or not at all (file.h).
 *   title   of the whole file
 * False: another ending, no spans at all, no memory, or the file cannot be written. */
bool trace_write(const trace_t *traces, size_t ntraces, const char *title, const char *path,
                 perf_error_t *error);

/* Would the ending do? For checking a command line before anything runs. */
bool trace_check_path(const char *path);

/* When the last rank had started each collective of `rank`, on that rank's clock; 0 for other spans and for
 * those that not every rank has recorded. arrival_us: one per span. False: no memory. */
bool trace_arrivals(const trace_t *trace, size_t rank, double *arrival_us);

/* The largest cause of a step's time beyond the ideal. */
starlin_cause_t trace_worst_cause(const trace_step_t *step);

/* ------------------------------------------------ what the writers share */

void trace_put(perf_file_t *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trace_put_raw(perf_file_t *file, const char *text, size_t nbytes);
void trace_put_json(perf_file_t *file, const char *text); /* quoted; safe inside a script element */
void trace_put_xml(perf_file_t *file, const char *text);
/* A number, or null for one that is not finite. */
void trace_put_number(perf_file_t *file, double number, int digits);

/* Earliest time of a trace on its common clock. */
double trace_origin(const trace_t *trace);

/* Spans of a rank by operator, chunk and start, so that the stages of a chunk are neighbours; for free().
 * NULL: no memory. */
const trace_span_t **trace_sorted(const trace_rank_t *rank);
/* Does `next` come right behind `before` in the same chunk of the same operator, one of them a collective? */
bool trace_is_handover(const trace_span_t *before, const trace_span_t *next);

/* A lane's number in a file: workers and streams as they are, links from TRACE_LINK on. */
enum { TRACE_LINK = 1000 };
unsigned trace_lane(const trace_span_t *span);
unsigned trace_lane_number(unsigned lane, bool is_link);
void trace_lane_name(unsigned number, char *name, size_t size);
/* Numbers of a rank's lanes, rising; returns how many (at most `capacity` are stored). */
size_t trace_lanes(const trace_rank_t *rank, unsigned *lanes, size_t capacity);

typedef bool (*trace_writer_fn_t)(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                                  perf_error_t *error);
bool trace_write_json(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                      perf_error_t *error);
bool trace_write_html(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                      perf_error_t *error);
bool trace_write_svg(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                     perf_error_t *error);

#endif
