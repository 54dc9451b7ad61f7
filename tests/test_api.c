/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong use of the API on one rank: a status and a text that names the value, nothing broken by it. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "linear.h"

/* The call is refused with this status and a text that contains `part`; afterwards all still works. */
#define CHECK_REFUSED(call, expected, part)                                                                  \
    do {                                                                                                     \
        CHECK_STATUS(call, expected);                                                                        \
        CHECK_CONTAINS(starlin_last_error(), part);                                                          \
    } while (0)

static const starlin_operation_t good_operation = {
    .struct_size = sizeof(starlin_operation_t), .op = STARLIN_OP_ROW_LINEAR, .n = 5, .k = 3};

static void test_context_options(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;

    CHECK_REFUSED(starlin_context_create(NULL, NULL), STARLIN_ERR_INVALID, "context_p");
    options.struct_size = 3;
    CHECK_REFUSED(starlin_context_create(&options, &context), STARLIN_ERR_INVALID, "struct_size is 3");
    struct {
        starlin_context_options_t known;
        int later;
    } later = {STARLIN_CONTEXT_OPTIONS_INIT, 1};
    later.known.struct_size = sizeof later;
    CHECK_REFUSED(starlin_context_create(&later.known, &context), STARLIN_ERR_UNSUPPORTED, "struct_size is ");
    options = (starlin_context_options_t)STARLIN_CONTEXT_OPTIONS_INIT;
    options.comm = "carrier-pigeon";
    CHECK_REFUSED(starlin_context_create(&options, &context), STARLIN_ERR_UNSUPPORTED, "carrier-pigeon");
    CHECK_CONTAINS(starlin_last_error(), "self");
    options.comm = "model:gbps=fast";
    CHECK_REFUSED(starlin_context_create(&options, &context), STARLIN_ERR_INVALID, "gbps=fast");
    options.comm = "mpi";
    CHECK(starlin_context_create(&options, &context) < 0);
    options.comm = NULL;
    options.compute = "abacus";
    CHECK_REFUSED(starlin_context_create(&options, &context), STARLIN_ERR_UNSUPPORTED, "abacus");
    CHECK_CONTAINS(starlin_last_error(), "cblas");
    options.compute = NULL;
    options.policy = "whim";
    CHECK_REFUSED(starlin_context_create(&options, &context), STARLIN_ERR_INVALID, "whim");
    CHECK_CONTAINS(starlin_last_error(), "lws");
    CHECK(context == NULL);
    CHECK_STATUS(starlin_context_destroy(NULL), STARLIN_SUCCESS);
    CHECK_REFUSED(starlin_context_wait(NULL), STARLIN_ERR_INVALID, "context is NULL");
    CHECK_REFUSED(starlin_context_get_info(NULL, &info), STARLIN_ERR_INVALID, "context is NULL");
    CHECK_EQ_INT(starlin_context_rank(NULL), 0);
    CHECK_EQ_INT(starlin_context_nranks(NULL), 0);
}

static void refuse_shape(starlin_context_t *context, int64_t m, int64_t n, int64_t k, const char *part)
{
    starlin_operation_t operation = good_operation;
    starlin_chunking_t *rows = NULL;

    operation.n = n;
    operation.k = k;
    CHECK_REFUSED(starlin_chunking_plan(context, m, &operation, 1, NULL, &rows), STARLIN_ERR_INVALID, part);
    CHECK(rows == NULL);
}

/* The second of two operations is wrong for the reason in `part`. */
static void refuse_second(starlin_context_t *context, starlin_operation_t operation, const char *part)
{
    starlin_operation_t operations[2] = {good_operation, operation};
    starlin_chunking_t *rows = NULL;

    CHECK_REFUSED(starlin_chunking_plan(context, 8, operations, 2, NULL, &rows), STARLIN_ERR_INVALID, part);
    CHECK(rows == NULL);
}

