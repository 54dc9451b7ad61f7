/* SPDX-License-Identifier: BSD-3-Clause */
/* The tune file as a context sees it: what its ranks run on becomes the key. Rank 0's file decides. */
#ifndef STARLIN_TUNED_H
#define STARLIN_TUNED_H

#include "graph/context.h"
#include "plan/tune.h"

/* Curves for this layer that reach up to its rows, or *found_p false. Of the collective's, those with numbers
 * of CTAs that the communicator offers here, its own (0) first. The same on every rank. Collective. */
starlin_status_t starlin__tuned_load(starlin_context_t *context, const starlin__gemm_t *gemm, bool *found_p,
                                     starlin__tune_entry_t *entry_p);

/* Rank 0 writes; its failure is every rank's. Collective. */
starlin_status_t starlin__tuned_store(starlin_context_t *context, const starlin__gemm_t *gemm,
                                      const starlin__tune_entry_t *entry);

#endif
