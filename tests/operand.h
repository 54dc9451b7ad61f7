/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of small integers in any memory, and exact products of them. Include check.h first. */
#ifndef STARLIN_TESTS_OPERAND_H
#define STARLIN_TESTS_OPERAND_H

#include "graph/context.h"
#include "row_linear.h"
#include "starlin/starlin_cuda.h"

/* Whose memory a matrix lies in: the library's, the caller's on the host, the caller's on the device. */
typedef enum memory { LIBRARY, HOST, DEVICE, NMEMORIES } memory_t;

static const char *const memory_names[] = {"library", "host", "device"};

typedef struct operand {
    starlin_context_t *context;
    int64_t rows, cols, ld;
    starlin_dtype_t dtype;
    memory_t memory;
    void *host;   /* rows x ld elements: the caller's memory, or where the contents come from */
    void *device; /* the caller's device memory */
    starlin_matrix_t *matrix;
} operand_t;

static inline size_t operand_nbytes(const operand_t *operand)
{
    return (size_t)(operand->rows * operand->ld) * starlin_dtype_nbytes(operand->dtype);
}

/* Into the host memory, and on to the device where the matrix lies there. `values` may be NULL: all -99. */
static inline void operand_fill(operand_t *operand, const int8_t *values)
{
    for (int64_t i = 0; i < operand->rows; i++) {
        for (int64_t j = 0; j < operand->ld; j++) {
            bool inside = values != NULL && j < operand->cols;
            element_store(operand->dtype, operand->host, (size_t)(i * operand->ld + j),
                          inside ? values[i * operand->cols + j] : -99);
        }
    }
    if (operand->memory == LIBRARY)
        CHECK_STATUS(starlin_matrix_write(operand->matrix, operand->host, operand->ld), STARLIN_SUCCESS);
    else if (operand->memory == DEVICE)
        CHECK_STATUS(operand->context->device->ops->copy(operand->context->device, operand->device,
                                                         operand_nbytes(operand), operand->host,
                                                         operand_nbytes(operand), operand_nbytes(operand), 1),
                     STARLIN_SUCCESS);
}

/* A matrix with `rows` in chunks, or not cut, of `nrows`. False when it could not be made. */
static inline bool operand_open(operand_t *operand, starlin_context_t *context,
                                const starlin_chunking_t *rows, starlin_placement_t placement, int64_t nrows,
                                int64_t cols, int64_t padding, starlin_dtype_t dtype, memory_t memory,
                                const int8_t *values)
{
    starlin_matrix_layout_t layout = {.rows = nrows, .cols = cols, .dtype = dtype, .placement = placement};

    if (memory == DEVICE && context->device == NULL)
        memory = HOST;
    *operand = (operand_t){.context = context, .rows = nrows, .cols = cols, .dtype = dtype, .memory = memory};
    operand->ld = layout.ld = memory == LIBRARY ? cols : cols + padding;
    operand->host = calloc(operand_nbytes(operand) + 1, 1);
    if (memory == LIBRARY) {
        CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &operand->matrix), STARLIN_SUCCESS);
    } else if (memory == HOST) {
        CHECK_STATUS(starlin_matrix_wrap(context, rows, operand->host, &layout, &operand->matrix),
                     STARLIN_SUCCESS);
    } else {
        CHECK_STATUS(context->device->ops->alloc(context->device, operand_nbytes(operand), &operand->device),
                     STARLIN_SUCCESS);
        CHECK_STATUS(starlin_matrix_wrap_device(context, rows, operand->device, &layout, &operand->matrix),
                     STARLIN_SUCCESS);
    }
    if (operand->matrix == NULL)
        return false;
    operand_fill(operand, values);
    return true;
}

static inline void operand_close(operand_t *operand)
{
    starlin_matrix_destroy(operand->matrix);
    if (operand->device != NULL)
        operand->context->device->ops->free(operand->context->device, operand->device);
    free(operand->host);
    *operand = (operand_t){0};
}

/* Elements that differ from the expected integers, rounded to the dtype. Waits. `bits` and `numbers` may be
 * NULL; else hashes of the bytes, and of the numbers with one sort of zero, are continued. */
static inline size_t operand_wrong(operand_t *operand, const int32_t *expected, uint64_t *bits,
                                   uint64_t *numbers)
{
    size_t count = (size_t)(operand->rows * operand->cols), wrong = 0;
    size_t nbytes = starlin_dtype_nbytes(operand->dtype);
    char *result = calloc(count + 1, nbytes);

    CHECK_STATUS(starlin_matrix_read(operand->matrix, result, 0), STARLIN_SUCCESS);
    for (size_t i = 0; i < count; i++) {
        double actual = element_load(operand->dtype, result, i) + 0.0;
        if (actual != expected[i] && wrong++ == 0)
            fprintf(stderr, "element [%lld,%lld] is %g, expected %d\n",
                    (long long)((int64_t)i / operand->cols), (long long)((int64_t)i % operand->cols), actual,
                    (int)expected[i]);
        if (numbers != NULL)
            *numbers = starlin__hash(*numbers, &actual, sizeof actual);
    }
    if (bits != NULL)
        *bits = starlin__hash(*bits, result, count * nbytes);
    if (operand->memory == HOST) { /* contiguous, being an output */
        CHECK_STATUS(starlin_matrix_wait(operand->matrix), STARLIN_SUCCESS);
        CHECK(memcmp(operand->host, result, count * nbytes) == 0);
    }
    free(result);
    return wrong;
}

/* In -1..1 and nonzero for one inner index in four: sums of up to 512 products stay exact in every dtype. */
static inline int sparse_value(int64_t row, int64_t inner, int64_t seed)
{
    if ((inner + row) % 4 != seed % 4)
        return 0;
    return (int)((row * 7 + inner * 5 + row * inner + seed) % 3) - 1;
}

/* Columns [first, first + count) of a rows x any matrix of sparse values; the caller frees it. */
static inline int8_t *sparse_values(int64_t rows, int64_t first, int64_t count, int64_t seed)
{
    int8_t *values = calloc((size_t)(rows * count) + 1, 1);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < count; j++)
            values[i * count + j] = (int8_t)sparse_value(i, first + j, seed);
    }
    return values;
}

/* sum += x w^T, for x [m,k] and w [n,k]. */
static inline void add_product(int32_t *sum, const int8_t *x, const int8_t *w, int64_t m, int64_t n,
                               int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            int32_t dot = 0;
            for (int64_t l = 0; l < k; l++)
                dot += x[i * k + l] * w[j * k + l];
            sum[i * n + j] += dot;
        }
    }
}

static inline starlin_chunking_t *plan_rows(starlin_context_t *context, int64_t m, size_t count)
{
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_chunking_t *rows = NULL;

    options.count = count;
    CHECK_STATUS(starlin_chunking_plan(context, m, NULL, 0, &options, &rows), STARLIN_SUCCESS);
    return rows;
}

#endif
