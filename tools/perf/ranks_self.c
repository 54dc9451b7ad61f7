/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank, in a build without MPI. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

bool perf_ranks_launched(void)
{
    return false;
}

bool perf_ranks_start(perf_ranks_t *ranks, perf_error_t *error)
{
    (void)error;
    *ranks = (perf_ranks_t){0, 1};
    return true;
}

void perf_ranks_finish(void)
{
}

void perf_ranks_abort(int exit_code)
{
    exit(exit_code);
}

void perf_ranks_barrier(void)
{
}

void perf_ranks_gather(const void *mine, size_t nbytes, void *all)
{
    memcpy(all, mine, nbytes);
}

void perf_ranks_max(double *values, size_t count)
{
    (void)values;
    (void)count;
}

void perf_ranks_sum(uint64_t *values, size_t count)
{
    (void)values;
    (void)count;
}

void perf_ranks_collect(const void *mine, const size_t *nbytes, void *all)
{
    memcpy(all, mine, nbytes[0]);
}

void perf_ranks_collective(unsigned slot, const perf_collective_t *collective)
{
    (void)slot;
    if (collective->send != collective->receive)
        memcpy(collective->receive, collective->send,
               collective->count * starlin_dtype_nbytes(collective->dtype));
}

bool perf_ranks_test(unsigned slot)
{
    (void)slot;
    return true;
}

starlin_status_t perf_ranks_context_create(const starlin_context_options_t *options,
                                           starlin_context_t **context_p)
{
    return starlin_context_create(options, context_p);
}
