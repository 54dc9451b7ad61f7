/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict numbers and lists. Only decimal digits count as a number: strtoll alone would take "5x", " 5",
 * "" and values beyond its range. */
#define _POSIX_C_SOURCE 200809L
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_decimal(const char *text)
{
    if (*text == '-')
        text++;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (!isdigit((unsigned char)*text))
            return false;
    return true;
}

bool perf_number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *value_p,
                       perf_error_t *error)
{
    if (!is_decimal(text))
        return perf_error_set(error, "%s: '%s' is not a whole number (allowed: %" PRId64 " to %" PRId64 ")",
                              what, text, min, max);
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE || value < min || value > max)
        return perf_error_set(error, "%s: %s is out of range (allowed: %" PRId64 " to %" PRId64 ")", what,
                              text, min, max);
    *value_p = value;
    return true;
}

bool perf_number_u64(const char *what, const char *text, uint64_t *value_p, perf_error_t *error)
{
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    if (!is_decimal(text) || *text == '-' || errno == ERANGE)
        return perf_error_set(error, "%s: '%s' is not a whole number (allowed: 0 to %" PRIu64 ")", what, text,
                              UINT64_MAX);
    *value_p = value;
    return true;
}

bool perf_text_split(const char *text, char separator, bool (*item)(void *arg, const char *piece), void *arg)
{
    for (;;) {
        const char *end = strchr(text, separator);
        size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
        char *piece = strndup(text, length);
        bool ok = piece != NULL && item(arg, piece);
        free(piece);
        if (!ok || end == NULL)
            return ok;
        text = end + 1;
    }
}

typedef struct list {
    const char *what;
    int64_t min, max;
    int64_t *values;
    size_t capacity, count;
    perf_error_t *error;
} list_t;

static bool list_item(void *arg, const char *piece)
{
    list_t *list = arg;
    if (list->count == list->capacity)
        return perf_error_set(list->error, "%s: more than %zu values", list->what, list->capacity);
    if (!perf_number_parse(list->what, piece, list->min, list->max, &list->values[list->count], list->error))
        return false;
    list->count++;
    return true;
}

bool perf_number_list(const char *what, const char *text, int64_t min, int64_t max, int64_t *values,
                      size_t capacity, size_t *count_p, perf_error_t *error)
{
    list_t list = {what, min, max, values, capacity, 0, error};
    if (!perf_text_split(text, ',', list_item, &list))
        return false;
    *count_p = list.count;
    return true;
}
