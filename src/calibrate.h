/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures what one gemm task and one collective cost, at planning time. */
#ifndef STARLIN_CALIBRATE_H
#define STARLIN_CALIBRATE_H

#include "context.h"

/* Fills in the curves and figures of a plan for one layer, the same on every rank. Collective; blocks,
 * about 0.2 s at most; nothing else may run in the context meanwhile. */
starlin_status_t starlin__calibrate(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                    starlin__plan_input_t *input_p);

#endif
