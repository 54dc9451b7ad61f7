/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as a pure function from spans to figures. No clock, no context. */
#ifndef STARLIN_REPORT_H
#define STARLIN_REPORT_H

#include "record/timeline.h"
#include "starlin/starlin_report.h"

typedef struct starlin__report_input {
    const starlin__span_t *spans; /* in any order; copied */
    size_t nspans;
    starlin_report_options_t options; /* but for chunking */
    const char *configuration;        /* for people; copied. May be NULL */
    const char *fallback;             /* copied. May be NULL */
    const char *source;               /* static; NULL: "tasks" */
} starlin__report_input_t;

/* ERR_INVALID: no spans, a time that is not finite, or a span that ends before it starts. */
starlin_status_t starlin__report_make(const starlin__report_input_t *input, starlin_report_t **report_p);

#endif
