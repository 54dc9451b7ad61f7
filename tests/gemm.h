/* SPDX-License-Identifier: BSD-3-Clause */
/* Gemms and finishing of any compute backend against plain loops. Integers keep every sum exact, so results
 * are compared bit by bit. Include check.h first. */
#ifndef STARLIN_TESTS_GEMM_H
#define STARLIN_TESTS_GEMM_H

#include <math.h>
#include <stdlib.h>

#include "compute/compute.h"
#include "row_linear.h"

/* A gemm and what is around it. */
typedef struct gemm_case {
    int64_t m, n, k;
    int64_t padding; /* ld - cols, of every matrix */
    starlin_dtype_t dtype, out;
    bool transpose_a, transpose_b, bias, residual;
    double beta;
    starlin_activation_kind_t activation;
} gemm_case_t;

enum { GUARD = 77 }; /* stands between the rows of a result, and must survive */

/* In the backend's memory; `contents` may be NULL. */
static void *memory_open(starlin__compute_t *compute, const void *contents, size_t nbytes)
{
    starlin__device_t *device = compute->device;
    void *memory = NULL;

    if (device == NULL)
        memory = calloc(nbytes + 1, 1);
    else
        CHECK_STATUS(device->ops->alloc(device, nbytes + 1, &memory), STARLIN_SUCCESS);
    if (contents != NULL && device == NULL)
        memcpy(memory, contents, nbytes);
    else if (contents != NULL && nbytes > 0)
        CHECK_STATUS(device->ops->copy(device, memory, nbytes, contents, nbytes, nbytes, 1), STARLIN_SUCCESS);
    return memory;
}

static void memory_read(starlin__compute_t *compute, void *host, const void *memory, size_t nbytes)
{
    starlin__device_t *device = compute->device;

    if (device == NULL) {
        memcpy(host, memory, nbytes);
        return;
    }
    CHECK_STATUS(device->ops->synchronize(device), STARLIN_SUCCESS);
    if (nbytes > 0)
        CHECK_STATUS(device->ops->copy(device, host, nbytes, memory, nbytes, nbytes, 1), STARLIN_SUCCESS);
}

static void memory_close(starlin__compute_t *compute, void *memory)
{
    if (compute->device == NULL)
        free(memory);
    else
        compute->device->ops->free(compute->device, memory);
}

/* In -1..1: |sums| up to k; with what is added to them they stay below 2^11, exact in f32. */
static inline double integer(int64_t row, int64_t col, int64_t seed)
{
    return (double)((row * 7 + col * 13 + row * col + seed) % 3 - 1);
}

static inline double bias_value(int64_t col)
{
    return (double)(col % 5 - 2);
}

static inline double residual_value(int64_t row, int64_t col)
{
    return (double)((row * 3 + col) % 7 - 3);
}

static inline double old_value(int64_t row, int64_t col)
{
    return (double)((row + 2 * col) % 5 - 2);
}

/* Rows x cols of integers, or their transpose; between the rows what must not be read. */
static void *operand(starlin__compute_t *compute, starlin_dtype_t dtype, int64_t rows, int64_t cols,
                     bool transpose, int64_t padding, int64_t seed)
{
    int64_t height = transpose ? cols : rows, width = transpose ? rows : cols, ld = width + padding;
    size_t nbytes = (size_t)(height * ld) * starlin_dtype_nbytes(dtype);
    void *host = calloc(nbytes + 1, 1), *memory;

    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < ld; j++)
            element_store(dtype, host, (size_t)(i * ld + j),
                          j >= width ? NAN : integer(transpose ? j : i, transpose ? i : j, seed));
    memory = memory_open(compute, host, nbytes);
    free(host);
    return memory;
}

/* m x n of a function of row and column, and the guard between the rows. */
static void *target(starlin__compute_t *compute, const gemm_case_t *c, starlin_dtype_t dtype,
                    double (*value)(int64_t, int64_t))
{
    int64_t ld = c->n + c->padding;
    size_t nbytes = (size_t)(c->m * ld) * starlin_dtype_nbytes(dtype);
    void *host = calloc(nbytes + 1, 1), *memory;

    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < ld; j++)
            element_store(dtype, host, (size_t)(i * ld + j),
                          j >= c->n       ? GUARD
                          : value != NULL ? value(i, j)
                                          : NAN);
    memory = memory_open(compute, host, nbytes);
    free(host);
    return memory;
}

