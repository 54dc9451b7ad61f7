/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of the program: over MPI (ranks_mpi.c), or one alone in a build without it (ranks_self.c). What
 * the tool tells its ranks, and the collectives that the hand-written loops use. */
#ifndef PERF_RANKS_H
#define PERF_RANKS_H

#include "options.h"

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
/* To rank 0, by rank; every rank may send another number of bytes. `nbytes`: of all ranks, on every rank. */
void perf_ranks_collect(const void *mine, const size_t *nbytes, void *all);
void perf_ranks_max(double *values, size_t count); /* element by element, in place */
void perf_ranks_sum(uint64_t *values, size_t count);

/* Starts collective `slot` (below PERF_MAX_SLOTS, one at a time in each); is it complete? */
void perf_ranks_collective(unsigned slot, const perf_collective_t *collective);
bool perf_ranks_test(unsigned slot);

starlin_status_t perf_ranks_context_create(const starlin_context_options_t *options,
                                           starlin_context_t **context_p);

/* Each step that can fail on one rank alone ends with an exchange, so that no rank waits for one that has
 * left. `error`: this rank's failure, or NULL. Prints failures on stderr, those that equal rank 0's only
 * there. Returns how many ranks failed. Collective. */
int perf_agree_count(const perf_ranks_t *ranks, const perf_error_t *error);
/* Were all ranks started with options that fit together? Else every rank gets the same text. Collective. */
bool perf_agree_options(const perf_ranks_t *ranks, const perf_options_t *options, perf_error_t *error);
void perf_agree_print(const perf_ranks_t *ranks, const char *text);

#endif
