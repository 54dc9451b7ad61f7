/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLAS gemms and casts against a plain loop, bit by bit: small integers keep every sum exact. */
#include <math.h>

#include "compute/compute.h"
#include "gpu.h"
#include "row_linear.h"

typedef struct shape {
    int64_t m, n, k;
    int64_t pad_x, pad_w, pad_y; /* ld - cols */
} shape_t;

static const shape_t shapes[] = {
    {1, 1, 1, 0, 0, 0},     {1, 1, 7, 0, 0, 0},       {5, 3, 2, 0, 0, 0},      {37, 19, 23, 0, 0, 0},
    {37, 19, 23, 3, 5, 1},  {64, 64, 64, 0, 0, 0},    {128, 256, 64, 8, 8, 8}, {33, 1, 65, 0, 1, 0},
    {1, 257, 129, 0, 0, 0}, {256, 128, 512, 0, 0, 0}, {17, 40, 0, 0, 0, 3},    {3, 5, 4096, 0, 0, 0},
};

/* In -1..1: |sums| up to k, exact in f32; the rounding to the output type is the reference's own. */
static double element(int64_t row, int64_t col, int64_t seed)
{
    return (double)((row * 7 + col * 13 + row * col + seed) % 3 - 1);
}

static void *host_matrix(starlin_dtype_t dtype, int64_t rows, int64_t cols, int64_t ld, int64_t seed)
{
    void *data = calloc((size_t)(rows * ld + 1), starlin_dtype_nbytes(dtype));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < ld; j++)
            element_store(dtype, data, i * ld + j, j < cols ? element(i, j, seed) : NAN);
    }
    return data;
}

static void *reference(const shape_t *s, starlin_dtype_t out, int64_t ldy)
{
    void *y = calloc((size_t)(s->m * ldy + 1), starlin_dtype_nbytes(out));
    for (int64_t i = 0; i < s->m; i++) {
        for (int64_t j = 0; j < s->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < s->k; l++)
                sum += element(i, l, 1) * element(j, l, 2);
            element_store(out, y, i * ldy + j, sum);
        }
        for (int64_t j = s->n; j < ldy; j++)
            element_store(out, y, i * ldy + j, 77);
    }
    return y;
}

static void *upload(starlin__device_t *device, const void *host, size_t nbytes)
{
    void *memory = NULL;
    CHECK_STATUS(device->ops->alloc(device, nbytes, &memory), STARLIN_SUCCESS);
    gpu_upload(device, memory, host, nbytes);
    return memory;
}

static void check_gemm(starlin__compute_t *compute, const shape_t *s, starlin_dtype_t dtype,
                       starlin_dtype_t out, bool prepared)
{
    starlin__device_t *device = compute->device;
    int64_t ldx = s->k + s->pad_x, ldw = s->k + s->pad_w, ldy = s->n + s->pad_y;
    size_t in_nbytes = starlin_dtype_nbytes(dtype),
           y_nbytes = (size_t)(s->m * ldy) * starlin_dtype_nbytes(out);
    void *x = host_matrix(dtype, s->m, s->k, ldx, 1), *w = host_matrix(dtype, s->n, s->k, ldw, 2);
    void *expected = reference(s, out, ldy), *y = calloc(1, y_nbytes + 1);
    for (int64_t i = 0; i < s->m * ldy; i++)
        element_store(out, y, i, 77); /* must survive between the rows */
    starlin__gemm_t gemm = {.m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .ldx = ldx,
                            .ldw = ldw,
                            .ldy = ldy,
                            .dtype = dtype,
                            .out_dtype = out};
    if (prepared)
        CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    void *device_x = upload(device, x, (size_t)(s->m * ldx) * in_nbytes);
    void *device_w = upload(device, w, (size_t)(s->n * ldw) * in_nbytes);
    void *device_y = upload(device, y, y_nbytes);
    gemm.x = device_x;
    gemm.w = device_w;
    gemm.y = device_y;
    uint64_t allocations = starlin__alloc_count;
    CHECK_STATUS(compute->ops->gemm(compute, 0, &gemm), STARLIN_SUCCESS);
    if (prepared)
        CHECK_EQ_INT(starlin__alloc_count, allocations);
    CHECK_STATUS(device->ops->synchronize(device), STARLIN_SUCCESS);
    gpu_download(device, y, device_y, y_nbytes);
    check_count++;
    if (memcmp(y, expected, y_nbytes) != 0)
        CHECK_FAIL("m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " %s -> %s differs from the reference", s->m,
                   s->n, s->k, starlin_dtype_name(dtype), starlin_dtype_name(out));
    device->ops->free(device, device_x);
    device->ops->free(device, device_w);
    device->ops->free(device, device_y);
    free(x);
    free(w);
    free(y);
    free(expected);
}

