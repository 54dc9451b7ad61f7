/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that print both values, stay on in release builds and count failures. */
#ifndef STARLIN_TESTS_CHECK_H
#define STARLIN_TESTS_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "starlin/starlin.h"

static int check_failures;
static int check_count;

#define CHECK_FAIL(...)                                                                                      \
    do {                                                                                                     \
        check_failures++;                                                                                    \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                      \
        fprintf(stderr, __VA_ARGS__);                                                                        \
        fputc('\n', stderr);                                                                                 \
    } while (0)

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        check_count++;                                                                                       \
        if (!(condition))                                                                                    \
            CHECK_FAIL("failed: %s", #condition);                                                            \
    } while (0)

#define CHECK_EQ_INT(actual, expected)                                                                       \
    do {                                                                                                     \
        int64_t actual__ = (int64_t)(actual), expected__ = (int64_t)(expected);                              \
        check_count++;                                                                                       \
        if (actual__ != expected__)                                                                          \
            CHECK_FAIL("%s is %" PRId64 ", expected %" PRId64, #actual, actual__, expected__);               \
    } while (0)

#define CHECK_EQ_STR(actual, expected)                                                                       \
    do {                                                                                                     \
        const char *actual__ = (actual), *expected__ = (expected);                                           \
        check_count++;                                                                                       \
        if (actual__ == NULL || strcmp(actual__, expected__) != 0)                                           \
            CHECK_FAIL("%s is \"%s\", expected \"%s\"", #actual, actual__ ? actual__ : "(null)",             \
                       expected__);                                                                          \
    } while (0)

#define CHECK_CONTAINS(text, part)                                                                           \
    do {                                                                                                     \
        const char *text__ = (text), *part__ = (part);                                                       \
        check_count++;                                                                                       \
        if (text__ == NULL || strstr(text__, part__) == NULL)                                                \
            CHECK_FAIL("\"%s\" does not contain \"%s\"", text__ ? text__ : "(null)", part__);                \
    } while (0)

#define CHECK_STATUS(call, expected)                                                                         \
    do {                                                                                                     \
        starlin_status_t status__ = (call);                                                                  \
        check_count++;                                                                                       \
        if (status__ != (expected))                                                                          \
            CHECK_FAIL("%s is \"%s\" (%s), expected \"%s\"", #call, starlin_status_string(status__),         \
                       starlin_last_error(), starlin_status_string(expected));                               \
    } while (0)

/* 0 when every check held and at least one was made. */
#define CHECK_RESULT() (check_count == 0 ? (fprintf(stderr, "no check was made\n"), 1) : check_failures != 0)

#endif
