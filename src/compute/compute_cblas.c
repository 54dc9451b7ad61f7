/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference compute backend: CBLAS on the host. f16 and bf16 are widened block by block into a
 * worker's workspace, multiplied in f32, finished there and rounded once at the end. Blocks depend on the
 * shape alone, so the bits of a result do not depend on the worker. */
#include "compute/blas.h"
#include "compute/finish.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <string.h>

enum { BLOCK_ROWS = 512, BLOCK_COLUMNS = 512 };

typedef struct compute_cblas {
    starlin__compute_t base;
    unsigned nworkers;
    unsigned nthreads_before;         /* of the process's BLAS, which the application may use as well */
    float *workspaces;                /* by worker: blocks of a, b and c; NULL without half precision */
    size_t a_count, b_count, c_count; /* elements of each of a worker's blocks */
} compute_cblas_t;

static bool cblas_usable(char *why, size_t whysize)
{
    (void)why;
    (void)whysize;
    return true;
}

static starlin_status_t cblas_create(starlin__device_t *device, const starlin__config_t *config,
                                     unsigned nworkers, unsigned nthreads, starlin__compute_t **compute_p)
{
    compute_cblas_t *compute = starlin__alloc(sizeof *compute);

    (void)device;
    (void)config;
    if (compute == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "compute backend cblas");
    compute->base.ops = &starlin__compute_cblas_ops;
    compute->nworkers = nworkers;
    compute->nthreads_before = starlin__blas_set_threads((starlin__blas_fn_t)cblas_sgemm, nthreads);
    starlin__blas_identify((starlin__blas_fn_t)cblas_sgemm, &compute->base);
    *compute_p = &compute->base;
    return STARLIN_SUCCESS;
}

static void cblas_destroy(starlin__compute_t *base)
{
    compute_cblas_t *compute = (compute_cblas_t *)base;

    if (compute == NULL)
        return;
    (void)starlin__blas_set_threads((starlin__blas_fn_t)cblas_sgemm, compute->nthreads_before);
    starlin__free(compute->workspaces);
    starlin__free(compute);
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Enough for what there was and for count more, in whole cache lines. */
static size_t grown(size_t before, int64_t count)
{
    return before > (size_t)count ? before : ((size_t)count + 15) / 16 * 16;
}

/* Called while no gemm runs. Workspaces only grow; those in use serve on where there is no memory for larger
 * ones. Each worker is the first to touch its own. */
static starlin_status_t cblas_prepare(starlin__compute_t *base, const starlin__gemm_t *shape)
{
    compute_cblas_t *compute = (compute_cblas_t *)base;
    int64_t rows = min64(shape->m, BLOCK_ROWS), columns = min64(shape->n, BLOCK_COLUMNS);
    size_t a_count, b_count, c_count, nbytes;
    float *workspaces;

    if (shape->m > INT_MAX || shape->n > INT_MAX || shape->k > INT_MAX || shape->lda > INT_MAX ||
        shape->ldb > INT_MAX || shape->ldc > INT_MAX)
        return starlin__error(STARLIN_ERR_INVALID,
                              "CBLAS counts in int: m, n, k and leading dimensions at most %d", INT_MAX);
    if (!starlin__dtype_is_half(shape->dtype) || shape->m == 0 || shape->n == 0 || shape->k == 0)
        return STARLIN_SUCCESS;
    a_count = grown(compute->a_count, rows * shape->k);
    b_count = grown(compute->b_count, columns * shape->k);
    c_count = grown(compute->c_count, rows * columns);
    if (a_count == compute->a_count && b_count == compute->b_count && c_count == compute->c_count)
        return STARLIN_SUCCESS;
    nbytes = (a_count + b_count + c_count) * sizeof(float);
    workspaces = starlin__alloc(compute->nworkers * nbytes);
    if (workspaces == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "workspaces of %u workers: %zu bytes each",
                              compute->nworkers, nbytes);
    starlin__free(compute->workspaces);
    compute->workspaces = workspaces;
    compute->a_count = a_count;
    compute->b_count = b_count;
    compute->c_count = c_count;
    return STARLIN_SUCCESS;
}

/* On the block in f32 before it is rounded, or in place; a wide result is another function's input. */
static bool cblas_fuses(const starlin__compute_t *compute, const starlin__gemm_t *shape)
{
    (void)compute;
    return shape->out_dtype == shape->dtype || starlin__epilogue_empty(&shape->epilogue);
}

/* A block of f16 or bf16 in f32, without gaps. */
static void widen(const starlin__gemm_t *gemm, const void *matrix, int64_t ld, int64_t row, int64_t column,
                  int64_t rows, int64_t columns, float *wide)
{
    const uint16_t *half = (const uint16_t *)matrix + row * ld + column;

    for (int64_t i = 0; i < rows; i++)
        starlin__half_to_f32(gemm->dtype, half + i * ld, wide + i * columns, (size_t)columns);
}

/* The block of c at (row, column), from the widened blocks of a and b. */
static void block_half(const starlin__gemm_t *gemm, int64_t row, int64_t column, const float *a,
                       const float *b, float *c)
{
    int64_t rows = min64(BLOCK_ROWS, gemm->m - row), columns = min64(BLOCK_COLUMNS, gemm->n - column);
    bool rounds = gemm->out_dtype != STARLIN_F32;
    starlin__view_t product = {.data = c, .rows = rows, .cols = columns, .ld = columns, .dtype = STARLIN_F32};

    if (!rounds) {
        product.data = (float *)gemm->c + row * gemm->ldc + column;
        product.ld = gemm->ldc;
    } else if (gemm->beta != 0)
        widen(gemm, gemm->c, gemm->ldc, row, column, rows, columns, c);
    cblas_sgemm(CblasRowMajor, gemm->transpose_a ? CblasTrans : CblasNoTrans,
                gemm->transpose_b ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)gemm->k, 1.0f, a,
                (int)(gemm->transpose_a ? rows : gemm->k), b, (int)(gemm->transpose_b ? gemm->k : columns),
                (float)gemm->beta, product.data, (int)product.ld);
    if (rounds) {
        starlin__rowwise_args_t args = starlin__epilogue_args(gemm, row, column, &product);
        starlin__finish.cpu(&args);
    }
}