/* product: m x n exact sums. */
static void *expected_of(const gemm_case_t *c, const double *product)
{
    int64_t ld = c->n + c->padding;
    void *host = calloc((size_t)(c->m * ld) + 1, starlin_dtype_nbytes(c->out));

    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < ld; j++) {
            double sum = GUARD;
            if (j < c->n) {
                sum = product[i * c->n + j] + c->beta * old_value(i, j) + (c->bias ? bias_value(j) : 0);
                sum = c->activation == STARLIN_RELU && sum < 0 ? 0 : sum;
                sum += c->residual ? residual_value(i, j) : 0;
            }
            element_store(c->out, host, (size_t)(i * ld + j), sum);
        }
    return host;
}

static void bias_and_residual(starlin__compute_t *compute, const gemm_case_t *c,
                              starlin__epilogue_t *epilogue_p)
{
    void *bias = calloc((size_t)c->n + 1, starlin_dtype_nbytes(c->dtype));

    for (int64_t j = 0; j < c->n; j++)
        element_store(c->dtype, bias, (size_t)j, bias_value(j));
    *epilogue_p = (starlin__epilogue_t){.activation = c->activation, .ld_residual = c->n + c->padding};
    if (c->bias)
        epilogue_p->bias = memory_open(compute, bias, (size_t)c->n * starlin_dtype_nbytes(c->dtype));
    if (c->residual)
        epilogue_p->residual = target(compute, c, c->dtype, residual_value);
    free(bias);
}

/* What the graph does where the epilogue cannot ride: a gemm to a wide output, then finish. */
static void run_apart(starlin__compute_t *compute, const starlin__gemm_t *given)
{
    starlin__gemm_t gemm = *given;
    gemm_case_t shape = {.m = gemm.m, .n = gemm.n};
    starlin__rowwise_args_t args = {.activation = gemm.epilogue.activation};

    if (starlin__dtype_is_half(gemm.dtype))
        gemm.out_dtype = STARLIN_F32;
    gemm.ldc = gemm.n;
    gemm.epilogue = (starlin__epilogue_t){0};
    gemm.c = target(compute, &shape, gemm.out_dtype, gemm.beta != 0 ? old_value : NULL);
    args.views[0] = (starlin__view_t){given->c, gemm.m, gemm.n, given->ldc, given->out_dtype};
    args.views[1] = (starlin__view_t){gemm.c, gemm.m, gemm.n, gemm.n, gemm.out_dtype};
    args.views[2] = (starlin__view_t){(void *)(uintptr_t)given->epilogue.bias, 1, gemm.n, gemm.n, gemm.dtype};
    args.views[3] = (starlin__view_t){(void *)(uintptr_t)given->epilogue.residual, gemm.m, gemm.n,
                                      given->epilogue.ld_residual, gemm.dtype};
    CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    CHECK_STATUS(compute->ops->gemm(compute, 0, &gemm), STARLIN_SUCCESS);
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    if (compute->device != NULL)
        CHECK_STATUS(compute->device->ops->synchronize(compute->device), STARLIN_SUCCESS);
    memory_close(compute, gemm.c);
}

/* As the graph would: prepared, asked whether the epilogue rides, run. Is the result right? Counts what rode.
 */
