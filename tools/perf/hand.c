/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link's parameters and times, and the registry of hands. */
#define _POSIX_C_SOURCE 200809L
#include "hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_decimal(const char *name, const char *text, double *value_p, perf_error_t *error)
{
    char *end;
    double value = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
    if (value < 0 || *end != '\0' || !(value < 1e12))
        return perf_error_set(error, "--comm: model: %s is '%.32s', not a decimal number >= 0", name, text);
    *value_p = value;
    return true;
}

static bool parse_count(const char *name, const char *text, int64_t min, int64_t max, unsigned *value_p,
                        perf_error_t *error)
{
    char what[48];
    int64_t value;
    snprintf(what, sizeof(what), "--comm: model: %s", name);
    if (!perf_number_parse(what, text, min, max, &value, error))
        return false;
    *value_p = (unsigned)value;
    return true;
}

typedef struct parser {
    perf_link_t *link;
    perf_error_t *error;
} parser_t;

static bool parse_item(void *arg, const char *part)
{
    parser_t *parser = arg;
    const char *equals = strchr(part, '=');
    size_t length = equals != NULL ? (size_t)(equals - part) : 0;
    if (length == 4 && strncmp(part, "gbps", 4) == 0)
        return parse_decimal("gbps", equals + 1, &parser->link->gbps, parser->error);
    if (length == 10 && strncmp(part, "latency_us", 10) == 0)
        return parse_decimal("latency_us", equals + 1, &parser->link->latency_us, parser->error);
    if (length == 4 && strncmp(part, "ctas", 4) == 0)
        return parse_count("ctas", equals + 1, 1, 1024, &parser->link->ctas, parser->error);
    if (length == 5 && strncmp(part, "ranks", 5) == 0)
        return parse_count("ranks", equals + 1, 2, 1048576, &parser->link->ranks, parser->error);
    return perf_error_set(parser->error,
                          "--comm: model: unknown parameter '%.64s' (allowed: gbps=, latency_us=, ctas=, "
                          "ranks=)",
                          part);
}

bool perf_link_parse(const char *text, perf_link_t *link_p, perf_error_t *error)
{
    perf_link_t link = {.modelled = true, .ctas = 8, .ranks = 2};
    parser_t parser = {&link, error};
    const char *colon = strchr(text, ':');
    if (colon != NULL && !perf_text_split(colon + 1, ',', parse_item, &parser))
        return false;
    if (!(link.gbps > 0))
        return perf_error_set(error,
                              "--comm: model needs gbps > 0, as in model:gbps=1,latency_us=50,ranks=4");
    *link_p = link;
    return true;
}

double perf_link_time_us(const perf_link_t *link, const perf_collective_t *collective, int nranks)
{
    bool all = collective->kind == PERF_ALLREDUCE;
    double nbytes = (double)(collective->count * starlin_dtype_nbytes(collective->dtype));
    double share = (all ? 2.0 : nranks) * (link->ranks - 1) / link->ranks;
    return link->latency_us + share * nbytes / (link->gbps * 1e3); /* 1 GB/s moves 1e3 bytes in 1 us */
}

/* A build has what it was linked with. */
extern const perf_hand_ops_t perf_hand_cblas_ops __attribute__((weak));
extern const perf_hand_ops_t perf_hand_cublas_ops __attribute__((weak));

const perf_hand_ops_t *perf_hand_find(const starlin_context_info_t *info)
{
    const perf_hand_ops_t *hands[] = {&perf_hand_cublas_ops, &perf_hand_cblas_ops};
    for (size_t i = 0; i < sizeof(hands) / sizeof(hands[0]); i++)
        if (hands[i] != NULL && hands[i]->fits(info))
            return hands[i];
    return NULL;
}
