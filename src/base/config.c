/* SPDX-License-Identifier: BSD-3-Clause */
/* Options over environment over defaults, and the text of the modelled link.
 * An empty variable counts as unset. Numbers are plain decimal, whatever the locale. */
#define _POSIX_C_SOURCE 200809L

#include "base/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIMEOUT_MS 300000u
#define MAX_TIMEOUT_MS     2147483647u
#define MAX_CTAS           1024u

/* Size of the options in the first release: what a caller built against any release has at least. */
#define FIRST_OPTIONS_SIZE (offsetof(starlin_context_options_t, mpi_comm) + sizeof(int))

/* With one of these the user has decided where StarPU's threads run. */
static const char *const starpu_binding_variables[] = {"STARPU_WORKERS_CPUID",     "STARPU_WORKERS_COREID",
                                                       "STARPU_WORKERS_GETBIND",   "STARPU_WORKERS_NOBIND",
                                                       "STARPU_MAIN_THREAD_BIND",  "STARPU_MAIN_THREAD_CPUID",
                                                       "STARPU_MAIN_THREAD_COREID"};

static const char *variable_get(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Digits only; false when the text is anything else or beyond `max`. */
static bool parse_unsigned(const char *text, size_t length, unsigned max, unsigned *value_p)
{
    uint64_t value = 0;

    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > max)
            return false;
    }
    *value_p = (unsigned)value;
    return true;
}

/* Digits with at most one point; no sign, exponent, hexadecimal, inf or nan. */
static bool parse_decimal(const char *text, size_t length, double *value_p)
{
    double value = 0, scale = 1;
    bool point = false, digits = false;

    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9')
            return false;
        digits = true;
        value = value * 10 + (text[i] - '0');
        if (point)
            scale *= 10;
    }
    value /= scale; /* one rounding for up to 15 digits */
    if (!digits || !isfinite(value))
        return false;
    *value_p = value;
    return true;
}

/* The field if it is set, else the variable (NULL: there is none), else the default. */
static starlin_status_t load_text(const char *field, const char *value, const char *variable,
                                  const char *default_value, size_t size, char *text)
{
    bool from_field = value != NULL && value[0] != '\0';

    if (!from_field)
        value = variable != NULL ? variable_get(variable) : NULL;
    if (value == NULL)
        value = default_value;
    if (strlen(value) >= size)
        return starlin__error(
            STARLIN_ERR_INVALID, "%s%s is \"%.40s...\" (%zu characters): allowed are up to %zu",
            from_field ? "options." : "", from_field ? field : variable, value, strlen(value), size - 1);
    memcpy(text, value, strlen(value) + 1);
    return STARLIN_SUCCESS;
}

static starlin_status_t load_unsigned(const char *field, unsigned value, const char *variable, unsigned min,
                                      unsigned max, unsigned *value_p)
{
    const char *text;

    if (value != 0) {
        if (value > max)
            return starlin__error(STARLIN_ERR_INVALID, "options.%s is %u: allowed are 0 (unset) to %u", field,
                                  value, max);
        *value_p = value;
        return STARLIN_SUCCESS;
    }
    text = variable_get(variable);
    if (text == NULL)
        return STARLIN_SUCCESS;
    if (!parse_unsigned(text, strlen(text), max, &value) || value < min)
        return starlin__error(STARLIN_ERR_INVALID, "%s is \"%.80s\": allowed are whole numbers from %u to %u",
                              variable, text, min, max);
    *value_p = value;
    return STARLIN_SUCCESS;
}

