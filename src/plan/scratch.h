/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch memory for a layer's operands, to measure on at planning time. */
#ifndef STARLIN_SCRATCH_H
#define STARLIN_SCRATCH_H

#include "graph/context.h"

typedef struct starlin__scratch {
    starlin__gemm_t
        gemm; /* the whole layer on this rank, contiguous operands in the compute backend's memory */
} starlin__scratch_t;

/* On a device filled with numbers, since products of zeros draw less power and run faster. Local. */
starlin_status_t starlin__scratch_create(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                         starlin__scratch_t *scratch_p);
void starlin__scratch_release(starlin_context_t *context, starlin__scratch_t *scratch);

/* Every rank goes on with the slowest rank's figures, or, where `status` says that what they stand for failed
 * on some rank, none does: all return the failure of the lowest such rank. At most STARLIN__MOST_FIGURES.
 * Collective. */
#define STARLIN__MOST_FIGURES 16
starlin_status_t starlin__agree_max(starlin_context_t *context, starlin_status_t status, double *values,
                                    size_t count);

#endif