static float finite_half(starlin_dtype_t dtype, uint16_t bits)
{
    float value = dtype == STARLIN_F16 ? starlin__f16_to_f32(bits) : starlin__bf16_to_f32(bits);
    return isfinite(value) ? value : 1;
}

/* Every finite value, the ties between neighbours, and what lies just beside a tie. */
static void check_cast(starlin__compute_t *compute, starlin_dtype_t dtype, size_t skip)
{
    enum { COUNT = 3 * 65536 };
    starlin__device_t *device = compute->device;
    float *src = calloc(COUNT, sizeof(float));
    uint16_t *expected = calloc(COUNT, sizeof(uint16_t)), *actual = calloc(COUNT, sizeof(uint16_t));
    for (uint32_t i = 0; i < 65536; i++) {
        float value = finite_half(dtype, (uint16_t)i),
              middle = (value + finite_half(dtype, (uint16_t)(i + 1))) / 2;
        src[3 * i] = value;
        src[3 * i + 1] = middle;
        src[3 * i + 2] = nextafterf(middle, INFINITY);
    }
    src[0] = INFINITY;
    src[1] = -INFINITY;
    src[2] = -0.0f;
    src[3] = 3e38f;
    starlin__f32_to_half(dtype, src, expected, COUNT);
    float *device_src = upload(device, src, COUNT * sizeof(float));
    uint16_t *device_dst = upload(device, actual, COUNT * sizeof(uint16_t));
    /* a start that is not aligned for the vector path */
    starlin__cast_t cast = {
        .src = device_src + skip, .dst = device_dst + skip, .count = COUNT - skip, .dtype = dtype};
    CHECK_STATUS(compute->ops->cast(compute, 0, &cast), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->synchronize(device), STARLIN_SUCCESS);
    gpu_download(device, actual, device_dst, COUNT * sizeof(uint16_t));
    size_t wrong = 0;
    for (size_t i = skip; i < COUNT; i++)
        wrong += actual[i] != expected[i];
    CHECK_EQ_INT(wrong, 0);
    device->ops->free(device, device_src);
    device->ops->free(device, device_dst);
    free(src);
    free(expected);
    free(actual);
}

/* With the argument `cast` only the casts. */
int main(int argc, char **argv)
{
    bool casts_only = argc > 1 && strcmp(argv[1], "cast") == 0;

    starlin__device_t *device = gpu_open();
    const starlin__compute_ops_t *ops = NULL;
    starlin__compute_t *compute = NULL;
    CHECK_STATUS(starlin__compute_find("cublas", &ops), STARLIN_SUCCESS);
    if (ops == NULL)
        return 1;
    CHECK_STATUS(ops->create(device, 1, 1, &compute), STARLIN_SUCCESS);
    if (compute == NULL)
        return 1;
    for (size_t i = 0; !casts_only && i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
            check_gemm(compute, &shapes[i], (starlin_dtype_t)dtype, (starlin_dtype_t)dtype, i % 2 == 0);
            if (dtype >= STARLIN_F16)
                check_gemm(compute, &shapes[i], (starlin_dtype_t)dtype, STARLIN_F32, true);
        }
    }
    for (size_t skip = 0; skip < 2; skip++) {
        check_cast(compute, STARLIN_F16, skip);
        check_cast(compute, STARLIN_BF16, skip);
    }
    starlin__cast_t empty = {.count = 0, .dtype = STARLIN_BF16};
    CHECK_STATUS(compute->ops->cast(compute, 0, &empty), STARLIN_SUCCESS);
    compute->ops->destroy(compute);
    ops->destroy(NULL);
    device->ops->destroy(device);
    return CHECK_RESULT();
}