static void test_shapes(starlin_context_t *context)
{
    starlin_operation_t operation = good_operation;
    starlin_chunking_t *rows = NULL;

    CHECK_REFUSED(starlin_chunking_plan(NULL, 8, &operation, 1, NULL, &rows), STARLIN_ERR_INVALID, "context");
    CHECK_REFUSED(starlin_chunking_plan(context, 8, &operation, 1, NULL, NULL), STARLIN_ERR_INVALID,
                  "chunking_p");
    CHECK_REFUSED(starlin_chunking_plan(context, 8, NULL, 1, NULL, &rows), STARLIN_ERR_INVALID, "operations");
    CHECK_REFUSED(starlin_chunking_plan(context, 8, &operation, 0, NULL, &rows), STARLIN_ERR_INVALID,
                  "operations");
    refuse_shape(context, 0, 5, 3, "m is 0");
    refuse_shape(context, -8, 5, 3, "m is -8");
    refuse_shape(context, 8, 0, 3, "n");
    refuse_shape(context, 8, 5, -1, "-1");
    refuse_shape(context, INT64_MAX, 5, 3, "9223372036854775807");
    refuse_shape(context, 1, 1, INT64_MAX, "9223372036854775807");
    /* each size is allowed, their products overflow */
    refuse_shape(context, (int64_t)1 << 40, (int64_t)1 << 40, 3, "1099511627776");
    refuse_shape(context, (int64_t)1 << 40, 1, (int64_t)1 << 40, "1099511627776");
    refuse_shape(context, 1, (int64_t)1 << 40, (int64_t)1 << 40, "1099511627776");
    operation.dtype = (starlin_dtype_t)4;
    refuse_second(context, operation, "dtype is 4");
    operation.dtype = STARLIN_F16;
    operation.reduction = (starlin_reduction_t)7;
    refuse_second(context, operation, "reduction is 7");
    operation = good_operation;
    operation.op = (starlin_operator_t)77;
    refuse_second(context, operation, "77");
    operation = good_operation;
    operation.to = (starlin_placement_t)9;
    refuse_second(context, operation, "9");
    operation = good_operation;
    operation.activation = (starlin_activation_kind_t)11;
    refuse_second(context, operation, "11");
    operation = good_operation;
    operation.struct_size = 3;
    CHECK_REFUSED(starlin_chunking_plan(context, 8, &operation, 1, NULL, &rows), STARLIN_ERR_INVALID,
                  "struct_size is 3");
}

static void refuse_chunks(starlin_context_t *context, size_t size, size_t count, const int64_t *list,
                          size_t nrows, const char *part)
{
    starlin_chunking_options_t options = {.struct_size = size, .count = count, .rows = list, .nrows = nrows};
    starlin_chunking_t *rows = NULL;

    CHECK_REFUSED(starlin_chunking_plan(context, 8, &good_operation, 1, &options, &rows), STARLIN_ERR_INVALID,
                  part);
    CHECK(rows == NULL);
}

static void test_chunk_lists(starlin_context_t *context)
{
    static const int64_t list[] = {3, 4}, zero[] = {8, 0}, negative[] = {9, -1},
                         huge[] = {INT64_MAX, INT64_MAX};
    size_t size = sizeof(starlin_chunking_options_t);

    refuse_chunks(context, 1, 2, NULL, 0, "struct_size is 1");
    refuse_chunks(context, size, 0, list, 2, "sum is 7");
    refuse_chunks(context, size, 2, list, 2, "count is 2");
    refuse_chunks(context, size, 0, list, 0, "nrows 0");
    refuse_chunks(context, size, 0, NULL, 2, "nrows 2");
    refuse_chunks(context, size, 0, zero, 2, "entry 1 is 0");
    refuse_chunks(context, size, 0, negative, 2, "entry 0 is 9");
    refuse_chunks(context, size, 0, huge, 2, "9223372036854775807");
    refuse_chunks(context, size, SIZE_MAX, NULL, 0, "18446744073709551615");
    refuse_chunks(context, size, 257, NULL, 0, "257");
    starlin_chunking_destroy(NULL);
    CHECK_EQ_INT(starlin_chunking_count(NULL), 0);
    CHECK_EQ_INT(starlin_chunking_rows(NULL, 0), 0);
    CHECK_EQ_INT(starlin_chunking_total_rows(NULL), 0);
    CHECK(starlin_chunking_fallback(NULL) == NULL);
}

static void refuse_layout(starlin_context_t *context, int64_t rows, int64_t cols, int64_t ld, int dtype,
                          const char *part)
{
    starlin_matrix_layout_t layout = {.rows = rows, .cols = cols, .ld = ld, .dtype = (starlin_dtype_t)dtype};
    starlin_matrix_t *matrix = NULL;
    float data[4];

    CHECK_REFUSED(starlin_matrix_create(context, NULL, &layout, &matrix), STARLIN_ERR_INVALID, part);
    CHECK_REFUSED(starlin_matrix_wrap(context, NULL, data, &layout, &matrix), STARLIN_ERR_INVALID, part);
    CHECK(matrix == NULL);
}

