/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference compute backend: CBLAS on the host. f16 and bf16 are widened block by block into a
 * worker's workspace, multiplied in f32 and rounded once at the end. Blocks depend on the shape alone, so the
 * bits of a result do not depend on the worker. */
#include "compute/compute.h"

#include <cblas.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_ROWS = 512, BLOCK_COLUMNS = 512 };

typedef struct workspace {
    float *x, *w, *y;
} workspace_t;

typedef struct compute_cblas {
    starlin__compute_t base;
    unsigned nworkers;
    int nthreads_before;              /* of the process's BLAS, which the application may use as well */
    size_t x_count, w_count, y_count; /* elements of each worker's buffers */
    workspace_t *workspaces;          /* by worker; NULL until a half-precision gemm is prepared */
} compute_cblas_t;

static bool cblas_usable(char *why, size_t whysize)
{
    (void)why;
    (void)whysize;
    return true;
}

/* CBLAS itself has no call for this; OpenBLAS has, other libraries follow OMP_NUM_THREADS. */
__attribute__((weak)) void openblas_set_num_threads(int nthreads);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) char *openblas_get_config(void);

/* The number before; 0 if not known. */
static int blas_set_threads(int nthreads)
{
    int before = openblas_get_num_threads != NULL ? openblas_get_num_threads() : 0;

    if (openblas_set_num_threads != NULL && nthreads > 0)
        openblas_set_num_threads(nthreads);
    return before;
}

static starlin_status_t cblas_create(starlin__device_t *device, unsigned nworkers, unsigned nthreads,
                                     starlin__compute_t **compute_p)
{
    compute_cblas_t *compute = starlin__alloc(sizeof *compute);

    (void)device;
    if (compute == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "compute backend cblas");
    compute->base.ops = &starlin__compute_cblas_ops;
    compute->nworkers = nworkers;
    if (openblas_get_config != NULL)
        snprintf(compute->base.version, sizeof compute->base.version, "%.63s", openblas_get_config());
    compute->nthreads_before = blas_set_threads((int)nthreads);
    *compute_p = &compute->base;
    return STARLIN_SUCCESS;
}

static void workspaces_free(workspace_t *workspaces, unsigned nworkers)
{
    for (unsigned i = 0; workspaces != NULL && i < nworkers; i++) {
        starlin__free(workspaces[i].x);
        starlin__free(workspaces[i].w);
        starlin__free(workspaces[i].y);
    }
    starlin__free(workspaces);
}

static void cblas_destroy(starlin__compute_t *base)
{
    compute_cblas_t *compute = (compute_cblas_t *)base;
    (void)blas_set_threads(compute->nthreads_before);
    workspaces_free(compute->workspaces, compute->nworkers);
    starlin__free(compute);
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* All workers', or none: those in use serve on where there is no memory for larger ones. */
static workspace_t *workspaces_create(unsigned nworkers, size_t x_count, size_t w_count, size_t y_count)
{
    workspace_t *workspaces = starlin__alloc(nworkers * sizeof *workspaces);

    for (unsigned i = 0; workspaces != NULL && i < nworkers; i++) {
        workspaces[i].x = starlin__alloc(x_count * sizeof(float));
        workspaces[i].w = starlin__alloc(w_count * sizeof(float));
        workspaces[i].y = starlin__alloc(y_count * sizeof(float));
        if (workspaces[i].x == NULL || workspaces[i].w == NULL || workspaces[i].y == NULL) {
            workspaces_free(workspaces, nworkers);
            return NULL;
        }
    }
    return workspaces;
}

/* Called while no gemm runs. Workspaces only grow. */
static starlin_status_t cblas_prepare(starlin__compute_t *base, const starlin__gemm_t *shape)
{
    compute_cblas_t *compute = (compute_cblas_t *)base;
    size_t x_count, w_count, y_count;
    workspace_t *workspaces;

    if (shape->m > INT_MAX || shape->n > INT_MAX || shape->k > INT_MAX || shape->ldx > INT_MAX ||
        shape->ldw > INT_MAX || shape->ldy > INT_MAX)
        return starlin__error(STARLIN_ERR_INVALID,
                              "CBLAS counts in int: m, n, k and leading dimensions at most %d", INT_MAX);
    if (!starlin__dtype_is_half(shape->dtype))
        return STARLIN_SUCCESS;
    x_count = max_size(compute->x_count, (size_t)(min64(shape->m, BLOCK_ROWS) * shape->k));
    w_count = max_size(compute->w_count, (size_t)(min64(shape->n, BLOCK_COLUMNS) * shape->k));
    y_count =
        max_size(compute->y_count, (size_t)(min64(shape->m, BLOCK_ROWS) * min64(shape->n, BLOCK_COLUMNS)));
    if (x_count == compute->x_count && w_count == compute->w_count && y_count == compute->y_count)
        return STARLIN_SUCCESS;
    workspaces = workspaces_create(compute->nworkers, x_count, w_count, y_count);
    if (workspaces == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "workspaces of %u workers: %zu bytes each",
                              compute->nworkers, (x_count + w_count + y_count) * sizeof(float));
    workspaces_free(compute->workspaces, compute->nworkers);
    compute->workspaces = workspaces;
    compute->x_count = x_count;
    compute->w_count = w_count;
    compute->y_count = y_count;
    return STARLIN_SUCCESS;
}

static void widen_rows(const starlin__gemm_t *gemm, const void *matrix, int64_t ld, int64_t first,
                       int64_t rows, float *wide)
{
    const uint16_t *half = matrix;
    for (int64_t i = 0; i < rows; i++)
        starlin__half_to_f32(gemm->dtype, half + (first + i) * ld, wide + i * gemm->k, (size_t)gemm->k);
}

static void gemm_half(const workspace_t *workspace, const starlin__gemm_t *gemm)
{
    bool rounds = gemm->out_dtype != STARLIN_F32;

    for (int64_t i = 0; i < gemm->m; i += BLOCK_ROWS) {
        int64_t rows = min64(BLOCK_ROWS, gemm->m - i);
        widen_rows(gemm, gemm->x, gemm->ldx, i, rows, workspace->x);
        for (int64_t j = 0; j < gemm->n; j += BLOCK_COLUMNS) {
            int64_t columns = min64(BLOCK_COLUMNS, gemm->n - j);
            float *y = rounds ? workspace->y : (float *)gemm->y + i * gemm->ldy + j;
            int64_t ldy = rounds ? columns : gemm->ldy;
            widen_rows(gemm, gemm->w, gemm->ldw, j, columns, workspace->w);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)columns, (int)gemm->k, 1.0f,
                        workspace->x, (int)gemm->k, workspace->w, (int)gemm->k, 0.0f, y, (int)ldy);
            for (int64_t row = 0; rounds && row < rows; row++)
                starlin__f32_to_half(gemm->dtype, y + row * columns,
                                     (uint16_t *)gemm->y + (i + row) * gemm->ldy + j, (size_t)columns);
        }
    }
}

