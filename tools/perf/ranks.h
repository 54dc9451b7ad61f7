/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of the program: over MPI (ranks_mpi.c), or one alone in a build without it (ranks_self.c). */
#ifndef PERF_RANKS_H
#define PERF_RANKS_H

#include "error.h"
#include "base/base.h"

typedef struct perf_ranks {
    int rank, nranks;
} perf_ranks_t;

/* Was the program started by a launcher such as mpirun, so that others may wait for it? Starts nothing. */
bool perf_ranks_launched(void);

bool perf_ranks_start(perf_ranks_t *ranks, perf_error_t *error);
void perf_ranks_finish(void);         /* collective */
void perf_ranks_abort(int exit_code); /* ends all ranks; does not return */

void perf_ranks_barrier(void);
void perf_ranks_gather(const void *mine, size_t nbytes, void *all); /* to every rank, by rank */
void perf_ranks_max(double *values, size_t count);                  /* element by element, in place */
void perf_ranks_sum(uint64_t *value);

starlin_status_t perf_ranks_context_create(const starlin_context_options_t *options,
                                           starlin_context_t **context_p);

#endif