/* *index_p: which of the words the variable is; unchanged when it is unset. */
static starlin_status_t load_word(const char *variable, const char *const words[], unsigned nwords,
                                  unsigned *index_p)
{
    const char *text = variable_get(variable);
    char list[80] = "";

    if (text == NULL)
        return STARLIN_SUCCESS;
    for (unsigned i = 0; i < nwords; i++) {
        size_t used = strlen(list);

        if (strcmp(text, words[i]) == 0) {
            *index_p = i;
            return STARLIN_SUCCESS;
        }
        snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return starlin__error(STARLIN_ERR_INVALID, "%s is \"%.80s\": allowed are %s", variable, text, list);
}

static starlin_status_t load_switches(starlin__config_t *config)
{
    static const char *const bind_words[] = {"auto", "none"};
    static const char *const share_words[] = {"0", "1"};
    static const char *const log_words[] = {"error", "info", "debug"};
    static const char *const trial_words[] = {"on", "off"};
    unsigned bind_none = 0, share = 0, level = 0, trial_off = 0;

    STARLIN__FORWARD(load_word("STARLIN_BIND", bind_words, 2, &bind_none));
    STARLIN__FORWARD(load_word("STARLIN_SHARE_GPU", share_words, 2, &share));
    STARLIN__FORWARD(load_word("STARLIN_LOG", log_words, 3, &level));
    STARLIN__FORWARD(load_word("STARLIN_TRIAL", trial_words, 2, &trial_off));
    config->trial = trial_off == 0;
    config->share_gpu = share == 1;
    config->no_bind_reason = bind_none ? "STARLIN_BIND" : NULL;
    for (size_t i = 0; i < sizeof(starpu_binding_variables) / sizeof(starpu_binding_variables[0]); i++)
        if (config->no_bind_reason == NULL && variable_get(starpu_binding_variables[i]) != NULL)
            config->no_bind_reason = starpu_binding_variables[i];
    config->bind = config->no_bind_reason == NULL;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__config_load(const starlin_context_options_t *options, starlin__config_t *config_p)
{
    starlin_context_options_t known = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin__config_t config = {.timeout_ms = DEFAULT_TIMEOUT_MS};

    if (options != NULL) {
        size_t size = options->struct_size;

        if (size < FIRST_OPTIONS_SIZE || size > sizeof(known))
            return starlin__error(STARLIN_ERR_INVALID,
                                  "options.struct_size is %zu: allowed are %zu to %zu; "
                                  "start from STARLIN_CONTEXT_OPTIONS_INIT",
                                  size, FIRST_OPTIONS_SIZE, sizeof(known));
        memcpy(&known, options, size); /* what an older caller does not have stays zero */
    }
    STARLIN__FORWARD(load_text("comm", known.comm, "STARLIN_COMM", "auto", sizeof(config.comm), config.comm));
    STARLIN__FORWARD(load_text("compute", known.compute, "STARLIN_COMPUTE", "auto", sizeof(config.compute),
                               config.compute));
    STARLIN__FORWARD(load_text("policy", known.policy, NULL, "", sizeof(config.policy), config.policy));
    STARLIN__FORWARD(
        load_unsigned("max_ctas", known.max_ctas, "STARLIN_MAX_CTAS", 0, MAX_CTAS, &config.max_ctas));
    STARLIN__FORWARD(load_unsigned("timeout_ms", known.timeout_ms, "STARLIN_TIMEOUT_MS", 1, MAX_TIMEOUT_MS,
                                   &config.timeout_ms));
    STARLIN__FORWARD(load_switches(&config));
    *config_p = config;
    return STARLIN_SUCCESS;
}

/* -------------------------------------------------------------- modelled link */

enum model_field { MODEL_GBPS, MODEL_LATENCY_US, MODEL_CTAS, MODEL_RANKS, MODEL_NFIELDS };

static const struct {
    const char *name;
    const char *allowed;
} model_fields[MODEL_NFIELDS] = {{"gbps", "a decimal number above 0, in GB/s"},
                                 {"latency_us", "a decimal number from 0, in microseconds"},
                                 {"ctas", "a whole number from 1 to 1024"},
                                 {"ranks", "a whole number from 2 to 1048576"}};

static bool model_field_set(starlin__model_config_t *config, unsigned field, const char *value, size_t length)
{
    switch (field) {
    case MODEL_GBPS:
        return parse_decimal(value, length, &config->gbps) && config->gbps > 0;
    case MODEL_LATENCY_US:
        return parse_decimal(value, length, &config->latency_us);
    case MODEL_CTAS:
        return parse_unsigned(value, length, 1024, &config->ctas) && config->ctas >= 1;
    default:
        return parse_unsigned(value, length, 1048576, &config->ranks) && config->ranks >= 2;
    }
}

/* One "name=value" of `length` characters. */
static starlin_status_t model_item_parse(const char *item, size_t length, starlin__model_config_t *config,
                                         bool seen[MODEL_NFIELDS])
{
    const char *equals = memchr(item, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - item) : length;
    size_t value_length = equals != NULL ? length - name_length - 1 : 0;
    int shown = length < 80 ? (int)length : 80;
    unsigned field = 0;

    while (field < MODEL_NFIELDS && (strlen(model_fields[field].name) != name_length ||
                                     memcmp(model_fields[field].name, item, name_length) != 0))
        field++;
    if (field == MODEL_NFIELDS)
        return starlin__error(
            STARLIN_ERR_INVALID,
            "model: unknown field \"%.*s\": allowed are gbps=, latency_us=, ctas=, ranks=", shown, item);
    if (seen[field])
        return starlin__error(STARLIN_ERR_INVALID, "model: %s is given twice (\"%.*s\")",
                              model_fields[field].name, shown, item);
    seen[field] = true;
    if (equals == NULL || !model_field_set(config, field, equals + 1, value_length))
        return starlin__error(STARLIN_ERR_INVALID, "model: \"%.*s\": %s is %s", shown, item,
                              model_fields[field].name, model_fields[field].allowed);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__model_config_parse(const char *text, starlin__model_config_t *config_p)
{
    starlin__model_config_t config = {.gbps = 0, .latency_us = 0, .ctas = 8, .ranks = 2};
    bool seen[MODEL_NFIELDS] = {false};

    if (text == NULL || text[0] == '\0')
        return starlin__error(STARLIN_ERR_INVALID, "model: gbps is missing; it is %s",
                              model_fields[MODEL_GBPS].allowed);
    for (;;) {
        size_t length = strcspn(text, ",");

        STARLIN__FORWARD(model_item_parse(text, length, &config, seen));
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    config.ctas_given = seen[MODEL_CTAS];
    if (!seen[MODEL_GBPS])
        return starlin__error(STARLIN_ERR_INVALID, "model: gbps is missing; it is %s",
                              model_fields[MODEL_GBPS].allowed);
    *config_p = config;
    return STARLIN_SUCCESS;
}

double starlin__model_config_time_us(const starlin__model_config_t *config, double nbytes)
{
    double share = 2.0 * (config->ranks - 1) / config->ranks;

    return config->latency_us + share * nbytes / (config->gbps * 1e3); /* 1 GB/s moves 1e3 bytes in 1 us */
}