static starlin_status_t cblas_gemm(starlin__compute_t *base, unsigned worker, const starlin__gemm_t *gemm)
{
    compute_cblas_t *compute = (compute_cblas_t *)base;
    int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    int ldx = (int)gemm->ldx, ldw = (int)gemm->ldw, ldy = (int)gemm->ldy;

    if (m == 0 || n == 0)
        return STARLIN_SUCCESS;
    if (k == 0) {
        for (int64_t i = 0; i < gemm->m; i++)
            memset((char *)gemm->y + (size_t)(i * gemm->ldy) * starlin_dtype_nbytes(gemm->out_dtype), 0,
                   (size_t)gemm->n * starlin_dtype_nbytes(gemm->out_dtype));
        return STARLIN_SUCCESS;
    }
    switch (gemm->dtype) {
    case STARLIN_F32:
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, gemm->x, ldx, gemm->w, ldw, 0.0f,
                    gemm->y, ldy);
        return STARLIN_SUCCESS;
    case STARLIN_F64:
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0, gemm->x, ldx, gemm->w, ldw, 0.0,
                    gemm->y, ldy);
        return STARLIN_SUCCESS;
    case STARLIN_F16:
    case STARLIN_BF16:
        gemm_half(&compute->workspaces[worker], gemm);
        return STARLIN_SUCCESS;
    }
    return starlin__error(STARLIN_ERR_INVALID, "gemm of dtype %d", (int)gemm->dtype);
}

static starlin_status_t cblas_cast(starlin__compute_t *compute, unsigned worker, const starlin__cast_t *cast)
{
    (void)compute;
    (void)worker;
    if (cast->src_dtype == cast->dtype)
        memcpy(cast->dst, cast->src, cast->count * starlin_dtype_nbytes(cast->dtype));
    else if (cast->src_dtype == STARLIN_F32 && starlin__dtype_is_half(cast->dtype))
        starlin__f32_to_half(cast->dtype, cast->src, cast->dst, cast->count);
    else
        return starlin__error(STARLIN_ERR_INVALID, "cast from %s to %s", starlin_dtype_name(cast->src_dtype),
                              starlin_dtype_name(cast->dtype));
    return STARLIN_SUCCESS;
}

const starlin__compute_ops_t starlin__compute_cblas_ops = {
    .name = "cblas",
    .usable = cblas_usable,
    .space = STARLIN__HOST,
    .create = cblas_create,
    .destroy = cblas_destroy,
    .prepare = cblas_prepare,
    .gemm = cblas_gemm,
    .cast = cblas_cast,
};
