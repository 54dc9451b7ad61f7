/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference compute backend: gemms with all that rides along, and finish, against plain loops. */
#include <limits.h>

#include "check.h"
#include "gemm.h"

/* Odd sizes; sizes above a block of 512; no inner dimension; nothing at all. */
static void check_gemms(starlin__compute_t *compute)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 0},   {5, 3, 2, 0},   {37, 19, 23, 0}, {37, 19, 23, 5},
                                        {1, 67, 41, 1}, {33, 1, 65, 0}, {17, 40, 0, 3},  {600, 530, 3, 2},
                                        {0, 4, 4, 0},   {4, 0, 4, 1}};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        CHECK_EQ_INT(gemm_check_shape(compute, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]),
                     4 * 7 * 8); /* every epilogue of every dtype rides */
}

static float real(uint32_t i)
{
    return (float)((int)(i * 2654435761u >> 8) % 4001 - 2000) / 977.0f;
}

/* Real numbers: what rode along has the bits of a wide product that is finished, whichever worker ran it. */
static void check_bits(starlin__compute_t *compute, starlin_dtype_t dtype,
                       starlin_activation_kind_t activation)
{
    enum { M = 530, N = 70, K = 45 };
    size_t nbytes = starlin_dtype_nbytes(dtype);
    void *a = calloc(M * K, nbytes), *b = calloc(N * K, nbytes), *residual = calloc(M * N, nbytes);
    void *bias = calloc(N, nbytes), *apart = calloc(M * N, nbytes), *fused = calloc(M * N, nbytes);
    starlin__gemm_t gemm = {.transpose_b = true, .m = M, .n = N, .k = K, .a = a, .b = b, .c = fused};

    for (uint32_t i = 0; i < M * K; i++)
        element_store(dtype, a, i, real(i));
    for (uint32_t i = 0; i < N * K; i++)
        element_store(dtype, b, i, real(i + 12345));
    for (uint32_t i = 0; i < M * N; i++)
        element_store(dtype, residual, i, real(i + 777));
    for (uint32_t i = 0; i < N; i++)
        element_store(dtype, bias, i, real(i + 99));
    gemm.lda = gemm.ldb = K;
    gemm.ldc = N;
    gemm.dtype = gemm.out_dtype = dtype;
    gemm.epilogue = (starlin__epilogue_t){activation, bias, residual, N};
    CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    CHECK_STATUS(compute->ops->gemm(compute, 1, &gemm), STARLIN_SUCCESS);
    gemm.c = apart;
    run_apart(compute, &gemm);
    CHECK(memcmp(apart, fused, M * N * nbytes) == 0);
    free(a);
    free(b);
    free(residual);
    free(bias);
    free(apart);
    free(fused);
}

/* Workspaces grow or stay: without memory for larger ones the old ones serve on. */
static void check_limits(starlin__compute_t *compute)
{
    static const starlin__rowwise_kind_t elsewhere = {.name = "elsewhere"};
    starlin__gemm_t gemm = {.m = 8, .n = 8, .k = 4096, .lda = 4096, .ldb = 8, .ldc = 8, .dtype = STARLIN_F16};
    starlin__rowwise_args_t args = {0};
    uint64_t before;

    gemm.out_dtype = STARLIN_F16;
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_ERR_NO_MEMORY);
    starlin__alloc_fail_at = 0;
    gemm_check_shape(compute, 37, 19, 23, 0);
    CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    before = starlin__alloc_count;
    CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__alloc_count, before);
    gemm.lda = (int64_t)INT_MAX + 1;
    CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "CBLAS counts in int");
    CHECK_STATUS(compute->ops->rowwise(compute, &elsewhere, &args), STARLIN_ERR_UNSUPPORTED);
    CHECK_CONTAINS(starlin_last_error(), "elsewhere");
}

int main(void)
{
    const starlin__compute_ops_t *ops = NULL;
    starlin__config_t config = {0};
    starlin__compute_t *compute = NULL;

    CHECK_STATUS(starlin__compute_find("cblas", &ops), STARLIN_SUCCESS);
    CHECK_STATUS(ops->create(NULL, &config, 2, 1, &compute), STARLIN_SUCCESS);
    if (compute == NULL)
        return 1;
    check_gemms(compute);
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
        for (int activation = STARLIN_IDENTITY; activation <= STARLIN_SILU; activation++)
            check_bits(compute, (starlin_dtype_t)dtype, (starlin_activation_kind_t)activation);
    finish_check_all(compute);
    check_limits(compute);
    ops->destroy(compute);
    ops->destroy(NULL);
    return CHECK_RESULT();
}
