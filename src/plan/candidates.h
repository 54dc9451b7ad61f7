/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates for the planner: the shapes of chunk lists that are worth a simulation. */
#ifndef STARLIN_CANDIDATES_H
#define STARLIN_CANDIDATES_H

#include "base/base.h"

/* Sizes are counted in row quanta; they sum to nquanta. `quanta` lives for the call only. */
typedef void (*starlin__candidate_fn_t)(void *arg, const int64_t *quanta, size_t nchunks);

/* Calls `visit` for every candidate of nquanta >= 1 quanta, always in the same order; the first is one
 * chunk. `ratio` is the time of all collectives over that of all gemms: the ratio of a geometric list whose
 * every collective just fits beside the next gemm. Candidates may repeat. */
void starlin__candidates_visit(int64_t nquanta, double ratio, starlin__candidate_fn_t visit, void *arg);

#endif
