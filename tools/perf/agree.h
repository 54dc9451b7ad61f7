/* SPDX-License-Identifier: BSD-3-Clause */
/* Do all ranks go on? Each step that can fail on one rank alone ends with an exchange, so that no rank waits
 * for one that has left. */
#ifndef PERF_AGREE_H
#define PERF_AGREE_H

#include "options.h"
#include "ranks.h"

/* `error`: this rank's failure, or NULL. Prints failures on stderr, those that equal rank 0's only there.
 * Returns how many ranks failed. Collective. */
int perf_agree_count(const perf_ranks_t *ranks, const perf_error_t *error);

/* Were all ranks started with options that fit together? Else every rank gets the same text. Collective. */
bool perf_agree_options(const perf_ranks_t *ranks, const perf_options_t *options, perf_error_t *error);

void perf_agree_print(const perf_ranks_t *ranks, const char *text);

#endif
