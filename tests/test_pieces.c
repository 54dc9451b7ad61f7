/* SPDX-License-Identifier: BSD-3-Clause */
/* Gemms finer than the collectives: a chunk's product is computed in pieces, exactly, and in as many as it
 * takes. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"
#include "graph/context.h"
#include "linear.h"
#include "graph/matrix.h"
#include "world.h"

enum { M = 23, N = 11, K = 9 };

/* Stands in for the backend's table and counts. */
static const starlin__compute_ops_t *backend;
static atomic_uint ngemms;
static atomic_llong nrows;

static starlin_status_t count_gemm(starlin__compute_t *compute, unsigned worker, const starlin__gemm_t *gemm)
{
    atomic_fetch_add(&ngemms, 1);
    atomic_fetch_add(&nrows, gemm->m);
    return backend->gemm(compute, worker, gemm);
}

static unsigned expected_gemms(const int64_t *list, size_t nlist, int64_t piece_rows)
{
    unsigned count = 0;

    for (size_t i = 0; i < nlist; i++)
        count += piece_rows > 0 ? (unsigned)((list[i] + piece_rows - 1) / piece_rows) : 1;
    return count;
}

static void run(starlin_context_t *context, starlin_dtype_t dtype, starlin_reduction_t reduction,
                int64_t piece_rows)
{
    static const int64_t list[] = {9, 1, 8, 5};
    linear_t linear = {.context = context,
                       .m = M,
                       .n = N,
                       .k = K,
                       .dtype = dtype,
                       .reduction = reduction,
                       .list = list,
                       .nlist = 4};

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    if (linear.y == NULL)
        return;
    linear.y->piece_rows = piece_rows; /* as the list of a plan says */
    atomic_store(&ngemms, 0);
    atomic_store(&nrows, 0);
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_wait(linear.y), STARLIN_SUCCESS);
    CHECK_EQ_INT(atomic_load(&ngemms), 2 * expected_gemms(list, 4, piece_rows));
    CHECK_EQ_INT(atomic_load(&nrows), 2 * M);
    CHECK_EQ_INT(linear_wrong(&linear), 0);
    linear_close(&linear);
}

int main(int argc, char **argv)
{
    static const int64_t pieces[] = {0, 1, 2, 3, 8, 9, 100};
    starlin__compute_ops_t counting;
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(60000);
    if (context != NULL) {
        backend = context->compute->ops;
        counting = *backend;
        counting.gemm = count_gemm;
        context->compute->ops = &counting;
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
            for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
                run(context, (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, pieces[i]);
            run(context, STARLIN_BF16, STARLIN_REDUCTION_F32, pieces[i]);
        }
        context->compute->ops = backend;
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    return world_end();
}
