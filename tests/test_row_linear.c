/* SPDX-License-Identifier: BSD-3-Clause */
/* The operator, exact for every dtype, reduction, chunking and rank count; run alone and under mpirun. */
#include <mpi.h>

#include "check.h"
#include "row_linear.h"
#include "starlin/starlin_mpi.h"

typedef struct problem {
    int64_t m, n, k;
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
    size_t count;        /* chunks */
    int64_t padding;     /* of the inputs' leading dimension */
    bool library_memory; /* of y */
} problem_t;

static size_t wrong_elements(const problem_t *problem, const void *y)
{
    size_t wrong = 0;
    for (int64_t i = 0; i < problem->m; i++) {
        for (int64_t j = 0; j < problem->n; j++) {
            double expected = problem_y(i, j, problem->k);
            double actual = element_load(problem->dtype, y, (size_t)(i * problem->n + j));
            if (actual != expected && wrong++ == 0)
                fprintf(stderr, "y[%lld,%lld] is %g, expected %g\n", (long long)i, (long long)j, actual,
                        expected);
        }
    }
    return wrong;
}

static void run(starlin_context_t *context, const problem_t *problem)
{
    int rank = starlin_context_rank(context), nranks = starlin_context_nranks(context);
    starlin_chunking_options_t chunks = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    starlin_operation_t operation = STARLIN_OPERATION_INIT;
    starlin_matrix_layout_t input = {.dtype = problem->dtype, .placement = STARLIN_SHARD_COLS},
                            output = {.cols = problem->n, .dtype = problem->dtype};
    starlin_matrix_t *x = NULL, *w = NULL, *y = NULL;
    starlin_chunking_t *rows = NULL;
    size_t nbytes = starlin_dtype_nbytes(problem->dtype);
    void *x_data, *w_data, *y_data, *result;
    int64_t first;

    problem_slice(problem->k, rank, nranks, &first, &operation.k);
    input.cols = operation.k;
    input.ld = operation.k + problem->padding;
    x_data = calloc((size_t)(problem->m * input.ld) + 1, nbytes);
    w_data = calloc((size_t)(problem->n * input.ld) + 1, nbytes);
    y_data = calloc((size_t)(problem->m * problem->n), nbytes);
    result = calloc((size_t)(problem->m * problem->n), nbytes);
    problem_fill(problem->dtype, x_data, problem->m, input.ld, first, operation.k, problem_x);
    problem_fill(problem->dtype, w_data, problem->n, input.ld, first, operation.k, problem_w);

    operation.op = STARLIN_OP_ROW_LINEAR;
    operation.n = problem->n;
    operation.dtype = problem->dtype;
    operation.reduction = problem->reduction;
    chunks.count = problem->count;
    options.reduction = problem->reduction;
    CHECK_STATUS(starlin_chunking_plan(context, problem->m, &operation, 1, &chunks, &rows), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wrap(context, rows, x_data, &input, &x), STARLIN_SUCCESS);
    input.rows = problem->n;
    input.placement = STARLIN_REPLICATE;
    CHECK_STATUS(starlin_matrix_wrap(context, NULL, w_data, &input, &w), STARLIN_SUCCESS);
    if (problem->library_memory)
        CHECK_STATUS(starlin_matrix_create(context, rows, &output, &y), STARLIN_SUCCESS);
    else
        CHECK_STATUS(starlin_matrix_wrap(context, rows, y_data, &output, &y), STARLIN_SUCCESS);
    for (int repetition = 0; repetition < 2; repetition++)
        CHECK_STATUS(starlin_row_linear(context, x, w, y, &options), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_read(y, result, 0), STARLIN_SUCCESS);
    CHECK_EQ_INT(wrong_elements(problem, result), 0);
    if (!problem->library_memory) {
        CHECK_STATUS(starlin_matrix_wait(y), STARLIN_SUCCESS);
        CHECK_EQ_INT(wrong_elements(problem, y_data), 0);
    }
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    starlin_chunking_destroy(rows);
    free(x_data);
    free(w_data);
    free(y_data);
    free(result);
}

int main(int argc, char **argv)
{
    static const int64_t shapes[][3] = {{37, 19, 23}, {1, 1, 1}, {5, 1, 3}, {64, 32, 7}, {3, 70, 2}};
    static const size_t counts[] = {0, 1, 5, 8, 64};
    starlin_context_t *context = NULL;
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_STATUS(starlin_mpi_context_create(MPI_COMM_WORLD, NULL, &context), STARLIN_SUCCESS);
    for (size_t i = 0; context != NULL && i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int dtype = 0; dtype < 4; dtype++) {
            for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
                problem_t problem = {.m = shapes[i][0],
                                     .n = shapes[i][1],
                                     .k = shapes[i][2],
                                     .dtype = (starlin_dtype_t)dtype,
                                     .reduction = (starlin_reduction_t)(j % 2),
                                     .count = counts[j],
                                     .padding = (int64_t)(j % 3),
                                     .library_memory = (i + j) % 2 == 0};
                run(context, &problem);
            }
        }
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    MPI_Finalize();
    return CHECK_RESULT();
}