static void gemm_check(starlin__compute_t *compute, const gemm_case_t *c, const double *product, int *nrode_p)
{
    int64_t ld = c->n + c->padding;
    size_t nbytes = (size_t)(c->m * ld) * starlin_dtype_nbytes(c->out);
    void *a = operand(compute, c->dtype, c->m, c->k, c->transpose_a, c->padding, 1);
    void *b = operand(compute, c->dtype, c->k, c->n, c->transpose_b, c->padding, 2);
    void *result = target(compute, c, c->out, c->beta != 0 ? old_value : NULL);
    void *expected = expected_of(c, product), *actual = malloc(nbytes + 1);
    starlin__gemm_t gemm = {.transpose_a = c->transpose_a, .transpose_b = c->transpose_b, .m = c->m};
    bool empty = c->activation == STARLIN_IDENTITY && !c->bias && !c->residual;
    uint64_t allocations;

    gemm.n = c->n;
    gemm.k = c->k;
    gemm.lda = (c->transpose_a ? c->m : c->k) + c->padding;
    gemm.ldb = (c->transpose_b ? c->k : c->n) + c->padding;
    gemm.ldc = ld;
    gemm.dtype = c->dtype;
    gemm.out_dtype = c->out;
    gemm.beta = c->beta;
    bias_and_residual(compute, c, &gemm.epilogue);
    bool rides = compute->ops->fuses(compute, &gemm);
    if (rides)
        CHECK_STATUS(compute->ops->prepare(compute, &gemm), STARLIN_SUCCESS);
    gemm.a = a;
    gemm.b = b;
    gemm.c = result;
    allocations = starlin__alloc_count;
    if (rides)
        CHECK_STATUS(compute->ops->gemm(compute, 0, &gemm), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__alloc_count, allocations);
    if (!rides)
        run_apart(compute, &gemm);
    *nrode_p += rides && !empty;
    CHECK(rides || !empty);
    memory_read(compute, actual, result, nbytes);
    check_count++;
    if (memcmp(actual, expected, nbytes) != 0)
        CHECK_FAIL("m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " +%" PRId64 " %s -> %s%s%s beta=%g %s%s%s%s",
                   c->m, c->n, c->k, c->padding, starlin_dtype_name(c->dtype), starlin_dtype_name(c->out),
                   c->transpose_a ? " A^T" : "", c->transpose_b ? " B^T" : "", c->beta,
                   starlin_activation_name(c->activation), c->bias ? " bias" : "",
                   c->residual ? " residual" : "", rides ? " riding" : "");
    memory_close(compute, a);
    memory_close(compute, b);
    memory_close(compute, result);
    memory_close(compute, (void *)(uintptr_t)gemm.epilogue.bias);
    memory_close(compute, (void *)(uintptr_t)gemm.epilogue.residual);
    free(expected);
    free(actual);
}

/* Every dtype, transpose, beta and epilogue of one shape. The number of epilogues that rode. */
static int gemm_check_shape(starlin__compute_t *compute, int64_t m, int64_t n, int64_t k, int64_t padding)
{
    double *product = calloc((size_t)(m * n) + 1, sizeof(double));
    int nrode = 0;

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                product[i * n + j] += integer(i, l, 1) * integer(l, j, 2);
    for (int what = 0; what < 6 * 64; what++) {
        int types = what / 64; /* f32, f64, f16, bf16, and the last two to f32 */
        gemm_case_t c = {.m = m, .n = n, .k = k, .padding = padding};

        c.dtype = (starlin_dtype_t)(types < 4 ? (int)STARLIN_F32 + types : (int)STARLIN_F16 + types - 4);
        c.out = types < 4 ? c.dtype : STARLIN_F32;
        c.transpose_a = what & 1;
        c.transpose_b = what & 2;
        c.beta = what & 4 ? 1 : 0;
        c.bias = what & 8;
        c.residual = what & 16;
        c.activation = what & 32 ? STARLIN_RELU : STARLIN_IDENTITY;
        if (types < 4 || (what & 56) == 0)
            gemm_check(compute, &c, product, &nrode);
    }
    free(product);
    return nrode;
}

/* ---------------------------------------------------------------- finish */

/* Every finite value of a half, the ties between neighbours, and what lies just beside a tie. From `skip` on,
 * so that the start is not aligned for a vector. */
static void cast_check(starlin__compute_t *compute, starlin_dtype_t dtype, int64_t skip)
{
    enum { COUNT = 3 * 65536 };
    float *src = calloc(COUNT, sizeof(float));
    uint16_t *expected = calloc(COUNT, sizeof(uint16_t)), *actual = calloc(COUNT, sizeof(uint16_t));
    float halves[65536];

    for (uint32_t i = 0; i < 65536; i++) {
        halves[i] = (float)element_load(dtype, &(uint16_t){(uint16_t)i}, 0);
        halves[i] = isfinite(halves[i]) ? halves[i] : 1;
    }
    for (uint32_t i = 0; i < 65536; i++) {
        src[3 * i] = halves[i];
        src[3 * i + 1] = (halves[i] + halves[(i + 1) % 65536]) / 2;
        src[3 * i + 2] = nextafterf(src[3 * i + 1], INFINITY);
    }
    src[0] = INFINITY;
    src[1] = -INFINITY;
    src[2] = -0.0f;
    src[3] = 3e38f;
    starlin__f32_to_half(dtype, src, expected, COUNT);
    float *from = memory_open(compute, src, COUNT * sizeof(float));
    uint16_t *to = memory_open(compute, NULL, COUNT * sizeof(uint16_t));
    starlin__rowwise_args_t args = {.views = {{to + skip, 1, COUNT - skip, COUNT, dtype},
                                              {from + skip, 1, COUNT - skip, COUNT, STARLIN_F32}}};
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_read(compute, actual, to, COUNT * sizeof(uint16_t));
    int64_t wrong = 0;
    for (int64_t i = skip; i < COUNT; i++)
        wrong += actual[i] != expected[i];
    CHECK_EQ_INT(wrong, 0);
    memory_close(compute, from);
    memory_close(compute, to);
    free(src);
    free(expected);
    free(actual);
}

