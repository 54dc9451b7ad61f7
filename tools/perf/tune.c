/* SPDX-License-Identifier: BSD-3-Clause */
/* Curves of one layer, into the tune file. */
#include "tune.h"

#include <inttypes.h>

#include "plan/calibrate.h"
#include "plan/tune.h"

starlin_status_t perf_tune(starlin_context_t *context, const perf_problem_t *problem, FILE *stream)
{
    starlin_linear_shape_t shape = {.m = problem->m,
                                    .n = problem->n,
                                    .k_local = problem->k_local,
                                    .dtype = problem->dtype,
                                    .reduction = problem->reduction};
    starlin__plan_input_t input;
    char path[1024];

    STARLIN__FORWARD(starlin__calibrate_tune(context, &shape, &input));
    if (stream == NULL)
        return STARLIN_SUCCESS;
    starlin__tune_path(path, sizeof(path));
    fprintf(stream,
            "# tuned n %" PRId64 ", k %" PRId64
            ", %s: gemm at %zu row counts up to %.0f (%.1f us), collective at "
            "%zu sizes up to %.2f MB (%.1f us), in %s\n",
            problem->n, problem->k, starlin_dtype_name(problem->dtype), input.gemm.npoints,
            input.gemm.size[input.gemm.npoints - 1], input.gemm.time_us[input.gemm.npoints - 1],
            input.comm.npoints, input.comm.size[input.comm.npoints - 1] / 1e6,
            input.comm.time_us[input.comm.npoints - 1], path);
    fflush(stream);
    return STARLIN_SUCCESS;
}
