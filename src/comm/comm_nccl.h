/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the NCCL communicator share. */
#ifndef STARLIN_COMM_NCCL_H
#define STARLIN_COMM_NCCL_H

#include "../device_cuda.h"

#include <nccl.h>
#include <pthread.h>

#include "comm.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL 2.18 or later is needed"
#endif

typedef struct starlin__comm_nccl {
    starlin__comm_t base;
    ncclComm_t comm; /* NULL after an abort */
    int version;     /* of the library that is loaded */
    unsigned timeout_ms;
    pthread_mutex_t lock; /* around NCCL's calls on comm */
} starlin__comm_nccl_t;

/* Translates an NCCL error; `doing` completes "while ...". `comm` may be NULL. */
starlin_status_t starlin__comm_nccl_status(ncclResult_t ret, ncclComm_t comm, const char *doing);

/* Waits until the communicator has taken in the call that returned `ret`, for timeout_ms at most. With the
 * lock held. */
starlin_status_t starlin__comm_nccl_settle(starlin__comm_nccl_t *comm, ncclResult_t ret, const char *doing);

/* Finds out who is where, whether NCCL can work there, and makes several ranks on one GPU possible or an
 * error. Before NCCL's first call. Collective: the same verdict on every rank. */
starlin_status_t starlin__comm_nccl_meet(const starlin__comm_setup_t *setup);

/* Memory that NCCL's symmetric kernels can use, and its registration; without them where the version has
 * none. See comm.h. */
starlin_status_t starlin__comm_nccl_buffer_alloc(starlin__comm_t *base, size_t nbytes, void **buffer_p);
void starlin__comm_nccl_buffer_free(starlin__comm_t *base, void *buffer);
starlin_status_t starlin__comm_nccl_buffer_register(starlin__comm_t *base, void *buffer, size_t nbytes,
                                                    void **registration_p);
void starlin__comm_nccl_buffer_deregister(starlin__comm_t *base, void *registration);

#endif