static void test_matrices(starlin_context_t *context)
{
    starlin_matrix_layout_t layout = {.rows = 2, .cols = 2};
    starlin_matrix_t *matrix = NULL;
    float data[4] = {1, 2, 3, 4}, copy[4] = {0};

    CHECK_REFUSED(starlin_matrix_create(NULL, NULL, &layout, &matrix), STARLIN_ERR_INVALID, "context");
    CHECK_REFUSED(starlin_matrix_create(context, NULL, NULL, &matrix), STARLIN_ERR_INVALID, "layout");
    CHECK_REFUSED(starlin_matrix_create(context, NULL, &layout, NULL), STARLIN_ERR_INVALID, "matrix_p");
    CHECK_REFUSED(starlin_matrix_wrap(context, NULL, NULL, &layout, &matrix), STARLIN_ERR_INVALID, "data");
    CHECK_REFUSED(starlin_matrix_wrap(context, NULL, data, &layout, NULL), STARLIN_ERR_INVALID, "matrix_p");
    refuse_layout(context, 0, 0, 0, 0, "rows is 0 and cols 0");
    refuse_layout(context, -2, 2, 0, 0, "rows is -2");
    refuse_layout(context, 2, -2, 0, 0, "cols -2");
    refuse_layout(context, 2, 2, 1, 0, "ld is 1");
    refuse_layout(context, 2, 2, -1, 0, "ld is -1");
    refuse_layout(context, 2, INT64_MAX, 0, 0, "9223372036854775807");
    refuse_layout(context, INT64_MAX, 2, 0, 0, "9223372036854775807");
    refuse_layout(context, 2, 2, 0, 4, "dtype is 4");
    refuse_layout(context, (int64_t)1 << 32, 2, 0, 0, "4294967296");
    layout.ld = 3;
    CHECK_REFUSED(starlin_matrix_create(context, NULL, &layout, &matrix), STARLIN_ERR_INVALID, "ld is 3");
    layout.ld = 0;
    CHECK_STATUS(starlin_matrix_wrap(context, NULL, data, &layout, &matrix), STARLIN_SUCCESS);
    CHECK_REFUSED(starlin_matrix_read(NULL, copy, 0), STARLIN_ERR_INVALID, "matrix is NULL");
    CHECK_REFUSED(starlin_matrix_read(matrix, NULL, 0), STARLIN_ERR_INVALID, "host is NULL");
    CHECK_REFUSED(starlin_matrix_read(matrix, copy, 1), STARLIN_ERR_INVALID, "ld is 1");
    CHECK_REFUSED(starlin_matrix_read(matrix, copy, INT64_MAX), STARLIN_ERR_INVALID, "9223372036854775807");
    CHECK_REFUSED(starlin_matrix_write(matrix, NULL, 0), STARLIN_ERR_INVALID, "host is NULL");
    CHECK_REFUSED(starlin_matrix_wait(NULL), STARLIN_ERR_INVALID, "matrix is NULL");
    CHECK_STATUS(starlin_matrix_read(matrix, copy, 0), STARLIN_SUCCESS);
    CHECK(memcmp(copy, data, sizeof data) == 0);
    CHECK(starlin_matrix_data(NULL) == NULL);
    starlin_matrix_destroy(NULL);
    starlin_matrix_destroy(matrix);
}

static starlin_matrix_t *wrap(starlin_context_t *context, const starlin_chunking_t *rows, float *data,
                              starlin_matrix_layout_t layout)
{
    starlin_matrix_t *matrix = NULL;
    CHECK_STATUS(starlin_matrix_wrap(context, rows, data, &layout, &matrix), STARLIN_SUCCESS);
    return matrix;
}

static void refuse_operator(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *w,
                            starlin_matrix_t *y, const char *part)
{
    CHECK_REFUSED(starlin_row_linear(context, x, w, y, NULL), STARLIN_ERR_INVALID, part);
}

/* A y that does not fit a.x and a.w for the reason in `part`. */
static void refuse_y(const linear_t *a, const starlin_chunking_t *rows, void *data,
                     starlin_matrix_layout_t layout, const char *part)
{
    starlin_matrix_t *y = wrap(a->context, rows, data, layout);
    refuse_operator(a->context, a->x, a->w, y, part);
    starlin_matrix_destroy(y);
}

