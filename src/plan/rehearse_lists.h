/* SPDX-License-Identifier: BSD-3-Clause */
/* The chunk lists that a rehearsal runs. */
#ifndef STARLIN_REHEARSE_LISTS_H
#define STARLIN_REHEARSE_LISTS_H

#include "plan/planner.h"

/* At most `limit` (at least 2) different lists: one chunk first, then those more likely to be the fastest,
 * the planner's `plan` among them; `second` may be another one of his (nchunks 0: none). ctas, rows and
 * predicted_us (as simulated) are filled in. Returns how many. */
size_t starlin__rehearse_lists(const starlin__costs_t *costs, bool on_device, const starlin__plan_t *plan,
                               const starlin__plan_t *second, size_t limit, starlin__plan_t *plans);

#endif
