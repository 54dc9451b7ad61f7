/* SPDX-License-Identifier: BSD-3-Clause */
/* Options over environment over defaults, and the text of the modelled link.
 * Numbers are plain decimal, whatever the locale. */
#define _POSIX_C_SOURCE 200809L

#include "base/config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PLAN_MS 4000u

/* With one of these the user has decided where StarPU's threads run. */
static const char *const starpu_binding_variables[] = {"STARPU_WORKERS_CPUID",     "STARPU_WORKERS_COREID",
                                                       "STARPU_WORKERS_GETBIND",   "STARPU_WORKERS_NOBIND",
                                                       "STARPU_MAIN_THREAD_BIND",  "STARPU_MAIN_THREAD_CPUID",
                                                       "STARPU_MAIN_THREAD_COREID"};

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

/* -------------------------------------------------------------- environment */

const char *starlin__environment_get(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

starlin_status_t starlin__environment_set(starlin__environment_t *environment, const char *name,
                                          const char *value)
{
    const char *before = getenv(name);
    char *copy = NULL;

    assert(environment->nchanges < sizeof environment->changes / sizeof environment->changes[0]);
    if (before != NULL) {
        copy = starlin__alloc(strlen(before) + 1);
        if (copy != NULL)
            strcpy(copy, before);
    }
    if ((before != NULL && copy == NULL) || (value != NULL ? setenv(name, value, 1) : unsetenv(name)) != 0) {
        starlin__free(copy);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory to set %s for a while", name);
    }
    environment->changes[environment->nchanges].name = name;
    environment->changes[environment->nchanges++].before = copy;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__environment_default(starlin__environment_t *environment, const char *name,
                                              const char *value)
{
    return getenv(name) != NULL ? STARLIN_SUCCESS : starlin__environment_set(environment, name, value);
}

void starlin__environment_restore(starlin__environment_t *environment)
{
    while (environment->nchanges > 0) {
        const char *name = environment->changes[--environment->nchanges].name;
        char *before = environment->changes[environment->nchanges].before;

        if (before != NULL)
            (void)setenv(name, before, 1);
        else
            (void)unsetenv(name);
        starlin__free(before);
    }
}

bool starlin__environment_cache(const char *name, char *path, size_t size)
{
    const char *cache = starlin__environment_get("XDG_CACHE_HOME");
    const char *home = starlin__environment_get("HOME");
    int length;

    if (cache != NULL && cache[0] == '/') /* a relative one is to be ignored, says its specification */
        length = snprintf(path, size, "%s/starlin/%s", cache, name);
    else if (home != NULL)
        length = snprintf(path, size, "%s/.cache/starlin/%s", home, name);
    else
        return false;
    return length > 0 && (size_t)length < size;
}

/* ------------------------------------------------------------ configuration */

/* The field if it is set, else the variable (NULL: there is none), else the default. */
static starlin_status_t load_text(const char *field, const char *value, const char *variable,
                                  const char *fallback, size_t most, char *text)
{
    bool from_field = value != NULL && value[0] != '\0';

    if (!from_field)
        value = variable != NULL ? starlin__environment_get(variable) : NULL;
    if (value == NULL)
        value = fallback;
    if (strlen(value) > most)
        return starlin__error(
            STARLIN_ERR_INVALID, "%s%s is \"%.40s...\" (%zu characters): allowed are up to %zu",
            from_field ? "options." : "", from_field ? field : variable, value, strlen(value), most);
    memcpy(text, value, strlen(value) + 1);
    return STARLIN_SUCCESS;
}

static starlin_status_t load_number(const char *field, unsigned value, const char *variable, unsigned from,
                                    unsigned to, unsigned *value_p)
{
    const char *text = starlin__environment_get(variable);

    if (value > to)
        return starlin__error(STARLIN_ERR_INVALID, "options.%s is %u: allowed are 0 (unset) to %u", field,
                              value, to);
    if (value == 0 && text == NULL)
        return STARLIN_SUCCESS;
    if (value == 0 && (!parse_unsigned(text, strlen(text), to, &value) || value < from))
        return starlin__error(STARLIN_ERR_INVALID, "%s is \"%.80s\": allowed are whole numbers from %u to %u",
                              variable, text, from, to);
    *value_p = value;
    return STARLIN_SUCCESS;
}

/* *index_p: which of the words the variable is. */
static starlin_status_t load_word(const char *variable, const char *const words[], size_t nwords,
                                  unsigned *index_p)
{
    const char *text = starlin__environment_get(variable);
    char list[80] = "";

    *index_p = 0;
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

#define LOAD_TEXT(field, variable, most, fallback)                                                           \
    STARLIN__FORWARD(load_text(#field, options->field, variable, fallback, most, config.field));
#define LOAD_NUMBER(field, variable, from, to, fallback)                                                     \
    config.field = fallback;                                                                                 \
    STARLIN__FORWARD(load_number(#field, options->field, variable, from, to, &config.field));
#define LOAD_WORD(field, variable, ...)                                                                      \
    STARLIN__FORWARD(load_word(variable, (const char *const[]){__VA_ARGS__},                                 \
                               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), &config.field));

/* STARLIN_WISDOM, or `wisdom` in the user's cache; none where the user has no home. */
static void load_wisdom(starlin__config_t *config)
{
    const char *path = starlin__environment_get("STARLIN_WISDOM");
    int length = 0;

    if (path == NULL && !starlin__environment_cache("wisdom", config->wisdom, sizeof config->wisdom))
        config->wisdom[0] = '\0';
    if (path != NULL && strcmp(path, "off") != 0)
        length = snprintf(config->wisdom, sizeof config->wisdom, "%s", path);
    if (length >= (int)sizeof config->wisdom)
        config->wisdom[0] = '\0';
}

starlin_status_t starlin__config_load(const starlin_context_options_t *options, starlin__config_t *config_p)
{
    static const starlin_context_options_t all_defaults;
    starlin__config_t config;

    memset(&config, 0, sizeof config);
    options = options != NULL ? options : &all_defaults;
    STARLIN__CONFIG_MAP(LOAD_TEXT, LOAD_NUMBER, LOAD_WORD)
    config.plan_ms = DEFAULT_PLAN_MS;
    STARLIN__FORWARD(load_number("", 0, "STARLIN_PLAN_MS", 1, 2147483647, &config.plan_ms));
    load_wisdom(&config);
    config.no_bind_reason = config.bind_none ? "STARLIN_BIND" : NULL;
    for (size_t i = 0; i < sizeof(starpu_binding_variables) / sizeof(starpu_binding_variables[0]); i++)
        if (config.no_bind_reason == NULL && starlin__environment_get(starpu_binding_variables[i]) != NULL)
            config.no_bind_reason = starpu_binding_variables[i];
    config.bind = config.no_bind_reason == NULL;
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

    for (bool more = text != NULL && text[0] != '\0'; more;) {
        size_t length = strcspn(text, ",");

        STARLIN__FORWARD(model_item_parse(text, length, &config, seen));
        more = text[length] == ',';
        text += length + more;
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