static void gemm_half(const compute_cblas_t *compute, unsigned worker, const starlin__gemm_t *gemm)
{
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    float *a = compute->workspaces + worker * (compute->a_count + compute->b_count + compute->c_count);
    float *b = a + compute->a_count, *c = b + compute->b_count;

    for (int64_t row = 0; row < m; row += BLOCK_ROWS) {
        if (gemm->transpose_a)
            widen(gemm, gemm->a, gemm->lda, 0, row, k, min64(BLOCK_ROWS, m - row), a);
        else
            widen(gemm, gemm->a, gemm->lda, row, 0, min64(BLOCK_ROWS, m - row), k, a);
        for (int64_t column = 0; column < n; column += BLOCK_COLUMNS) {
            if (gemm->transpose_b)
                widen(gemm, gemm->b, gemm->ldb, column, 0, min64(BLOCK_COLUMNS, n - column), k, b);
            else
                widen(gemm, gemm->b, gemm->ldb, 0, column, k, min64(BLOCK_COLUMNS, n - column), b);
            block_half(gemm, row, column, a, b, c);
        }
    }
}

static void gemm_full(const starlin__gemm_t *gemm)
{
    CBLAS_TRANSPOSE op_a = gemm->transpose_a ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE op_b = gemm->transpose_b ? CblasTrans : CblasNoTrans;
    int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    int lda = (int)gemm->lda, ldb = (int)gemm->ldb, ldc = (int)gemm->ldc;

    if (gemm->dtype == STARLIN_F64)
        cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, 1.0, gemm->a, lda, gemm->b, ldb, gemm->beta, gemm->c,
                    ldc);
    else
        cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1.0f, gemm->a, lda, gemm->b, ldb, (float)gemm->beta,
                    gemm->c, ldc);
}

static void zero(const starlin__gemm_t *gemm)
{
    size_t nbytes = starlin_dtype_nbytes(gemm->out_dtype);

    for (int64_t row = 0; row < gemm->m; row++)
        memset((char *)gemm->c + (size_t)(row * gemm->ldc) * nbytes, 0, (size_t)gemm->n * nbytes);
}

static starlin_status_t cblas_gemm(starlin__compute_t *base, unsigned worker, const starlin__gemm_t *gemm)
{
    compute_cblas_t *compute = (compute_cblas_t *)base;
    starlin__rowwise_args_t args;

    assert(cblas_fuses(base, gemm));
    assert(gemm->beta == 0 || gemm->beta == 1);
    if (starlin_dtype_nbytes(gemm->dtype) == 0)
        return starlin__error(STARLIN_ERR_INVALID, "gemm of dtype %d", (int)gemm->dtype);
    if (gemm->m == 0 || gemm->n == 0)
        return STARLIN_SUCCESS;
    if (starlin__dtype_is_half(gemm->dtype) && gemm->k > 0) {
        gemm_half(compute, worker, gemm);
        return STARLIN_SUCCESS;
    }
    if (gemm->k > 0)
        gemm_full(gemm);
    else if (gemm->beta == 0)
        zero(gemm);
    args = starlin__epilogue_args(gemm, 0, 0, NULL);
    starlin__finish.cpu(&args);
    return STARLIN_SUCCESS;
}

static starlin_status_t cblas_rowwise(starlin__compute_t *compute, const starlin__rowwise_kind_t *kind,
                                      const starlin__rowwise_args_t *args)
{
    (void)compute;
    if (kind->cpu == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "%s does not run on the host", kind->name);
    kind->cpu(args);
    return STARLIN_SUCCESS;
}

const starlin__compute_ops_t starlin__compute_cblas_ops = {
    .name = "cblas",
    .usable = cblas_usable,
    .space = STARLIN__HOST,
    .create = cblas_create,
    .destroy = cblas_destroy,
    .prepare = cblas_prepare,
    .fuses = cblas_fuses,
    .gemm = cblas_gemm,
    .rowwise = cblas_rowwise,
};
