/* SPDX-License-Identifier: BSD-3-Clause */
/* A link that takes longer than the time limit: waits end with the limit, not with the link, and so does the
 * context. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "check.h"
#include "graph/context.h"
#include "linear.h"

int main(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    linear_t linear = {.m = 8, .n = 5, .k = 3, .count = 4};
    double start_us;

    setenv("STARPU_SILENT", "1", 0);
    options.comm = "model:gbps=1,latency_us=60000000";
    options.timeout_ms = 300;
    CHECK_STATUS(starlin_context_create(&options, &linear.context), STARLIN_SUCCESS);
    if (linear.context == NULL)
        return CHECK_RESULT();
    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    start_us = starlin__now_us();
    CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(linear.y), STARLIN_ERR_TIMEOUT);
    CHECK_CONTAINS(starlin_last_error(), "300 ms");
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_ERR_TIMEOUT);
    CHECK(starlin__now_us() - start_us < 10e6);
    return CHECK_RESULT();
}
