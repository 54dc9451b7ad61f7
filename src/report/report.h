/* SPDX-License-Identifier: BSD-3-Clause */
/* The report: a pure function from spans to figures. No clock, no context. */
#ifndef STARLIN_REPORT_H
#define STARLIN_REPORT_H

#include "record/timeline.h"

typedef struct starlin__report_input {
    const starlin__span_t *spans; /* in any order */
    size_t nspans;
    const double *planned_us;  /* per span: what it takes alone, 0: not known. May be NULL */
    const double *arrival_us;  /* per span: when the last rank had started this collective, 0: not known.
                                  May be NULL */
    size_t operators_per_step; /* at least so many make a step; those that overlap in time always do */
    double gemm_us, comm_us;   /* of an operator, in one piece and alone; 0: estimated from the spans */
    double launch_us;          /* a start that is late by no more than this is launch latency */
    const char *configuration; /* for people; copied. May be NULL */
    const char *fallback;      /* copied. May be NULL */
    const char *source;        /* static; NULL: "tasks" */
} starlin__report_input_t;

/* ERR_INVALID: no spans, a time that is not finite, or a span that ends before it starts. */
starlin_status_t starlin__report_make(const starlin__report_input_t *input, starlin_report_t **report_p);

/* A table of several reports for people, one line each; as starlin_report_print(). */
size_t starlin__report_compare(const char *const *titles, const starlin_report_t *const *reports, size_t n,
                               char *text, size_t nbytes);

#endif
