/* SPDX-License-Identifier: BSD-3-Clause */
/* Rehearsal: the few lists that the planner likes best are run as the real graph, beside one chunk, and the
 * measured times decide. So a wrong prediction cannot make a layer slower than no overlap. */
#ifndef STARLIN_REHEARSE_H
#define STARLIN_REHEARSE_H

#include "plan/planning.h"
#include "plan/scratch.h"

/* Improves the plan, which the planner made from the input: list, predicted_us and reason; records what was
 * tried, or why nothing was: nothing could be gained, or a run takes too long to be repeated at planning
 * time. `left_us` of the time for planning is left, the same on every rank; at least a share of it is used.
 * Collective; blocks, about 0.1 s. A failure on one rank is every rank's. */
starlin_status_t starlin__rehearse(starlin_context_t *context, const starlin__scratch_t *scratch,
                                   double left_us, starlin__planning_t *planning);

#endif
