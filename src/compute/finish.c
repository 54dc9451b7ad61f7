/* SPDX-License-Identifier: BSD-3-Clause */
/* finish on the host. A row is worked on in tiles that stay in the first-level cache: one loop for each thing
 * that rides along, which the compiler vectorises, and one rounding when the tile is stored. A tile is read
 * before it is written, so dst may be any input but the bias. No result depends on where a tile begins. */
#include <assert.h>
#include <string.h>
#include <tgmath.h>

#include "compute/finish.h"

enum { TILE = 256, DST = 0, SRC, BIAS, RESIDUAL, FACTOR };

/* The numbers of a tile, f64 where dst is, else f32. */
typedef union tile {
    float f32[TILE];
    double f64[TILE];
} tile_t;

#pragma weak starlin__finish_launch

/* A NaN stays one. The constants of gelu are sqrt(1/2), of its approximation sqrt(2/pi) and 0.044715
 * (Hendrycks and Gimpel, arXiv 1606.08415). */
#define DEFINE_ACTIVATE(name, real)                                                                          \
    static void name(starlin_activation_kind_t activation, real *x, size_t count)                            \
    {                                                                                                        \
        switch (activation) {                                                                                \
        case STARLIN_RELU:                                                                                   \
            for (size_t i = 0; i < count; i++)                                                               \
                x[i] = x[i] < 0 ? 0 : x[i];                                                                  \
            return;                                                                                          \
        case STARLIN_GELU:                                                                                   \
            for (size_t i = 0; i < count; i++)                                                               \
                x[i] = x[i] / 2 * (1 + erf(x[i] * (real)0.70710678118654752440));                            \
            return;                                                                                          \
        case STARLIN_GELU_TANH:                                                                              \
            for (size_t i = 0; i < count; i++)                                                               \
                x[i] =                                                                                       \
                    x[i] / 2 *                                                                               \
                    (1 + tanh((real)0.79788456080286535588 * (x[i] + (real)0.044715 * x[i] * x[i] * x[i]))); \
            return;                                                                                          \
        case STARLIN_SILU:                                                                                   \
        case STARLIN_SWIGLU:                                                                                 \
            for (size_t i = 0; i < count; i++)                                                               \
                x[i] = x[i] / (1 + exp(-x[i]));                                                              \
            return;                                                                                          \
        case STARLIN_IDENTITY:                                                                               \
            return;                                                                                          \
        }                                                                                                    \
    }

DEFINE_ACTIVATE(activate_f32, float)
DEFINE_ACTIVATE(activate_f64, double)

static void *at(const starlin__view_t *view, int64_t row, int64_t column)
{
    return (char *)view->data + (size_t)(row * view->ld + column) * starlin_dtype_nbytes(view->dtype);
}

/* A tile in the type that is computed in: where it lies, or widened into the buffer. */
static const void *load(const starlin__view_t *view, int64_t row, int64_t column, size_t count,
                        tile_t *buffer)
{
    if (!starlin__dtype_is_half(view->dtype))
        return at(view, row, column);
    starlin__half_to_f32(view->dtype, at(view, row, column), buffer->f32, count);
    return buffer;
}

/* x += y, or x *= y. */
static void combine(starlin_dtype_t dtype, bool multiply, tile_t *x, const void *y, size_t count)
{
    const float *f32 = y;
    const double *f64 = y;

    if (dtype == STARLIN_F64)
        for (size_t i = 0; i < count; i++)
            x->f64[i] = multiply ? x->f64[i] * f64[i] : x->f64[i] + f64[i];
    else
        for (size_t i = 0; i < count; i++)
            x->f32[i] = multiply ? x->f32[i] * f32[i] : x->f32[i] + f32[i];
}

