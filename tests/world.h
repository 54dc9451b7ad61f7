/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts over all ranks of an MPI program, and their common result. Include check.h first. */
#ifndef STARLIN_TESTS_WORLD_H
#define STARLIN_TESTS_WORLD_H

#include <mpi.h>
#include <stdlib.h>

static int world_rank, world_nranks;

static inline void world_begin(int *argc, char ***argv)
{
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_nranks);
}

static inline starlin_context_t *world_context(unsigned timeout_ms)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;

    options.use_mpi = true;
    options.mpi_comm = (int)MPI_Comm_c2f(MPI_COMM_WORLD);
    options.timeout_ms = timeout_ms;
    CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    return context;
}

/* Has a check failed on any rank? Collective. */
static inline bool world_has_failed(void)
{
    int mine = check_failures, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all != 0;
}

/* Every rank leaves with the same exit code, so that mpirun has nothing to kill. */
static inline int world_end(void)
{
    int mine = CHECK_RESULT(), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return all;
}

#endif
