/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors, strict numbers, lists. Only decimal digits count as a number: strtoll alone would take "5x", " 5",
 * "" and values beyond its range. */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIMILAR_LIMIT = 255 }; /* characters of a name that are compared */

bool perf_error_set(perf_error_t *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    error->status = STARLIN_ERR_INVALID;
    return false;
}

bool perf_error_status(perf_error_t *error, starlin_status_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    error->status = status;
    return false;
}

bool perf_ok(starlin_status_t status, perf_error_t *error)
{
    return status == STARLIN_SUCCESS || perf_error_status(error, status, "%s", starlin_last_error());
}

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

bool perf_text_split(const char *text, char separator, bool (*item)(void *arg, const char *part), void *arg)
{
    for (;;) {
        const char *end = strchr(text, separator);
        size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
        char *part = strndup(text, length);
        bool ok = part != NULL && item(arg, part);
        free(part);
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

static bool list_item(void *arg, const char *part)
{
    list_t *list = arg;
    if (list->count == list->capacity)
        return perf_error_set(list->error, "%s: more than %zu values", list->what, list->capacity);
    if (!perf_number_parse(list->what, part, list->min, list->max, &list->values[list->count], list->error))
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

/* Levenshtein's distance with one row of the table. */
size_t perf_similar_distance(const char *a, const char *b)
{
    size_t row[SIMILAR_LIMIT + 1];
    size_t na = strnlen(a, SIMILAR_LIMIT), nb = strnlen(b, SIMILAR_LIMIT);
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < other ? replaced : other;
        }
    }
    return row[nb];
}

double perf_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}
