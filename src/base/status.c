/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses, error texts, log lines and the small helpers of base.h.
 * Nothing is printed unless STARLIN_LOG asks for it, and every line starts with "starlin: ". */
#define _POSIX_C_SOURCE 200809L

#include "base/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_SIZE        1024
#define STRINGIFY(x)     #x
#define VERSION(a, b, c) STRINGIFY(a) "." STRINGIFY(b) "." STRINGIFY(c)

static _Thread_local char last_error[TEXT_SIZE];

uint64_t starlin__alloc_count;
uint64_t starlin__alloc_fail_at;

const char *starlin_status_string(starlin_status_t status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                                       \
    case STARLIN_##name:                                                                                     \
        return text;
        STARLIN_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *starlin_last_error(void)
{
    return last_error;
}

const char *starlin_version(void)
{
    return VERSION(STARLIN_VERSION_MAJOR, STARLIN_VERSION_MINOR, STARLIN_VERSION_PATCH);
}

size_t starlin_dtype_nbytes(starlin_dtype_t dtype)
{
    switch (dtype) {
    case STARLIN_F32:
        return 4;
    case STARLIN_F64:
        return 8;
    case STARLIN_F16:
    case STARLIN_BF16:
        return 2;
    }
    return 0;
}

const char *starlin_dtype_name(starlin_dtype_t dtype)
{
    switch (dtype) {
    case STARLIN_F32:
        return "f32";
    case STARLIN_F64:
        return "f64";
    case STARLIN_F16:
        return "f16";
    case STARLIN_BF16:
        return "bf16";
    }
    return NULL;
}

/* 0 silent, 1 errors, 2 errors and information. Read each time: lines are rare. */
static int log_level(void)
{
    const char *value = starlin__environment_get("STARLIN_LOG");

    if (value == NULL)
        return 0;
    if (strcmp(value, "error") == 0)
        return 1;
    return strcmp(value, "info") == 0 || strcmp(value, "debug") == 0 ? 2 : 0;
}

starlin_status_t starlin__error(starlin_status_t status, const char *format, ...)
{
    char text[TEXT_SIZE]; /* an argument may be the last error itself */
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(last_error, text, sizeof(text));
    if (log_level() >= 1)
        fprintf(stderr, "starlin: error: %s: %s\n", starlin_status_string(status), text);
    return status;
}

void starlin__log(const char *format, ...)
{
    char text[TEXT_SIZE]; /* one call of fprintf, so that lines of several threads do not mix */
    va_list args;

    if (log_level() < 2)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "starlin: %s\n", text);
}

double starlin__now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

void *starlin__alloc(size_t nbytes)
{
    uint64_t count = __atomic_add_fetch(&starlin__alloc_count, 1, __ATOMIC_RELAXED);

    if (count == __atomic_load_n(&starlin__alloc_fail_at, __ATOMIC_RELAXED))
        return NULL;
    return calloc(1, nbytes > 0 ? nbytes : 1);
}

void starlin__free(void *memory)
{
    free(memory);
}

uint64_t starlin__hash(uint64_t hash, const void *data, size_t nbytes)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < nbytes; i++)
        hash = (hash ^ bytes[i]) * 1099511628211ull;
    return hash;
}

const char *starlin_placement_name(starlin_placement_t placement)
{
    switch (placement) {
#define NAME_CASE(name, value, text)                                                                         \
    case STARLIN_##name:                                                                                     \
        return text;
        STARLIN_PLACEMENT_MAP(NAME_CASE)
    }
    return NULL;
}

const char *starlin_activation_name(starlin_activation_kind_t activation)
{
    switch (activation) {
        STARLIN_ACTIVATION_MAP(NAME_CASE)
#undef NAME_CASE
    }
    return NULL;
}

const char *starlin_operator_name(starlin_operator_t op)
{
    static const char *const names[STARLIN_NOPERATORS] = {
#define NAME_ENTRY(name, text) #text,
        STARLIN_OPERATOR_MAP(NAME_ENTRY)
#undef NAME_ENTRY
    };
    return (unsigned)op < STARLIN_NOPERATORS ? names[op] : NULL;
}

/* The size that struct_size stands for; 0 where it is none. */
static size_t struct_size_of(size_t given_size, size_t known_size, const char *what)
{
    size_t size = given_size != 0 ? given_size : known_size;

    if (size >= sizeof(size_t))
        return size;
    (void)starlin__error(STARLIN_ERR_INVALID, "%s: struct_size is %zu, less than that of struct_size itself",
                         what, size);
    return 0;
}

starlin_status_t starlin__struct_copy(void *known, size_t known_size, const void *given, const char *what)
{
    const unsigned char *bytes = given;
    size_t size = known_size;

    if (given != NULL)
        size = struct_size_of(*(const size_t *)given, known_size, what);
    if (size == 0)
        return STARLIN_ERR_INVALID;
    memset(known, 0, known_size);
    if (given != NULL)
        memcpy(known, given, size < known_size ? size : known_size);
    *(size_t *)known = known_size;
    for (size_t i = known_size; i < size; i++) {
        if (bytes[i] != 0)
            return starlin__error(
                STARLIN_ERR_UNSUPPORTED,
                "%s: struct_size is %zu, this version knows %zu, and something beyond is set", what, size,
                known_size);
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__struct_fill(void *given, const void *known, size_t known_size, const char *what)
{
    size_t given_size = *(const size_t *)given, size = struct_size_of(given_size, known_size, what);

    if (size == 0)
        return STARLIN_ERR_INVALID;
    memcpy(given, known, size < known_size ? size : known_size);
    if (size > known_size)
        memset((unsigned char *)given + known_size, 0, size - known_size);
    *(size_t *)given = given_size;
    return STARLIN_SUCCESS;
}
