/* SPDX-License-Identifier: BSD-3-Clause */
/* The operator activation: every function, dtype and placement, chunked; bit-exact where the function is,
 * within a bound elsewhere; what is refused. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "world.h"

#include "base/half.h"

enum { M = 37, N = 19, NCHUNKS = 4, TIMEOUT_MS = 20000 };

static double get(const void *data, starlin_dtype_t dtype, size_t i)
{
    switch (dtype) {
    case STARLIN_F64:
        return ((const double *)data)[i];
    case STARLIN_F16:
        return starlin__f16_to_f32(((const uint16_t *)data)[i]);
    case STARLIN_BF16:
        return starlin__bf16_to_f32(((const uint16_t *)data)[i]);
    default:
        return ((const float *)data)[i];
    }
}

static void set(void *data, starlin_dtype_t dtype, size_t i, double value)
{
    if (dtype == STARLIN_F64)
        ((double *)data)[i] = value;
    else if (dtype == STARLIN_F16)
        ((uint16_t *)data)[i] = starlin__f32_to_f16((float)value);
    else if (dtype == STARLIN_BF16)
        ((uint16_t *)data)[i] = starlin__f32_to_bf16((float)value);
    else
        ((float *)data)[i] = (float)value;
}

static double reference(starlin_activation_kind_t kind, double x, double up)
{
    switch (kind) {
    case STARLIN_RELU:
        return x > 0 ? x : 0;
    case STARLIN_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2.0)));
    case STARLIN_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case STARLIN_SILU:
        return x / (1 + exp(-x));
    case STARLIN_SWIGLU:
        return x / (1 + exp(-x)) * up;
    default:
        return x;
    }
}

/* Unit roundoff of the result, and of the f32 that halves are computed in, with room for libm's few units. */
static double bound(starlin_dtype_t dtype, double value)
{
    static const double units[] = {
        [STARLIN_F32] = 0x1p-24, [STARLIN_F64] = 0x1p-53, [STARLIN_F16] = 0x1p-11, [STARLIN_BF16] = 0x1p-8};
    return 16 * units[dtype] * fabs(value) + (dtype == STARLIN_F64   ? 1e-15
                                              : dtype == STARLIN_F32 ? 1e-6
                                                                     : 1e-4);
}

static void check_kind(starlin_context_t *context, const starlin_chunking_t *rows, starlin_dtype_t dtype,
                       starlin_placement_t placement, starlin_activation_kind_t kind)
{
    starlin_matrix_layout_t layout = {.cols = N, .dtype = dtype, .placement = placement};
    starlin_activation_options_t options = STARLIN_ACTIVATION_OPTIONS_INIT;
    double x_data[M * N], up_data[M * N], y_data[M * N];
    starlin_matrix_t *x, *y, *up;
    bool exact = kind == STARLIN_IDENTITY || kind == STARLIN_RELU;
    size_t count;

    CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &x), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &y), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &up), STARLIN_SUCCESS);
    count = (size_t)starlin_matrix_rows(x) * N;
    for (size_t i = 0; i < count; i++) {
        set(x_data, dtype, i, (double)((int)(i * 7 % 33) - 16) / 4);
        set(up_data, dtype, i, (double)((int)(i * 5 % 17) - 8) / 2);
    }
    memset(y_data, 0xff, sizeof y_data);
    CHECK_STATUS(starlin_matrix_write(x, x_data, 0), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_write(up, up_data, 0), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_write(y, y_data, 0), STARLIN_SUCCESS);
    options.activation = kind;
    options.up = kind == STARLIN_SWIGLU ? up : NULL;
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(starlin_activation(context, x, y, &options), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_read(y, y_data, 0), STARLIN_SUCCESS);
    for (size_t i = 0; i < count; i++) {
        double expected = reference(kind, get(x_data, dtype, i), get(up_data, dtype, i));
        double result = get(y_data, dtype, i);
        if (exact ? result == expected : fabs(result - expected) <= bound(dtype, expected))
            continue;
        fprintf(stderr, "%s %s %s [%zu]: %.17g, expected %.17g\n", starlin_activation_name(kind),
                starlin_dtype_name(dtype), starlin_placement_name(placement), i, result, expected);
        CHECK(false);
        break;
    }
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(y);
    starlin_matrix_destroy(up);
}

static void check_refusals(starlin_context_t *context, const starlin_chunking_t *rows)
{
    starlin_matrix_layout_t layout = {.cols = N}, cols = {.cols = N, .placement = STARLIN_SHARD_COLS};
    starlin_activation_options_t options = STARLIN_ACTIVATION_OPTIONS_INIT;
    starlin_matrix_t *x, *y, *other;

    CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &x), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &y), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_create(context, rows, &cols, &other), STARLIN_SUCCESS);
    options.activation = (starlin_activation_kind_t)9;
    CHECK_STATUS(starlin_activation(context, x, y, &options), STARLIN_ERR_INVALID);
    CHECK(strstr(starlin_last_error(), "9") != NULL);
    options.activation = STARLIN_SWIGLU;
    CHECK_STATUS(starlin_activation(context, x, y, &options), STARLIN_ERR_INVALID);
    CHECK(strstr(starlin_last_error(), "up is NULL") != NULL);
    options.activation = STARLIN_RELU;
    CHECK_STATUS(starlin_activation(context, x, other, &options), STARLIN_ERR_UNSUPPORTED);
    CHECK(strstr(starlin_last_error(), "replicate") != NULL &&
          strstr(starlin_last_error(), "shard_cols") != NULL);
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(y);
    starlin_matrix_destroy(other);
}

int main(int argc, char **argv)
{
    static const starlin_placement_t placements[] = {STARLIN_REPLICATE, STARLIN_SHARD_COLS,
                                                     STARLIN_SHARD_ROWS};
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_chunking_t *rows = NULL;
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(TIMEOUT_MS);
    options.count = NCHUNKS;
    options.blocks = true;
    CHECK_STATUS(starlin_chunking_plan(context, M, NULL, 0, &options, &rows), STARLIN_SUCCESS);
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
        for (int place = 0; place < 3; place++)
            for (int kind = STARLIN_IDENTITY; kind <= STARLIN_SWIGLU; kind++)
                check_kind(context, rows, (starlin_dtype_t)dtype, placements[place],
                           (starlin_activation_kind_t)kind);
    if (world_nranks == 1) /* a refusal of one rank alone would be another test */
        check_refusals(context, rows);
    starlin_chunking_destroy(rows);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return world_end();
}
