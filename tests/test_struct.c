/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule for structs that grow: a program and a library of different versions understand each other. */
#include <stddef.h>

#include "base/base.h"
#include "check.h"

typedef struct older {
    size_t struct_size;
    int a;
} older_t;

typedef struct present {
    size_t struct_size;
    int64_t a;
    int64_t b;
} present_t;

typedef struct later {
    present_t present;
    int64_t c;
    char d;
} later_t;

static void test_copy(void)
{
    present_t known, given = {sizeof given, 1, 2};
    later_t later = {{sizeof later, 3, 4}, 0, 0};

    memset(&known, 0x55, sizeof known);
    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, NULL, "options"), STARLIN_SUCCESS);
    CHECK(known.struct_size == sizeof known && known.a == 0 && known.b == 0);

    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &given, "options"), STARLIN_SUCCESS);
    CHECK(known.struct_size == sizeof known && known.a == 1 && known.b == 2);

    given.struct_size = 0; /* this version's */
    memset(&known, 0x55, sizeof known);
    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &given, "options"), STARLIN_SUCCESS);
    CHECK(known.struct_size == sizeof known && known.a == 1 && known.b == 2);

    given.struct_size = offsetof(present_t, b); /* b is from another time, and what lies there is not read */
    memset(&known, 0x55, sizeof known);
    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &given, "options"), STARLIN_SUCCESS);
    CHECK(known.struct_size == sizeof known && known.a == 1 && known.b == 0);

    given.struct_size = sizeof(size_t); /* nothing but its size */
    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &given, "options"), STARLIN_SUCCESS);
    CHECK(known.struct_size == sizeof known && known.a == 0 && known.b == 0);

    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &later, "options"), STARLIN_SUCCESS);
    CHECK(known.struct_size == sizeof known && known.a == 3 && known.b == 4);
}

static void test_refusals(void)
{
    present_t known = {0, 7, 8}, given = {sizeof(size_t) - 1, 1, 2};
    later_t later = {{sizeof later, 3, 4}, 0, 1};
    char size[32];

    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &given, "plan options"), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "plan options");
    CHECK_CONTAINS(starlin_last_error(), "struct_size is 7");
    CHECK(known.a == 7 && known.b == 8);

    /* the last byte of all counts */
    CHECK_STATUS(starlin__struct_copy(&known, sizeof known, &later, "plan options"), STARLIN_ERR_UNSUPPORTED);
    snprintf(size, sizeof size, "struct_size is %zu", sizeof later);
    CHECK_CONTAINS(starlin_last_error(), size);
    snprintf(size, sizeof size, "knows %zu", sizeof known);
    CHECK_CONTAINS(starlin_last_error(), size);
    CHECK(known.struct_size == sizeof known && known.a == 3 && known.b == 4); /* what it knows is there */
}

static void test_fill(void)
{
    const present_t known = {12345, 5, 6};
    present_t same = {sizeof same, -1, -1}, zero = {0, -1, -1}, small = {offsetof(present_t, b), -1, -1};
    later_t later = {{sizeof later, -1, -1}, -1, 'x'};
    older_t bad = {1, -1};

    CHECK_STATUS(starlin__struct_fill(&same, &known, sizeof known, "info"), STARLIN_SUCCESS);
    CHECK(same.struct_size == sizeof same && same.a == 5 && same.b == 6);
    CHECK_STATUS(starlin__struct_fill(&zero, &known, sizeof known, "info"), STARLIN_SUCCESS);
    CHECK(zero.struct_size == 0 && zero.a == 5 && zero.b == 6);
    CHECK_STATUS(starlin__struct_fill(&small, &known, sizeof known, "info"), STARLIN_SUCCESS);
    CHECK(small.struct_size == offsetof(present_t, b) && small.a == 5 && small.b == -1); /* not written */
    CHECK_STATUS(starlin__struct_fill(&later, &known, sizeof known, "info"), STARLIN_SUCCESS);
    CHECK(later.present.struct_size == sizeof later && later.present.b == 6 && later.c == 0 && later.d == 0);
    CHECK_STATUS(starlin__struct_fill(&bad, &known, sizeof known, "info"), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "info");
    CHECK_EQ_INT(bad.a, -1);
}

int main(void)
{
    test_copy();
    test_refusals();
    test_fill();
    return CHECK_RESULT();
}
