/* SPDX-License-Identifier: BSD-3-Clause */
/* The 1st, 2nd, 3rd ... allocation fails in turn: each call reports it, nothing leaks (the sanitizers see to
 * that), nothing hangs, and a later run works. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "base/base.h"
#include "linear.h"

enum { MOST_ALLOCATIONS = 200 };

static linear_t problem(starlin_context_t *context)
{
    return (linear_t){.context = context,
                      .m = 8,
                      .n = 5,
                      .k = 3,
                      .dtype = STARLIN_BF16,
                      .reduction = STARLIN_REDUCTION_F32,
                      .count = 3};
}

/* From now on the allocation `at` (1: the next) fails; 0: none. */
static void fail_at(uint64_t at)
{
    starlin__alloc_fail_at = at == 0 ? 0 : starlin__alloc_count + at;
}

/* Did it fail for lack of memory? Success means that fewer allocations are made. */
static bool is_refused(starlin_status_t status)
{
    if (status == STARLIN_SUCCESS)
        return false;
    CHECK_EQ_INT(status, STARLIN_ERR_NO_MEMORY);
    CHECK(starlin_last_error()[0] != '\0');
    return true;
}

static uint64_t test_context(void)
{
    for (uint64_t at = 1; at < MOST_ALLOCATIONS; at++) {
        starlin_context_t *context = NULL;
        starlin_status_t status;
        fail_at(at);
        status = starlin_context_create(NULL, &context);
        fail_at(0);
        if (is_refused(status)) {
            CHECK(context == NULL);
            continue;
        }
        if (context != NULL) { /* what could do without that memory must work */
            linear_t linear = problem(context);
            linear_check(&linear);
        }
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
        return at - 1;
    }
    CHECK_FAIL("%d allocations do not suffice", MOST_ALLOCATIONS);
    return 0;
}

/* From the plan to the first result. */
static starlin_status_t run_once(linear_t *linear)
{
    starlin_status_t status = linear_open(linear);
    if (status == STARLIN_SUCCESS)
        status = linear_submit(linear);
    if (status == STARLIN_SUCCESS)
        status = starlin_matrix_wait(linear->y);
    return status;
}

static uint64_t test_operator(size_t count)
{
    for (uint64_t at = 1; at < MOST_ALLOCATIONS; at++) {
        starlin_context_t *context = NULL;
        linear_t linear;
        bool refused;

        CHECK_STATUS(starlin_context_create(NULL, &context), STARLIN_SUCCESS);
        linear = problem(context);
        linear.count = count;
        fail_at(at);
        refused = is_refused(run_once(&linear));
        fail_at(0);
        if (refused && linear.y != NULL) /* the same operator again, now with memory */
            CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
        if (linear.y != NULL) {
            CHECK_STATUS(starlin_matrix_wait(linear.y), STARLIN_SUCCESS);
            CHECK_EQ_INT(linear_wrong(&linear), 0);
        }
        linear_close(&linear);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
        if (!refused)
            return at - 1;
    }
    CHECK_FAIL("%d allocations do not suffice", MOST_ALLOCATIONS);
    return 0;
}

/* There is no memory for a larger operator: the smaller one before it still works. */
static uint64_t test_second_operator(void)
{
    starlin_context_t *context = NULL;
    linear_t small, large;
    bool refused = true;
    uint64_t at = 0;

    CHECK_STATUS(starlin_context_create(NULL, &context), STARLIN_SUCCESS);
    small = large = problem(context);
    large.k = 40;
    CHECK_STATUS(run_once(&small), STARLIN_SUCCESS);
    CHECK_STATUS(linear_open(&large), STARLIN_SUCCESS);
    while (refused && ++at < MOST_ALLOCATIONS) {
        fail_at(at);
        refused = is_refused(linear_submit(&large));
        fail_at(0);
        memset(small.y_data, 0, (size_t)(small.m * small.n) * starlin_dtype_nbytes(small.dtype));
        CHECK_STATUS(linear_submit(&small), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
        CHECK_EQ_INT(linear_wrong(&small), 0);
    }
    CHECK_EQ_INT(linear_wrong(&large), 0);
    linear_close(&small);
    linear_close(&large);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return at - 1;
}

int main(void)
{
    uint64_t nallocations;

    setenv("STARPU_SILENT", "1", 0);
    nallocations = test_context();
    printf("context: %d allocations failed in turn\n", (int)nallocations);
    CHECK(nallocations >= 5);
    for (size_t count = 0; count < 4; count += 3) { /* automatic, then three chunks */
        nallocations = test_operator(count);
        printf("operator, %s: %d allocations failed in turn\n", count == 0 ? "auto" : "3 chunks",
               (int)nallocations);
        CHECK(nallocations >= 8);
    }
    nallocations = test_second_operator();
    printf("second operator: %d allocations failed in turn\n", (int)nallocations);
    CHECK(nallocations >= 3);
    return CHECK_RESULT();
}
