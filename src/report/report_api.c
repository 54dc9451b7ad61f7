/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a context: what its timeline holds, and its effective configuration as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/context.h"
#include "report/report.h"
#include "report/report_api.h"

/* A dependent task's launch takes 5 to 8 us behind its predecessor (measured with StarPU 1.4 on an H200);
 * a start that is later than this has waited for something. */
#define DEFAULT_LAUNCH_US 10

starlin_status_t starlin_report_enable(starlin_context_t *context, bool enabled)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: context is NULL");
    if (context->device != NULL && enabled && context->activity == NULL)
        STARLIN__FORWARD(starlin__activity_open(context->device, &context->activity));
    if (context->activity != NULL && enabled)
        STARLIN__FORWARD(starlin__activity_start(context->activity));
    if (!enabled)
        starlin__context_collect(context);
    starlin__timeline_enable(context->timeline, enabled);
    if (context->activity != NULL && !enabled)
        starlin__activity_stop(context->activity);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_report_reset(starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: context is NULL");
    starlin__context_collect(context);
    starlin__timeline_clear(context->timeline);
    return STARLIN_SUCCESS;
}

void starlin__report_configuration(const starlin_context_t *context, char *text, size_t nbytes)
{
    const starlin_context_info_t *info = &context->info;
    snprintf(text, nbytes, "%s + %s on %s, policy %s, StarPU %s%s, %u worker%s x %u BLAS thread%s, %s, %s",
             info->compute, info->comm, info->device, info->policy, info->starpu_version,
             info->adopted ? " (adopted)" : "", info->nworkers, info->nworkers == 1 ? "" : "s",
             info->nblas_threads, info->nblas_threads == 1 ? "" : "s", info->binding, info->host);
}

static int start_compare(const void *a, const void *b)
{
    const starlin__span_t *x = a, *y = b;
    return x->start_us < y->start_us ? -1 : x->start_us > y->start_us;
}

/* The link carries one collective at a time; one that was handed over earlier queues there. It starts when
 * the one before has ended, and launch_us keeps the time at which it was handed over. */
static void serialize_link(starlin__span_t *spans, size_t nspans)
{
    double until_us = 0;
    qsort(spans, nspans, sizeof *spans, start_compare);
    for (size_t i = 0; i < nspans; i++) {
        if (spans[i].kind != STARLIN__SPAN_ALLREDUCE)
            continue;
        if (spans[i].start_us < until_us)
            spans[i].start_us = until_us < spans[i].end_us ? until_us : spans[i].end_us;
        until_us = spans[i].end_us > until_us ? spans[i].end_us : until_us;
    }
}

starlin_status_t starlin__report_spans(starlin_context_t *context, starlin__span_t **spans_p,
                                       size_t *nspans_p)
{
    bool overwritten = false;
    starlin__context_collect(context);
    size_t capacity = starlin__timeline_count(context->timeline, &overwritten);
    starlin__span_t *spans = starlin__alloc((capacity > 0 ? capacity : 1) * sizeof *spans);
    if (spans == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "report: no memory for %zu spans", capacity);
    size_t nread = starlin__timeline_read(context->timeline, spans, capacity), nspans = 0;
    /* spans of the oldest operators may have been overwritten: a part of an operator would mislead */
    uint64_t oldest = UINT64_MAX;
    for (size_t i = 0; i < nread; i++)
        oldest = spans[i].sequence < oldest ? spans[i].sequence : oldest;
    for (size_t i = 0; i < nread; i++)
        if (!overwritten || spans[i].sequence != oldest)
            spans[nspans++] = spans[i];
    serialize_link(spans, nspans);
    *spans_p = spans;
    *nspans_p = nspans;
    return STARLIN_SUCCESS;
}

static starlin_status_t options_read(const starlin_report_options_t *options, starlin_report_options_t *given)
{
    *given = (starlin_report_options_t)STARLIN_REPORT_OPTIONS_INIT;
    if (options == NULL)
        return STARLIN_SUCCESS;
    if (options->struct_size < sizeof(size_t) || options->struct_size > sizeof *given)
        return starlin__error(STARLIN_ERR_INVALID, "report: options.struct_size is %zu, expected %zu",
                              options->struct_size, sizeof *given);
    memcpy(given, options, options->struct_size);
    if (!(given->gemm_us >= 0) || !(given->comm_us >= 0) || !(given->launch_us >= 0))
        return starlin__error(STARLIN_ERR_INVALID,
                              "report: a time is negative (gemm_us %g, comm_us %g, launch_us %g)",
                              given->gemm_us, given->comm_us, given->launch_us);
    return STARLIN_SUCCESS;
}

/* What each collective takes alone, as far as the communicator can tell; 0 elsewhere. */
static void plan_spans(const starlin_context_t *context, const starlin__span_t *spans, size_t nspans,
                       double *planned_us)
{
    const starlin__comm_t *comm = context->comm;
    for (size_t i = 0; i < nspans; i++)
        if (spans[i].kind == STARLIN__SPAN_ALLREDUCE && comm->ops->predict_us != NULL)
            planned_us[i] = comm->ops->predict_us(comm, spans[i].nbytes);
}

starlin_status_t starlin__report_from(starlin_context_t *context, const starlin_report_options_t *options,
                                      const starlin__span_t *spans, size_t nspans, const double *arrival_us,
                                      starlin_report_t **report_p)
{
    starlin_report_options_t given;
    char configuration[1024];
    STARLIN__FORWARD(options_read(options, &given));
    if (nspans == 0)
        return starlin__error(STARLIN_ERR_INVALID, "report: nothing was recorded (recording is %s)",
                              starlin__timeline_enabled(context->timeline) ? "on" : "off");
    double *planned_us = starlin__alloc(nspans * sizeof *planned_us);
    if (planned_us == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "report: no memory for %zu spans", nspans);
    plan_spans(context, spans, nspans, planned_us);
    starlin__report_configuration(context, configuration, sizeof configuration);
    starlin__report_input_t input = {
        .spans = spans,
        .nspans = nspans,
        .planned_us = planned_us,
        .arrival_us = arrival_us,
        .operators_per_step = given.operators_per_step,
        .gemm_us = given.gemm_us,
        .comm_us = given.comm_us,
        .launch_us = given.launch_us > 0 ? given.launch_us : DEFAULT_LAUNCH_US,
        .configuration = configuration,
        .source = context->activity != NULL ? starlin__activity_source(context->activity) : "tasks",
        .fallback = given.chunking != NULL ? starlin_chunking_fallback(given.chunking) : NULL};
    starlin_status_t status = starlin__report_make(&input, report_p);
    starlin__free(planned_us);
    return status;
}

starlin_status_t starlin_report_create(starlin_context_t *context, const starlin_report_options_t *options,
                                       starlin_report_t **report_p)
{
    if (context == NULL || report_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "report: %s is NULL",
                              context == NULL ? "context" : "report_p");
    starlin__span_t *spans = NULL;
    size_t nspans = 0;
    STARLIN__FORWARD(starlin__report_spans(context, &spans, &nspans));
    starlin_status_t status = starlin__report_from(context, options, spans, nspans, NULL, report_p);
    starlin__free(spans);
    return status;
}
