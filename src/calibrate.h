/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures what one gemm task and one collective cost, at planning time. */
#ifndef STARLIN_CALIBRATE_H
#define STARLIN_CALIBRATE_H

#include "scratch.h"

/* Fills in the curves and figures of a plan for one layer, the same on every rank. Collective; blocks,
 * about 0.1 s; nothing else may run in the context meanwhile. */
starlin_status_t starlin__calibrate(starlin_context_t *context, const starlin__scratch_t *scratch,
                                    starlin__plan_input_t *input_p);

#endif
