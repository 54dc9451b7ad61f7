/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank lacks memory, the 1st, 2nd, 3rd ... time that it asks: planning ends on every rank alike, soon,
 * and works when there is memory again. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "check.h"
#include "graph/context.h"
#include "linear.h"
#include "world.h"

enum { TIMEOUT_MS = 5000 };

static starlin_status_t plan(starlin_context_t *context, starlin_dtype_t dtype)
{
    starlin_operation_t operations[2] = {STARLIN_OPERATION_INIT, STARLIN_OPERATION_INIT};
    starlin_chunking_t *rows = NULL;
    starlin_status_t status;

    for (int i = 0; i < 2; i++) {
        operations[i].op = STARLIN_OP_ROW_LINEAR;
        operations[i].n = 48 - 8 * i;
        operations[i].k = 256;
        operations[i].dtype = dtype;
    }
    status = starlin_chunking_plan(context, 64, operations, 2, NULL, &rows);
    starlin_chunking_destroy(rows);
    return status;
}

static uint64_t count_allocations(starlin_context_t *context, starlin_dtype_t dtype)
{
    uint64_t before = starlin__alloc_count;
    CHECK_STATUS(plan(context, dtype), STARLIN_SUCCESS);
    return starlin__alloc_count - before;
}

/* Rank 0's allocation of operands fails. */
static void test_operand(starlin_context_t *context, starlin_dtype_t dtype, uint64_t at)
{
    double start_us = starlin__now_us();
    starlin_status_t status;

    if (world_rank == 0)
        starlin__alloc_fail_at = starlin__alloc_count + at;
    status = plan(context, dtype);
    starlin__alloc_fail_at = 0;
    /* where the arguments are compared, the ranks hear of it there; the text says what failed */
    CHECK(status == STARLIN_ERR_NO_MEMORY ||
          (status == STARLIN_ERR_MISMATCH && strstr(starlin_last_error(), "refused (") != NULL));
    CHECK(starlin__now_us() - start_us < 0.9e3 * TIMEOUT_MS);
    CHECK_STATUS(plan(context, dtype), STARLIN_SUCCESS);
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(TIMEOUT_MS);
    if (context != NULL) {
        /* the first two are the exchange of the arguments */
        for (uint64_t at = 3; at <= 5; at++)
            test_operand(context, STARLIN_F32, at);
        /* the list itself; the last two are the exchange behind it */
        test_operand(context, STARLIN_F32,
                     count_allocations(context, STARLIN_F32) - (world_nranks > 1 ? 2 : 0));
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return world_end();
}