/* Between rows a guard; in place or not; with and without each of bias, residual and factor; f32 or the
 * dtype. */
static void finish_check(starlin__compute_t *compute, starlin_dtype_t dtype, int64_t rows, int64_t cols,
                         int64_t padding, int what)
{
    gemm_case_t shape = {.m = rows, .n = cols, .padding = padding, .dtype = dtype, .bias = what & 1};
    bool wide = (what & 16) != 0 && starlin__dtype_is_half(dtype), in_place = !wide && (what & 32);
    starlin_dtype_t src_dtype = wide ? STARLIN_F32 : dtype;
    int64_t ld = cols + padding;
    size_t nbytes = (size_t)(rows * ld) * starlin_dtype_nbytes(dtype);
    void *dst = target(compute, &shape, dtype, in_place ? old_value : NULL);
    void *src = target(compute, &shape, src_dtype, old_value),
         *factor = target(compute, &shape, dtype, old_value);
    void *expected = calloc(1, nbytes + 1), *actual = malloc(nbytes + 1);
    starlin__epilogue_t epilogue;
    starlin__rowwise_args_t args = {.activation = what & 8 ? STARLIN_RELU : STARLIN_IDENTITY};

    shape.residual = what & 2;
    bias_and_residual(compute, &shape, &epilogue);
    args.views[0] = (starlin__view_t){dst, rows, cols, ld, dtype};
    args.views[1] = (starlin__view_t){in_place ? dst : src, rows, cols, ld, src_dtype};
    args.views[2] = (starlin__view_t){(void *)(uintptr_t)epilogue.bias, 1, cols, cols, dtype};
    args.views[3] = (starlin__view_t){(void *)(uintptr_t)epilogue.residual, rows, cols, ld, dtype};
    args.views[4] = (starlin__view_t){what & 4 ? factor : NULL, rows, cols, ld, dtype};
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < ld; j++) {
            double x = old_value(i, j) + (shape.bias ? bias_value(j) : 0);
            x = args.activation == STARLIN_RELU && x < 0 ? 0 : x;
            x = x * (what & 4 ? old_value(i, j) : 1) + (shape.residual ? residual_value(i, j) : 0);
            element_store(dtype, expected, (size_t)(i * ld + j), j < cols ? x + 0.0 : GUARD);
        }
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_read(compute, actual, dst, nbytes);
    for (int64_t i = 0; i < rows * ld; i++) /* an exact zero may have either sign */
        element_store(dtype, actual, (size_t)i, element_load(dtype, actual, (size_t)i) + 0.0);
    check_count++;
    if (memcmp(actual, expected, nbytes) != 0)
        CHECK_FAIL("finish %s %" PRId64 " x %" PRId64 " +%" PRId64 " of kind %d", starlin_dtype_name(dtype),
                   rows, cols, padding, what);
    memory_close(compute, dst);
    memory_close(compute, src);
    memory_close(compute, factor);
    memory_close(compute, (void *)(uintptr_t)epilogue.bias);
    memory_close(compute, (void *)(uintptr_t)epilogue.residual);
    free(expected);
    free(actual);
}

static long double activation_exact(starlin_activation_kind_t activation, long double x)
{
    switch (activation) {
    case STARLIN_RELU:
        return x < 0 ? 0 : x;
    case STARLIN_GELU:
        return x / 2 * erfcl(-x / sqrtl(2));
    case STARLIN_GELU_TANH:
        return x / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
    case STARLIN_SILU:
        return x / (1 + expl(-x));
    default:
        return x;
    }
}

/* Against long double. erf, tanh and exp are right to 2 units in the last place, that is 4 eps (eps: half a
 * unit in the last place of 1), their arguments to 4 eps, which moves them by at most 2 eps; then two
 * roundings more: 8 |x| eps. Half precision is the f32 result rounded once. */
