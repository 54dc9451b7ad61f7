/* SPDX-License-Identifier: BSD-3-Clause */
/* What one gemm task and one collective cost: from the tune file, or measured at planning time. */
#ifndef STARLIN_CALIBRATE_H
#define STARLIN_CALIBRATE_H

#include "plan/scratch.h"

/* Fills in the curves and figures of a plan for one layer, the same on every rank: the tune file's, or else
 * measured, which takes about 0.1 s. Collective; blocks; nothing else may run
 * in the context meanwhile. */
starlin_status_t starlin__calibrate(starlin_context_t *context, const starlin__scratch_t *scratch,
                                    starlin__costs_t *costs_p);

/* Measures with more points and repetitions, however long it takes, and stores the curves in the tune file.
 * Collective; blocks. Errors: those of starlin__tune_store() too. */
starlin_status_t starlin__calibrate_tune(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                         starlin__plan_input_t *input_p);

#endif
