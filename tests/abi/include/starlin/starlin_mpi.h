/* SPDX-License-Identifier: BSD-3-Clause */
/* A context from an MPI communicator. Header-only, so that only programs that use MPI need mpi.h. */
#ifndef STARLIN_STARLIN_MPI_H
#define STARLIN_STARLIN_MPI_H

#include <mpi.h>
#include <string.h>

#include "starlin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* starlin_context_create() over the ranks of `comm`, one context per rank.
 *   comm       duplicated, never freed; must outlive this call only
 *   options    NULL: all defaults; its use_mpi and mpi_comm are ignored, nothing is written to it
 *   context_p  the new context; the caller destroys it, before MPI_Finalize
 * MPI must have been initialised with MPI_THREAD_MULTIPLE (else ERR_INVALID). Collective over `comm`;
 * blocks. Errors: those of starlin_context_create(). */
static inline starlin_status_t starlin_mpi_context_create(MPI_Comm comm,
                                                          const starlin_context_options_t *options,
                                                          starlin_context_t **context_p)
{
    starlin_context_options_t with_comm = STARLIN_CONTEXT_OPTIONS_INIT;
    if (options != NULL) {
        size_t size = options->struct_size != 0 ? options->struct_size : sizeof(with_comm);
        if (size < sizeof(size_t)) /* refused there, with the right text */
            return starlin_context_create(options, context_p);
        if (size > sizeof(with_comm)) /* no struct of this header's */
            return STARLIN_ERR_UNSUPPORTED;
        memcpy(&with_comm, options, size);
        with_comm.struct_size = sizeof(with_comm);
    }
    with_comm.use_mpi = true;
    with_comm.mpi_comm = (int)MPI_Comm_c2f(comm);
    return starlin_context_create(&with_comm, context_p);
}

#ifdef __cplusplus
}
#endif

#endif
