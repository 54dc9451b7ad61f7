/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bootstrap and the communicator over MPI share. */
#ifndef STARLIN_BOOTSTRAP_MPI_H
#define STARLIN_BOOTSTRAP_MPI_H

#include <mpi.h>

#include "base/base.h"

/* Translates an MPI error; MPI_SUCCESS gives STARLIN_SUCCESS. */
starlin_status_t starlin__mpi_status(int ret, const char *call);

/* Duplicates the caller's communicator (a Fortran handle), with errors that return. Collective; whatever can
 * fail on one rank alone comes after it. ERR_TIMEOUT: not every rank came. */
starlin_status_t starlin__mpi_dup(int mpi_comm, unsigned timeout_ms, MPI_Comm *comm_p);

#endif
