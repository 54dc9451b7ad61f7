/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for bootstrap_mpi.c in a build without MPI. */
#include "ranks/bootstrap.h"

starlin_status_t starlin__bootstrap_mpi_create(int mpi_comm, unsigned timeout_ms,
                                               starlin__bootstrap_t **bootstrap_p)
{
    (void)mpi_comm;
    (void)timeout_ms;
    (void)bootstrap_p;
    return starlin__error(STARLIN_ERR_UNSUPPORTED, "this build has no MPI (STARLIN_USE_MPI=OFF)");
}
