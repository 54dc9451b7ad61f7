/* SPDX-License-Identifier: BSD-3-Clause */
/* Rehearsal: the few lists that the planner likes best are run as the real graph, beside one chunk, and the
 * measured times decide. So a wrong prediction cannot make a layer slower than no overlap. */
#ifndef STARLIN_REHEARSE_H
#define STARLIN_REHEARSE_H

#include "scratch.h"

/* Improves plan_p, which the planner made from `input`: list, predicted_us and reason. Does nothing where
 * nothing could be gained, or where a run takes too long to be repeated at planning time. Collective; blocks,
 * about 0.1 s. */
starlin_status_t starlin__rehearse(starlin_context_t *context, const starlin__scratch_t *scratch,
                                   const starlin__plan_input_t *input, starlin__plan_t *plan_p);

#endif
