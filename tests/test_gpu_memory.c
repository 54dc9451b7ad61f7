/* SPDX-License-Identifier: BSD-3-Clause */
/* Lack of device memory is an error, never a hang: the library's own allocations, and matrices in host
 * memory, for which StarPU allocates on the device (STARPU_LIMIT_CUDA_MEM limits that). What fits is computed
 * afterwards, also where not all of it fits at a time. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "check.h"
#include "gpu.h"
#include "operand.h"

enum { LIMIT_MB = 48, LIMIT_S = 150 };

static starlin_context_t *open_context(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;

    options.timeout_ms = 30000;
    CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    return context;
}

/* x and y cut into chunks, all values in host memory; sums of ones. `expected`: what the operator returns. */
static void run_host(starlin_context_t *context, int64_t m, int64_t n, int64_t k, size_t count,
                     starlin_status_t expected_status)
{
    starlin_chunking_t *rows = plan_rows(context, m, count);
    int8_t *ones = malloc((size_t)(m > n ? m : n) * (size_t)k);
    int32_t *expected = malloc((size_t)(m * n) * sizeof *expected);
    operand_t x, w, y;

    memset(ones, 1, (size_t)(m > n ? m : n) * (size_t)k);
    for (int64_t i = 0; i < m * n; i++)
        expected[i] = (int32_t)k;
    bool is_open = operand_open(&x, context, rows, STARLIN_SHARD_COLS, m, k, 0, STARLIN_F32, HOST, ones);
    is_open &= operand_open(&w, context, NULL, STARLIN_REPLICATE, n, k, 0, STARLIN_F32, HOST, ones);
    is_open &= operand_open(&y, context, rows, STARLIN_REPLICATE, m, n, 0, STARLIN_F32, HOST, NULL);
    if (is_open)
        CHECK_STATUS(starlin_row_linear(context, x.matrix, w.matrix, y.matrix, NULL), expected_status);
    if (is_open && expected_status == STARLIN_SUCCESS)
        CHECK_EQ_INT(operand_wrong(&y, expected, NULL, NULL), 0);
    else
        CHECK_CONTAINS(starlin_last_error(), "bytes");
    operand_close(&x);
    operand_close(&w);
    operand_close(&y);
    starlin_chunking_destroy(rows);
    free(ones);
    free(expected);
}

/* 8.4 TB in the library's memory: refused with the size, and the context is as good as before. */
static void test_library_memory(starlin_context_t *context)
{
    enum { ROWS = 256 * 1024, COLS = 4000000, COUNT = 256 };
    starlin_matrix_layout_t layout = {.cols = COLS, .dtype = STARLIN_F64};
    starlin_chunking_t *rows = plan_rows(context, ROWS, COUNT);
    starlin_matrix_t *matrix = NULL;

    CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &matrix), STARLIN_ERR_NO_MEMORY);
    CHECK(matrix == NULL);
    CHECK_CONTAINS(starlin_last_error(), "83886080000");
    CHECK_CONTAINS(starlin_last_error(), "bytes");
    starlin_matrix_destroy(matrix);
    starlin_chunking_destroy(rows);
    run_host(context, 64, 32, 16, 4, STARLIN_SUCCESS);
}

int main(void)
{
    starlin_context_t *context;
    char limit[16];

    setenv("STARPU_SILENT", "1", 0);
    if (!gpu_is_here())
        return 77;
    alarm(LIMIT_S); /* a hang is a failure */
    context = open_context();
    if (context == NULL)
        return 1;
    test_library_memory(context);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);

    snprintf(limit, sizeof limit, "%d", LIMIT_MB);
    setenv("STARPU_LIMIT_CUDA_MEM", limit, 1);
    context = open_context();
    if (context == NULL)
        return 1;
    /* a weight of 64 MB */
    run_host(context, 64, 8192, 2048, 4, STARLIN_ERR_NO_MEMORY);
    printf("a weight that is too large is refused\n");
    fflush(stdout);
    run_host(context, 64, 32, 16, 4, STARLIN_SUCCESS);
    /* a chunk of y of 64 MB */
    run_host(context, 8192, 2048, 16, 1, STARLIN_ERR_NO_MEMORY);
    printf("a chunk that is too large is refused\n");
    fflush(stdout);
    /* 98 MB, of which one chunk needs 8 */
    run_host(context, 16384, 1024, 512, 16, STARLIN_SUCCESS);
    printf("twice the memory in chunks is computed\n");
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return CHECK_RESULT();
}
