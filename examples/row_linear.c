/* SPDX-License-Identifier: BSD-3-Clause */
/* One row-parallel linear on every rank: mpirun -np 2 row_linear */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include <starlin/starlin_mpi.h>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        if ((call) != STARLIN_SUCCESS) {                                                                     \
            fprintf(stderr, "%s\n", starlin_last_error());                                                   \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

enum { M = 512, N = 256, K_LOCAL = 128 };

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    float *x = malloc(sizeof(*x) * M * K_LOCAL); /* this rank's slice of the inputs, [M,K_LOCAL] */
    float *w = malloc(sizeof(*w) * N * K_LOCAL); /* and of an nn.Linear weight, [N,K_LOCAL] */
    for (int i = 0; i < M * K_LOCAL; i++)
        x[i] = 1;
    for (int i = 0; i < N * K_LOCAL; i++)
        w[i] = 2;

    starlin_context_t *context;
    CHECK(starlin_mpi_context_create(MPI_COMM_WORLD, NULL, &context));

    starlin_operation_t operation = STARLIN_OPERATION_INIT;
    operation.op = STARLIN_OP_ROW_LINEAR;
    operation.n = N;
    operation.k = K_LOCAL;
    starlin_chunking_t *rows;
    CHECK(starlin_chunking_plan(context, M, &operation, 1, NULL, &rows)); /* measures, and picks the chunks */

    starlin_matrix_t *mx, *mw, *my;
    starlin_matrix_layout_t x_layout = {.cols = K_LOCAL, .placement = STARLIN_SHARD_COLS};
    CHECK(starlin_matrix_wrap(context, rows, x, &x_layout, &mx));
    CHECK(starlin_matrix_wrap(context, NULL, w, &(starlin_matrix_layout_t){.rows = N, .cols = K_LOCAL}, &mw));
    CHECK(starlin_matrix_create(context, rows, &(starlin_matrix_layout_t){.cols = N}, &my));
    CHECK(starlin_row_linear(context, mx, mw, my, NULL)); /* returns at once */
    float *y = malloc(sizeof(*y) * M * N);
    CHECK(starlin_matrix_read(my, y, 0)); /* waits, then copies */

    float expected = 2.0f * K_LOCAL * (float)starlin_context_nranks(context);
    float first = y[0];
    printf("rank %d: %zu chunks, y[0][0] = %g, expected %g\n", starlin_context_rank(context),
           starlin_chunking_count(rows), (double)first, (double)expected);

    starlin_matrix_destroy(mx), starlin_matrix_destroy(mw), starlin_matrix_destroy(my);
    starlin_chunking_destroy(rows);
    CHECK(starlin_context_destroy(context));
    free(x), free(w), free(y);
    MPI_Finalize();
    return first != expected;
}
