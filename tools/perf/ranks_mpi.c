/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of MPI_COMM_WORLD. MPI's default error handler ends all ranks, so returns need no check. */
#include "ranks.h"

#include <stdlib.h>

#include "starlin/starlin_mpi.h"

bool perf_ranks_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                        "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]) != NULL)
            return true;
    return false;
}

bool perf_ranks_start(perf_ranks_t *ranks, perf_error_t *error)
{
    int provided;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return perf_error_set(error, "MPI does not start");
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->nranks);
    return true;
}

void perf_ranks_finish(void)
{
    MPI_Finalize();
}

void perf_ranks_abort(int exit_code)
{
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

void perf_ranks_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void perf_ranks_gather(const void *mine, size_t nbytes, void *all)
{
    MPI_Allgather(mine, (int)nbytes, MPI_BYTE, all, (int)nbytes, MPI_BYTE, MPI_COMM_WORLD);
}

void perf_ranks_max(double *values, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

void perf_ranks_sum(uint64_t *value)
{
    MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

starlin_status_t perf_ranks_context_create(const starlin_context_options_t *options,
                                           starlin_context_t **context_p)
{
    return starlin_mpi_context_create(MPI_COMM_WORLD, options, context_p);
}
