/* SPDX-License-Identifier: BSD-3-Clause */
/* After the first steps a step allocates nothing of ours, waits or not. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "base/base.h"
#include "linear.h"
#include "world.h"

enum { NWARMUPS = 3, NSTEPS = 100, NLAYERS = 3 };

static void run(starlin_context_t *context, starlin_dtype_t dtype, starlin_reduction_t reduction)
{
    linear_t layers[NLAYERS];
    uint64_t before = 0;

    for (int i = 0; i < NLAYERS; i++) {
        layers[i] = (linear_t){.context = context,
                               .m = 32,
                               .n = 6 + i,
                               .k = 9,
                               .dtype = dtype,
                               .reduction = reduction,
                               .count = 8};
        CHECK_STATUS(linear_open(&layers[i]), STARLIN_SUCCESS);
    }
    for (int step = 0; step < NWARMUPS + NSTEPS; step++) {
        if (step == NWARMUPS)
            before = starlin__alloc_count;
        for (int i = 0; i < NLAYERS; i++)
            CHECK_STATUS(linear_submit(&layers[i]), STARLIN_SUCCESS);
        CHECK_STATUS(step % 2 ? starlin_context_wait(context) : starlin_matrix_wait(layers[2].y),
                     STARLIN_SUCCESS);
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK(before > 0);
    CHECK_EQ_INT(starlin__alloc_count - before, 0);
    for (int i = 0; i < NLAYERS; i++) {
        CHECK_EQ_INT(linear_wrong(&layers[i]), 0);
        linear_close(&layers[i]);
    }
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    context = world_context(60000);
    if (context != NULL) {
        run(context, STARLIN_F32, STARLIN_REDUCTION_NATIVE);
        run(context, STARLIN_BF16, STARLIN_REDUCTION_F32);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    return world_end();
}