static void test_operators(starlin_context_t *context)
{
    linear_t a = {.context = context, .m = 8, .n = 5, .k = 12, .count = 2}; /* y is smaller than x and w */
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    static float memory[8 * 32];
    starlin_matrix_t *x, *own_x;

    CHECK_STATUS(linear_open(&a), STARLIN_SUCCESS);
    refuse_operator(NULL, a.x, a.w, a.y, "context is NULL");
    refuse_operator(context, NULL, a.w, a.y, "x is NULL");
    refuse_operator(context, a.x, NULL, a.y, "w is NULL");
    refuse_operator(context, a.x, a.w, NULL, "y is NULL");
    refuse_operator(context, a.w, a.x, a.y, "x is not cut");
    refuse_operator(context, a.x, a.w, a.x, "both are n");
    options.struct_size = 5;
    CHECK_REFUSED(starlin_row_linear(context, a.x, a.w, a.y, &options), STARLIN_ERR_INVALID,
                  "struct_size is 5");
    options.struct_size = sizeof options;
    options.reduction = (starlin_reduction_t)-3;
    CHECK_REFUSED(starlin_row_linear(context, a.x, a.w, a.y, &options), STARLIN_ERR_INVALID, "-3");
    refuse_y(&a, a.rows, memory, (starlin_matrix_layout_t){.cols = 6}, "y has 6 columns and w 5");
    refuse_y(&a, a.rows, memory, (starlin_matrix_layout_t){.cols = 5, .dtype = STARLIN_F64}, "y f64");
    refuse_y(&a, NULL, memory, (starlin_matrix_layout_t){.rows = 8, .cols = 5}, "y is not cut");
    refuse_y(&a, a.rows, a.x_data, (starlin_matrix_layout_t){.cols = 5}, "overlaps that of x");
    own_x = a.x;
    a.x = x =
        wrap(context, a.rows, memory, (starlin_matrix_layout_t){.cols = 12, .placement = STARLIN_SHARD_COLS});
    refuse_y(&a, a.rows, memory + 8 * 12 - 1, (starlin_matrix_layout_t){.cols = 5}, "overlaps that of x");
    a.x = own_x;
    starlin_matrix_destroy(x);
    refuse_y(&a, a.rows, (float *)a.w_data + 1, (starlin_matrix_layout_t){.cols = 5}, "overlaps that of w");
    /* nothing of this has done harm */
    CHECK_STATUS(linear_submit(&a), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(a.y), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&a), 0);
    linear_close(&a);
}

/* Neighbours in memory are no overlap: y right behind x's last column, an empty x inside of y. */
static void test_neighbours(starlin_context_t *context)
{
    linear_t a = {.context = context, .m = 2, .n = 2, .k = 1, .count = 1};
    float memory[8] = {1, -7, 2}, weight[2] = {1, 1};
    starlin_matrix_t *x, *w, *y, *empty_x, *empty_w;

    CHECK_STATUS(linear_plan(&a, 1), STARLIN_SUCCESS);
    x = wrap(context, a.rows, memory,
             (starlin_matrix_layout_t){.cols = 1, .ld = 2, .placement = STARLIN_SHARD_COLS});
    w = wrap(context, NULL, weight, (starlin_matrix_layout_t){.rows = 2, .cols = 1});
    y = wrap(context, a.rows, memory + 3, (starlin_matrix_layout_t){.cols = 2});
    empty_x = wrap(context, a.rows, memory + 4,
                   (starlin_matrix_layout_t){.cols = 0, .ld = 1, .placement = STARLIN_SHARD_COLS});
    empty_w = wrap(context, NULL, weight, (starlin_matrix_layout_t){.rows = 2});
    CHECK_STATUS(starlin_row_linear(context, x, w, y, NULL), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(y), STARLIN_SUCCESS);
    CHECK(memory[3] == 1 && memory[4] == 1 && memory[5] == 2 && memory[6] == 2);
    CHECK_STATUS(starlin_row_linear(context, empty_x, empty_w, y, NULL), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(y), STARLIN_SUCCESS);
    CHECK(memory[3] == 0 && memory[6] == 0 && memory[7] == 0);
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    starlin_matrix_destroy(empty_x);
    starlin_matrix_destroy(empty_w);
    starlin_chunking_destroy(a.rows);
}

static void test_lifetimes(starlin_context_t *context)
{
    linear_t a = {.context = context, .m = 8, .n = 5, .k = 3, .count = 2};
    starlin_context_t *second = NULL;

    CHECK_REFUSED(starlin_context_create(NULL, &second), STARLIN_ERR_BUSY, "context");
    CHECK(second == NULL);
    CHECK_STATUS(linear_open(&a), STARLIN_SUCCESS);
    CHECK_REFUSED(starlin_context_destroy(context), STARLIN_ERR_BUSY, "3 matrices");
    starlin_chunking_destroy(a.rows);
    a.rows = NULL;
    CHECK_STATUS(linear_submit(&a), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(a.y), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&a), 0);
    /* partials of y are no matrices of the caller */
    linear_close(&a);
    a.dtype = STARLIN_BF16;
    a.reduction = STARLIN_REDUCTION_F32;
    CHECK_STATUS(linear_open(&a), STARLIN_SUCCESS);
    CHECK_STATUS(linear_submit(&a), STARLIN_SUCCESS);
    CHECK_REFUSED(starlin_context_destroy(context), STARLIN_ERR_BUSY, "3 matrices");
    /* destroyed while in flight: waits */
    linear_close(&a);
}

int main(void)
{
    starlin_context_t *context = NULL;

    setenv("STARPU_SILENT", "1", 0);
    test_context_options();
    CHECK_STATUS(starlin_context_create(NULL, &context), STARLIN_SUCCESS);
    if (context == NULL)
        return 1;
    test_shapes(context);
    test_chunk_lists(context);
    test_matrices(context);
    test_operators(context);
    test_neighbours(context);
    test_lifetimes(context);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return CHECK_RESULT();
}
