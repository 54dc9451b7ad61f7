/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies between spans and figures. Private to the report's files. */
#ifndef STARLIN_REPORT_WORK_H
#define STARLIN_REPORT_WORK_H

#include "report/report.h"

#define STARLIN__NO_SPAN SIZE_MAX

/* When at least one span of a kind ran: disjoint intervals in time order, for quick sums. */
typedef struct starlin__union {
    size_t n;
    double *first, *last, *before; /* before: sum of the lengths of the earlier ones */
} starlin__union_t;

/* A span with its place in the order of things. Times are relative to the origin. */
typedef struct starlin__work_span {
    const starlin__span_t *span;
    double ready_us, launch_us, start_us, end_us; /* none after the next but ready, launch */
    double peer_us, slow_us; /* of a collective: before the last peer came, beyond the plan */
    double excess_us;        /* of a gemm: what collectives added */
    double beside_us;        /* it ran while the other kind did */
    size_t gemm;             /* of a collective */
    size_t before[3];        /* ended before this one started, and had to: same lane, same chunk, queue */
    double core_us, launch_lag_us, idle_us; /* from the end of those to its start, by cause */
    double replay_end_us;
} starlin__work_span_t;

typedef struct starlin__report_work {
    const starlin__report_input_t *input;
    size_t nspans;
    starlin__work_span_t *spans; /* by operator, chunk, kind */
    size_t *by_start;            /* indices into spans by start */
    size_t *step_of;             /* of each span */
    double *step_first, *step_last;
    size_t nsteps;
    double origin_us;
    double us_per_row; /* of a gemm that no collective ran beside; 0: not known */
    starlin__union_t gemm, comm;
    double *scratch; /* three per span */
} starlin__report_work_t;

static inline double starlin__work_duration(const starlin__work_span_t *span)
{
    return span->end_us - span->start_us;
}

/* Time between two instants with at least one of the spans. */
double starlin__union_between(const starlin__union_t *all, double first_us, double last_us);

/* Finds who waited for whom and why. After the unions are made. */
void starlin__replay_prepare(starlin__report_work_t *work);

/* Splits time_us - ideal_us of a step by cause into exposed_us. */
void starlin__replay_step(starlin__report_work_t *work, size_t step, starlin_report_step_t *out);

/* Fills in means, lanes, collectives and chunks. */
void starlin__report_totals(const starlin__report_work_t *work, starlin_report_t *report);

/* Of the gemms of a step (SIZE_MAX: of all): the factor on their time while a collective ran; 0: not known */
double starlin__report_slowdown(const starlin__report_work_t *work, size_t step);

#endif
