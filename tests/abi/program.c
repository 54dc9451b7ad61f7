/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses the installed library as somebody else's program does: one rank, small integers, exact sums. */
#include <starlin/starlin.h>
#include <stdio.h>

enum { M = 5, N = 3, K = 4 };

static int check(starlin_status_t status)
{
    if (status != STARLIN_SUCCESS)
        fprintf(stderr, "%s: %s\n", starlin_status_string(status), starlin_last_error());
    return status != STARLIN_SUCCESS;
}

int main(void)
{
    float x[M * K], w[N * K], y[M * N];
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i % 5 - 2);

    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *xm, *wm, *ym;
    starlin_operation_t operation = STARLIN_OPERATION_INIT;
    operation.op = STARLIN_OP_ROW_LINEAR;
    operation.n = N;
    operation.k = K;
    starlin_chunking_options_t chunking = STARLIN_CHUNKING_OPTIONS_INIT;
    chunking.count = 2;
    starlin_matrix_layout_t x_layout = {.cols = K, .placement = STARLIN_SHARD_COLS};
    starlin_matrix_layout_t w_layout = {.rows = N, .cols = K};
    starlin_matrix_layout_t y_layout = {.cols = N};

    if (check(starlin_context_create(NULL, &context)) ||
        check(starlin_chunking_plan(context, M, &operation, 1, &chunking, &rows)) ||
        check(starlin_matrix_wrap(context, rows, x, &x_layout, &xm)) ||
        check(starlin_matrix_wrap(context, NULL, w, &w_layout, &wm)) ||
        check(starlin_matrix_wrap(context, rows, y, &y_layout, &ym)) ||
        check(starlin_row_linear(context, xm, wm, ym, NULL)) || check(starlin_context_wait(context)))
        return 1;

    int wrong = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += x[i * K + k] * w[j * K + k];
            wrong += y[i * N + j] != sum;
        }
    starlin_matrix_destroy(xm);
    starlin_matrix_destroy(wm);
    starlin_matrix_destroy(ym);
    starlin_chunking_destroy(rows);
    if (check(starlin_context_destroy(context)))
        return 1;
    printf("%zu chunks, %d wrong\n", (size_t)2, wrong);
    return wrong != 0;
}
