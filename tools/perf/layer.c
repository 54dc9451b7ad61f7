/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands of the baselines. */
#include "layer.h"

static starlin_status_t create_matrices(perf_layer_t *layer)
{
    const perf_problem_t *problem = layer->problem;
    starlin_matrix_layout_t layout = {.rows = problem->m, .cols = problem->n, .dtype = problem->dtype};

    STARLIN__FORWARD(starlin_matrix_create(layer->context, NULL, &layout, &layer->y));
    layout.dtype = layer->sum_dtype;
    if (layer->sum_dtype == problem->dtype)
        layer->partial = layer->y;
    else
        STARLIN__FORWARD(starlin_matrix_create(layer->context, NULL, &layout, &layer->partial));
    return starlin_matrix_create(layer->context, NULL, &layout, &layer->zeros);
}

starlin_status_t perf_layer_open(starlin_context_t *context, const perf_problem_t *problem, const void *x,
                                 const void *w, perf_layer_t *layer)
{
    bool half = problem->dtype == STARLIN_F16 || problem->dtype == STARLIN_BF16;

    *layer = (perf_layer_t){.context = context, .problem = problem, .x = x, .w = w};
    layer->sum_dtype = half && problem->reduction == STARLIN_REDUCTION_F32 ? STARLIN_F32 : problem->dtype;
    return create_matrices(layer);
}

void perf_layer_release(perf_layer_t *layer)
{
    if (layer->partial != layer->y)
        starlin_matrix_destroy(layer->partial);
    starlin_matrix_destroy(layer->y);
    starlin_matrix_destroy(layer->zeros);
}

starlin__gemm_t perf_layer_gemm(const perf_layer_t *layer, int64_t first, int64_t nrows)
{
    const perf_problem_t *problem = layer->problem;
    size_t in_nbytes = starlin_dtype_nbytes(problem->dtype),
           out_nbytes = starlin_dtype_nbytes(layer->sum_dtype);
    char *y = starlin_matrix_data(layer->partial);

    return (starlin__gemm_t){.m = nrows,
                             .n = problem->n,
                             .k = problem->k_local,
                             .x = layer->x + (size_t)(first * problem->k_local) * in_nbytes,
                             .w = layer->w,
                             .y = y + (size_t)(first * problem->n) * out_nbytes,
                             .ldx = problem->k_local,
                             .ldw = problem->k_local,
                             .ldy = problem->n,
                             .dtype = problem->dtype,
                             .out_dtype = layer->sum_dtype};
}

bool perf_layer_has_cast(const perf_layer_t *layer)
{
    return layer->partial != layer->y;
}

starlin__cast_t perf_layer_cast(const perf_layer_t *layer, int64_t first, int64_t nrows)
{
    size_t n = (size_t)layer->problem->n, offset = (size_t)first * n;
    char *src = starlin_matrix_data(layer->partial), *dst = starlin_matrix_data(layer->y);

    return (starlin__cast_t){.src = src + offset * starlin_dtype_nbytes(layer->sum_dtype),
                             .dst = dst + offset * starlin_dtype_nbytes(layer->problem->dtype),
                             .count = (size_t)nrows * n,
                             .src_dtype = layer->sum_dtype,
                             .dtype = layer->problem->dtype};
}