static void activation_check(starlin__compute_t *compute, starlin_activation_kind_t activation,
                             starlin_dtype_t dtype)
{
    enum { COUNT = 4001 };
    size_t nbytes = COUNT * starlin_dtype_nbytes(dtype);
    double eps = dtype == STARLIN_F64 ? 0x1p-53 : 0x1p-24;
    void *host = calloc(1, nbytes);
    float wide[COUNT];
    uint16_t rounded[COUNT];

    for (int i = 0; i < COUNT; i++)
        element_store(dtype, host, (size_t)i, (i - COUNT / 2) * 0.0511 + (i % 7) * 1e-3);
    for (int i = 0; i < COUNT; i++)
        wide[i] = (float)element_load(dtype, host, (size_t)i);
    void *memory = memory_open(compute, host, nbytes), *memory_wide = memory_open(compute, wide, sizeof wide);
    void *original = malloc(nbytes);
    starlin__rowwise_args_t args = {
        .activation = activation,
        .views = {{memory, 1, COUNT, COUNT, dtype}, {memory, 1, COUNT, COUNT, dtype}}};
    memcpy(original, host, nbytes);
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_read(compute, host, memory, nbytes);
    args.views[0] = args.views[1] = (starlin__view_t){memory_wide, 1, COUNT, COUNT, STARLIN_F32};
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_read(compute, wide, memory_wide, sizeof wide);
    check_count++;
    for (int i = 0; i < COUNT && !starlin__dtype_is_half(dtype); i++) {
        double x = element_load(dtype, original, (size_t)i), y = element_load(dtype, host, (size_t)i);
        if (!(fabsl(y - activation_exact(activation, x)) <= 8 * fabs(x) * eps))
            CHECK_FAIL("%s(%.17g) is %.17g in %s, expected %.17Lg", starlin_activation_name(activation), x, y,
                       starlin_dtype_name(dtype), activation_exact(activation, x));
    }
    if (starlin__dtype_is_half(dtype)) {
        starlin__f32_to_half(dtype, wide, rounded, COUNT);
        CHECK(memcmp(rounded, host, nbytes) == 0);
    }
    memory_close(compute, memory);
    memory_close(compute, memory_wide);
    free(host);
    free(original);
}

/* A copy keeps every bit, also of a NaN; relu and the rest keep a NaN. */
static void nan_check(starlin__compute_t *compute)
{
    uint16_t halves[6] = {0x7d01, 0xfc01, 0x0001, 0x8000, 0x3c00, 0x7c00}, copied[6];
    float numbers[3] = {NAN, -1, 2};
    void *src = memory_open(compute, halves, sizeof halves), *dst = memory_open(compute, NULL, sizeof halves);
    void *x = memory_open(compute, numbers, sizeof numbers);
    starlin__rowwise_args_t args = {.views = {{dst, 2, 3, 3, STARLIN_F16}, {src, 2, 3, 3, STARLIN_F16}}};

    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_read(compute, copied, dst, sizeof copied);
    CHECK(memcmp(copied, halves, sizeof copied) == 0);
    args.views[0] = args.views[1] = (starlin__view_t){x, 1, 3, 3, STARLIN_F32};
    args.activation = STARLIN_RELU;
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_read(compute, numbers, x, sizeof numbers);
    CHECK(isnan(numbers[0]) && numbers[1] == 0 && numbers[2] == 2);
    args.views[0].rows = args.views[1].rows = 0;
    CHECK_STATUS(compute->ops->rowwise(compute, &starlin__finish, &args), STARLIN_SUCCESS);
    memory_close(compute, src);
    memory_close(compute, dst);
    memory_close(compute, x);
}

static void finish_check_all(starlin__compute_t *compute)
{
    static const struct {
        int64_t rows, cols, padding;
    } shapes[] = {{1, 1, 0},   {3, 5, 0},   {3, 5, 2},    {4, 8, 8},
                  {7, 257, 3}, {2, 516, 4}, {300, 12, 0}, {5000, 3, 1}};

    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int what = 0; what < 64; what++)
                finish_check(compute, (starlin_dtype_t)dtype, shapes[i].rows, shapes[i].cols,
                             shapes[i].padding, what);
        for (int activation = STARLIN_RELU; activation <= STARLIN_SILU; activation++)
            activation_check(compute, (starlin_activation_kind_t)activation, (starlin_dtype_t)dtype);
    }
    for (int64_t skip = 0; skip < 2; skip++) {
        cast_check(compute, STARLIN_F16, skip);
        cast_check(compute, STARLIN_BF16, skip);
    }
    nan_check(compute);
}

#endif
