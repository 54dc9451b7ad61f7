/* SPDX-License-Identifier: BSD-3-Clause */
/* What the report and the traces take from a context. */
#ifndef STARLIN_REPORT_API_H
#define STARLIN_REPORT_API_H

#include "record/timeline.h"

/* Effective configuration in one line. */
void starlin__report_configuration(const starlin_context_t *context, char *text, size_t nbytes);

/* A copy of the recorded spans of whole operators, collectives one after the other; the caller frees it with
 * starlin__free(). */
starlin_status_t starlin__report_spans(starlin_context_t *context, starlin__span_t **spans_p,
                                       size_t *nspans_p);

/* starlin_report_create() of given spans. arrival_us: as for starlin__report_make(), may be NULL. */
starlin_status_t starlin__report_from(starlin_context_t *context, const starlin_report_options_t *options,
                                      const starlin__span_t *spans, size_t nspans, const double *arrival_us,
                                      starlin_report_t **report_p);

#endif