static void finish_tile(const starlin__rowwise_args_t *args, int64_t row, int64_t column, size_t count)
{
    const starlin__view_t *views = args->views, *dst = &views[DST];
    tile_t x, buffer;
    const void *src = load(&views[SRC], row, column, count, &x);
    size_t nbytes = count * (dst->dtype == STARLIN_F64 ? sizeof(double) : sizeof(float));

    if (src != &x)
        memcpy(&x, src, nbytes);
    if (views[BIAS].data != NULL)
        combine(dst->dtype, false, &x, load(&views[BIAS], 0, column, count, &buffer), count);
    if (dst->dtype == STARLIN_F64)
        activate_f64(args->activation, x.f64, count);
    else
        activate_f32(args->activation, x.f32, count);
    if (views[FACTOR].data != NULL)
        combine(dst->dtype, true, &x, load(&views[FACTOR], row, column, count, &buffer), count);
    if (views[RESIDUAL].data != NULL)
        combine(dst->dtype, false, &x, load(&views[RESIDUAL], row, column, count, &buffer), count);
    if (starlin__dtype_is_half(dst->dtype))
        starlin__f32_to_half(dst->dtype, x.f32, at(dst, row, column), count);
    else
        memcpy(at(dst, row, column), &x, nbytes);
}

/* A copy or a rounding alone. */
static void convert(const starlin__view_t *dst, const starlin__view_t *src)
{
    bool one = dst->ld == dst->cols && src->ld == dst->cols;
    int64_t rows = one ? 1 : dst->rows, cols = one ? dst->rows * dst->cols : dst->cols;

    if (dst->data == src->data && dst->dtype == src->dtype)
        return;
    for (int64_t row = 0; row < rows; row++)
        if (dst->dtype == src->dtype)
            memcpy(at(dst, row, 0), at(src, row, 0), (size_t)cols * starlin_dtype_nbytes(dst->dtype));
        else
            starlin__f32_to_half(dst->dtype, at(src, row, 0), at(dst, row, 0), (size_t)cols);
}

static void finish_cpu(const starlin__rowwise_args_t *args)
{
    const starlin__view_t *views = args->views, *dst = &views[DST];

    assert(views[SRC].dtype == dst->dtype ||
           (views[SRC].dtype == STARLIN_F32 && starlin__dtype_is_half(dst->dtype)));
    if (dst->rows == 0 || dst->cols == 0)
        return;
    if (args->activation == STARLIN_IDENTITY && views[BIAS].data == NULL && views[RESIDUAL].data == NULL &&
        views[FACTOR].data == NULL) {
        convert(dst, &views[SRC]);
        return;
    }
    for (int64_t row = 0; row < dst->rows; row++)
        for (int64_t column = 0; column < dst->cols; column += TILE)
            finish_tile(args, row, column, (size_t)(dst->cols - column < TILE ? dst->cols - column : TILE));
}

bool starlin__epilogue_empty(const starlin__epilogue_t *epilogue)
{
    return epilogue->activation == STARLIN_IDENTITY && epilogue->bias == NULL && epilogue->residual == NULL;
}

static starlin__view_t part(const void *data, int64_t ld, starlin_dtype_t dtype, int64_t row, int64_t column)
{
    starlin__view_t view = {.data = (void *)(uintptr_t)data, .ld = ld, .dtype = dtype};

    if (data != NULL)
        view.data = at(&view, row, column);
    return view;
}

starlin__rowwise_args_t starlin__epilogue_args(const starlin__gemm_t *gemm, int64_t row, int64_t column,
                                               const starlin__view_t *product)
{
    starlin__view_t c = part(gemm->c, gemm->ldc, gemm->out_dtype, row, column);
    const starlin__epilogue_t *epilogue = &gemm->epilogue;

    c.rows = product != NULL ? product->rows : gemm->m;
    c.cols = product != NULL ? product->cols : gemm->n;
    return (starlin__rowwise_args_t){
        .activation = epilogue->activation,
        .views = {c, product != NULL ? *product : c, part(epilogue->bias, 0, gemm->dtype, 0, column),
                  part(epilogue->residual, epilogue->ld_residual, gemm->dtype, row, column)}};
}

const starlin__rowwise_kind_t starlin__finish = {
    .name = "finish", .cpu = finish_cpu, .cuda = starlin__finish_launch};
