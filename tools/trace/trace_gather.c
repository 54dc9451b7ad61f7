/* SPDX-License-Identifier: BSD-3-Clause */
/* The spans of all ranks in one place, and how far their clocks are apart. Ranks of one host share a clock.
 * Between hosts an exchange returns on all ranks at nearly the same time: the median difference of many
 * returns is the offset. */
#include <stdio.h>
#include <string.h>

#include "graph/context.h"
#include "base/numbers.h"
#include "report/report_api.h"
#include "trace.h"

#define NROUNDS 31

typedef struct hello {
    char host[256];
    uint64_t nspans;
    double clock_us[NROUNDS]; /* when each exchange returned */
} hello_t;

static double clock_offset(const hello_t *reference, const hello_t *other)
{
    double differences[NROUNDS];
    if (strcmp(reference->host, other->host) == 0)
        return 0;
    for (int i = 0; i < NROUNDS; i++)
        differences[i] = reference->clock_us[i] - other->clock_us[i];
    starlin__numbers_sort(differences, NROUNDS);
    return differences[NROUNDS / 2];
}

/* Everyone learns everyone's host, number of spans and clock. */
static starlin_status_t hello_exchange(starlin_context_t *context, uint64_t nspans, hello_t *hellos)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    unsigned timeout_ms = context->config.timeout_ms;
    hello_t mine = {.nspans = nspans};
    snprintf(mine.host, sizeof mine.host, "%s", context->host);
    for (int i = 0; i < NROUNDS; i++) {
        STARLIN__FORWARD(
            bootstrap->ops->allgather(bootstrap, &mine.nspans, sizeof mine.nspans, hellos, timeout_ms));
        mine.clock_us[i] = starlin__now_us();
    }
    return bootstrap->ops->allgather(bootstrap, &mine, sizeof mine, hellos, timeout_ms);
}

/* Everyone gets the spans of everyone: `all` has nmost slots a rank. A rank without memory takes part. */
static starlin_status_t spans_exchange(starlin_context_t *context, const starlin__span_t *spans,
                                       size_t nspans, size_t nmost, starlin__span_t *all)
{
    starlin__span_t *padded = starlin__alloc(nmost * sizeof *padded);
    int nranks = context->bootstrap->nranks, ready = padded != NULL && all != NULL;
    int *others = starlin__alloc((size_t)nranks * sizeof *others);
    if (others == NULL) {
        starlin__free(padded);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for %d ranks", nranks);
    }
    starlin_status_t status = context->bootstrap->ops->allgather(context->bootstrap, &ready, sizeof ready,
                                                                 others, context->config.timeout_ms);
    for (int r = 0; r < nranks && status == STARLIN_SUCCESS; r++)
        if (!others[r])
            status = starlin__error(STARLIN_ERR_NO_MEMORY, "trace: rank %d has no memory for %zu spans", r,
                                    nmost * (size_t)nranks);
    if (status == STARLIN_SUCCESS) {
        memcpy(padded, spans, nspans * sizeof *padded);
        status = context->bootstrap->ops->allgather(context->bootstrap, padded, nmost * sizeof *padded, all,
                                                    context->config.timeout_ms);
    }
    starlin__free(others);
    starlin__free(padded);
    return status;
}

/* The trace's memory: one block of ranks, one of spans, one of names. */
static starlin_status_t trace_assemble(starlin_context_t *context, const hello_t *hellos,
                                       const starlin__span_t *all, size_t nmost, const char *title,
                                       starlin__trace_t *trace)
{
    size_t nranks = (size_t)context->bootstrap->nranks, nname = sizeof hellos->host + 32;
    starlin__trace_rank_t *ranks = starlin__alloc(nranks * (sizeof *ranks + nname));
    char *texts = starlin__alloc(strlen(title) + 1 + 1024);
    *trace = (starlin__trace_t){.ranks = ranks, .title = texts};
    if (ranks == NULL || texts == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for %zu ranks", nranks);
    strcpy(texts, title);
    trace->subtitle = texts + strlen(title) + 1;
    starlin__report_configuration(context, texts + strlen(title) + 1, 1024);
    trace->nranks = nranks;
    trace->report_rank = (size_t)context->bootstrap->rank;
    for (size_t r = 0; r < nranks; r++) {
        char *name = (char *)(ranks + nranks) + r * nname;
        snprintf(name, nname, "rank %zu (%s)", r, hellos[r].host);
        ranks[r] = (starlin__trace_rank_t){.name = name,
                                           .offset_us = clock_offset(&hellos[0], &hellos[r]),
                                           .spans = all + r * nmost,
                                           .nspans = hellos[r].nspans};
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t trace_collect(starlin_context_t *context, const starlin__span_t *spans, size_t nspans,
                                      const char *title, starlin__trace_t *trace)
{
    size_t nranks = (size_t)context->bootstrap->nranks, nmost = 1;
    hello_t *hellos = starlin__alloc(nranks * sizeof *hellos);
    if (hellos == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for %zu ranks", nranks);
    starlin_status_t status = hello_exchange(context, nspans, hellos);
    if (status == STARLIN_SUCCESS) {
        for (size_t r = 0; r < nranks; r++)
            nmost = hellos[r].nspans > nmost ? hellos[r].nspans : nmost;
        starlin__span_t *all = starlin__alloc(nranks * nmost * sizeof *all);
        status = spans_exchange(context, spans, nspans, nmost, all);
        if (status == STARLIN_SUCCESS)
            status = trace_assemble(context, hellos, all, nmost, title, trace);
        if (status != STARLIN_SUCCESS)
            starlin__free(all);
    }
    starlin__free(hellos);
    return status;
}

starlin_status_t starlin__trace_gather(starlin_context_t *context, const char *title,
                                       const starlin_report_options_t *options, starlin__trace_t *trace_p)
{
    starlin__span_t *spans = NULL;
    size_t nspans = 0;
    starlin__trace_t trace = {0};
    STARLIN__FORWARD(starlin__report_spans(context, &spans, &nspans));
    starlin_status_t status = trace_collect(context, spans, nspans, title, &trace);
    starlin__free(spans);
    if (status == STARLIN_SUCCESS && nspans > 0) {
        double *arrival_us = starlin__alloc(nspans * sizeof *arrival_us);
        if (arrival_us == NULL)
            status = starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for %zu spans", nspans);
        else
            status = starlin__trace_arrivals(&trace, trace.report_rank, arrival_us);
        if (status == STARLIN_SUCCESS)
            status = starlin__report_from(context, options, trace.ranks[trace.report_rank].spans, nspans,
                                          arrival_us, (starlin_report_t **)&trace.report);
        starlin__free(arrival_us);
    }
    if (status == STARLIN_SUCCESS)
        *trace_p = trace;
    else
        starlin__trace_release(&trace);
    return status;
}

void starlin__trace_release(starlin__trace_t *trace)
{
    if (trace->ranks != NULL)
        starlin__free((void *)trace->ranks[0].spans); /* one block for all ranks */
    starlin__free((void *)trace->ranks);
    starlin__free((void *)trace->title);
    starlin_report_destroy((starlin_report_t *)trace->report);
    memset(trace, 0, sizeof *trace);
}
