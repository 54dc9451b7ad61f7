/* SPDX-License-Identifier: BSD-3-Clause */
/* One row-parallel linear as a test needs it: this rank's slice of an exact problem, its matrices, and the
 * right answer. Include check.h first. */
#ifndef STARLIN_TESTS_LINEAR_H
#define STARLIN_TESTS_LINEAR_H

#include "row_linear.h"

typedef struct linear {
    starlin_context_t *context;
    int64_t m, n, k; /* k: over all ranks */
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
    size_t count;        /* chunks; 0: auto, or the list */
    const int64_t *list; /* rows of each chunk, or NULL */
    size_t nlist;
    int (*x_value)(int64_t, int64_t); /* NULL: problem_x, problem_w */
    int (*w_value)(int64_t, int64_t);
    /* made by linear_open() */
    void *x_data, *w_data, *y_data;
    starlin_chunking_t *rows;
    starlin_matrix_t *x, *w, *y;
} linear_t;

static inline void linear_close(linear_t *linear)
{
    starlin_matrix_destroy(linear->x);
    starlin_matrix_destroy(linear->w);
    starlin_matrix_destroy(linear->y);
    starlin_chunking_destroy(linear->rows);
    free(linear->x_data);
    free(linear->w_data);
    free(linear->y_data);
    linear->x = linear->w = linear->y = NULL;
    linear->rows = NULL;
    linear->x_data = linear->w_data = linear->y_data = NULL;
}

static inline starlin_status_t linear_plan(linear_t *linear, int64_t k_local)
{
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_operation_t operation = STARLIN_OPERATION_INIT;

    operation.op = STARLIN_OP_ROW_LINEAR;
    operation.n = linear->n;
    operation.k = k_local;
    operation.dtype = linear->dtype;
    operation.reduction = linear->reduction;
    options.count = linear->count;
    options.rows = linear->list;
    options.nrows = linear->nlist;
    return starlin_chunking_plan(linear->context, linear->m, &operation, 1, &options, &linear->rows);
}

/* Plans, fills this rank's slices and wraps them. The first failure, or success. */
static inline starlin_status_t linear_open(linear_t *linear)
{
    starlin_matrix_layout_t input = {.dtype = linear->dtype, .placement = STARLIN_SHARD_COLS},
                            output = {.cols = linear->n, .dtype = linear->dtype};
    size_t nbytes = starlin_dtype_nbytes(linear->dtype);
    starlin_status_t status;
    int64_t first, k_local;

    problem_slice(linear->k, starlin_context_rank(linear->context), starlin_context_nranks(linear->context),
                  &first, &k_local);
    input.cols = k_local;
    status = linear_plan(linear, k_local);
    if (status != STARLIN_SUCCESS)
        return status;
    linear->x_data = calloc((size_t)(linear->m * k_local) + 1, nbytes);
    linear->w_data = calloc((size_t)(linear->n * k_local) + 1, nbytes);
    linear->y_data = calloc((size_t)(linear->m * linear->n) + 1, nbytes);
    problem_fill(linear->dtype, linear->x_data, linear->m, k_local, first, k_local,
                 linear->x_value != NULL ? linear->x_value : problem_x);
    problem_fill(linear->dtype, linear->w_data, linear->n, k_local, first, k_local,
                 linear->w_value != NULL ? linear->w_value : problem_w);
    status = starlin_matrix_wrap(linear->context, linear->rows, linear->x_data, &input, &linear->x);
    input.rows = linear->n;
    input.placement = STARLIN_REPLICATE;
    if (status == STARLIN_SUCCESS)
        status = starlin_matrix_wrap(linear->context, NULL, linear->w_data, &input, &linear->w);
    if (status == STARLIN_SUCCESS)
        status = starlin_matrix_wrap(linear->context, linear->rows, linear->y_data, &output, &linear->y);
    if (status != STARLIN_SUCCESS)
        linear_close(linear);
    return status;
}

static inline starlin_status_t linear_submit(linear_t *linear)
{
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    options.reduction = linear->reduction;
    return starlin_row_linear(linear->context, linear->x, linear->w, linear->y, &options);
}

/* Elements of y that are not the exact sum. After a wait. */
static inline size_t linear_wrong(const linear_t *linear)
{
    size_t wrong = 0;
    for (int64_t i = 0; i < linear->m; i++) {
        for (int64_t j = 0; j < linear->n; j++) {
            double actual = element_load(linear->dtype, linear->y_data, (size_t)(i * linear->n + j));
            double expected = 0.0;
            for (int64_t inner = 0; inner < linear->k; inner++)
                expected += (linear->x_value != NULL ? linear->x_value : problem_x)(i, inner) *
                            (linear->w_value != NULL ? linear->w_value : problem_w)(j, inner);
            if (actual != expected && wrong++ == 0)
                fprintf(stderr, "y[%lld,%lld] is %g, expected %g\n", (long long)i, (long long)j, actual,
                        expected);
        }
    }
    return wrong;
}

/* One linear from plan to result, all of it checked. */
static inline void linear_check(linear_t *linear)
{
    CHECK_STATUS(linear_open(linear), STARLIN_SUCCESS);
    if (linear->y == NULL)
        return;
    CHECK_STATUS(linear_submit(linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(linear->y), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(linear), 0);
    linear_close(linear);
}

#endif
