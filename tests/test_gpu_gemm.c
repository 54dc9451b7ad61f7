/* SPDX-License-Identifier: BSD-3-Clause */
/* The cublas backend against plain loops, bit by bit: gemms with all that rides along, and finish. */
#include "gpu.h"
#include "gemm.h"

static const int64_t shapes[][4] = {
    {1, 1, 1, 0},    {1, 1, 7, 0},       {5, 3, 2, 0},       {37, 19, 23, 0},  {37, 19, 23, 3},
    {64, 64, 64, 0}, {128, 256, 64, 8},  {33, 1, 65, 1},     {1, 257, 129, 0}, {17, 40, 0, 3},
    {3, 5, 4096, 0}, {256, 128, 512, 0}, {300, 512, 256, 8}, {0, 4, 4, 0},     {4, 0, 4, 1}};

static float real(uint32_t i)
{
    return (float)((int)(i * 2654435761u >> 8) % 4001 - 2000) / 977.0f;
}

/* Real numbers: what rode and what was finished apart differ by no more than the sums of two algorithms do
 * (compute_cublas.c says how much), and then by one rounding. Where the sums are equal the bits are. */
static void check_riding(starlin__compute_t *compute, starlin_dtype_t dtype,
                         starlin_activation_kind_t activation, bool with_residual)
{
    enum { M = 192, N = 320, K = 256 };
    size_t size = starlin_dtype_nbytes(dtype), nbytes = M * N * size;
    double eps = dtype == STARLIN_F64 ? 0x1p-53 : 0x1p-24;
    double ulp = dtype == STARLIN_F16 ? 0x1p-10 : dtype == STARLIN_BF16 ? 0x1p-7 : 2 * eps;
    void *numbers = calloc(M * N, size), *fused = calloc(1, nbytes), *apart = calloc(1, nbytes);
    starlin__gemm_t gemm = {.transpose_b = true, .m = M, .n = N, .k = K};
    int64_t differ = 0, wrong = 0;

    for (uint32_t i = 0; i < M * N; i++)
        element_store(dtype, numbers, i, real(i));
    void *a = memory_open(compute, numbers, M * K * size), *c = memory_open(compute, NULL, nbytes);
    for (uint32_t i = 0; i < M * N; i++)
        element_store(dtype, numbers, i, real(i + 4321));
    void *b = memory_open(compute, numbers, N * K * size), *extra = memory_open(compute, numbers, nbytes);
    gemm.a = a;
    gemm.b = b;
    gemm.c = c;
    gemm.lda = gemm.ldb = K;
    gemm.ldc = N;
    gemm.dtype = gemm.out_dtype = dtype;
    gemm.epilogue =
        (starlin__epilogue_t){activation, with_residual ? NULL : extra, with_residual ? extra : NULL, N};
    run_apart(compute, &gemm);
    memory_read(compute, apart, c, nbytes);
    if (compute->ops->fuses(compute, &gemm)) {
        CHECK_STATUS(compute->ops->gemm(compute, 0, &gemm), STARLIN_SUCCESS);
        memory_read(compute, fused, c, nbytes);
        for (size_t i = 0; i < M * N; i++) {
            double x = element_load(dtype, fused, i), y = element_load(dtype, apart, i);
            differ += x != y;
            wrong += !(fabs(x - y) <= 2 * K * eps * (K * 2.05 * 2.05 + 2.05) + ulp * fabs(y));
        }
        CHECK_EQ_INT(wrong, 0);
        printf("%s %s %s rides: %" PRId64 " of %d differ\n", starlin_dtype_name(dtype),
               starlin_activation_name(activation), with_residual ? "residual" : "bias", differ, M * N);
    } else
        printf("%s %s %s does not ride\n", starlin_dtype_name(dtype), starlin_activation_name(activation),
               with_residual ? "residual" : "bias");
    memory_close(compute, a);
    memory_close(compute, b);
    memory_close(compute, c);
    memory_close(compute, extra);
    free(numbers);
    free(fused);
    free(apart);
}

/* With the argument `finish` only that. */
int main(int argc, char **argv)
{
    bool finish_only = argc > 1 && strcmp(argv[1], "finish") == 0;
    static const starlin__rowwise_kind_t elsewhere = {.name = "elsewhere"};
    starlin__rowwise_args_t nothing = {0};
    starlin__config_t config = {0};
    starlin__device_t *device = gpu_open();
    const starlin__compute_ops_t *ops = NULL;
    starlin__compute_t *compute = NULL;

    CHECK_STATUS(starlin__compute_find("cublas", &ops), STARLIN_SUCCESS);
    if (ops == NULL)
        return 1;
    CHECK_STATUS(ops->create(device, &config, 1, 1, &compute), STARLIN_SUCCESS);
    if (compute == NULL)
        return 1;
    for (size_t i = 0; !finish_only && i < sizeof(shapes) / sizeof(shapes[0]); i++)
        printf("m=%" PRId64 " n=%" PRId64 " k=%" PRId64 ": %d of 224 epilogues rode\n", shapes[i][0],
               shapes[i][1], shapes[i][2],
               gemm_check_shape(compute, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]));
    for (int dtype = STARLIN_F32; !finish_only && dtype <= STARLIN_BF16; dtype++) {
        check_riding(compute, (starlin_dtype_t)dtype, STARLIN_IDENTITY, false);
        check_riding(compute, (starlin_dtype_t)dtype, STARLIN_RELU, false);
        check_riding(compute, (starlin_dtype_t)dtype, STARLIN_IDENTITY, true);
    }
    finish_check_all(compute);
    CHECK_STATUS(compute->ops->rowwise(compute, &elsewhere, &nothing), STARLIN_ERR_UNSUPPORTED);
    compute->ops->destroy(compute);
    ops->destroy(NULL);
    device->ops->destroy(device);
    return CHECK_RESULT();
}
