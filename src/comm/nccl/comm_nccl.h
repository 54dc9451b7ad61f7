/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the NCCL communicator share. */
#ifndef STARLIN_COMM_NCCL_H
#define STARLIN_COMM_NCCL_H

#include "machine/device_cuda.h"

#include <nccl.h>
#include <pthread.h>

#include "comm/comm.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL 2.18 or later is needed"
#endif

enum { STARLIN__NCCL_CHOICES = 4, STARLIN__NCCL_COMMS = 1 + STARLIN__NCCL_CHOICES };

typedef struct starlin__comm_nccl {
    starlin__comm_t base;
    starlin__bootstrap_t *bootstrap; /* outlives the communicator */
    /* The first with its own number of CTAs, the others with one choice each, over the same ranks; NULL: not
     * open, or aborted. All collectives go to one stream in submission order, so they may be mixed. */
    ncclComm_t comms[STARLIN__NCCL_COMMS];
    bool opened[STARLIN__NCCL_COMMS]; /* by every rank, whatever came afterwards */
    bool aborted;
    unsigned max_ctas; /* of the first; 0: NCCL's own number */
    unsigned below;    /* every choice is below this; the same on every rank */
    int version;       /* of the library that is loaded */
    unsigned timeout_ms;
    pthread_mutex_t lock; /* around NCCL's calls, comms and aborted */
} starlin__comm_nccl_t;

/* Translates an NCCL error; `doing` completes "while ...". `nccl` may be NULL. */
starlin_status_t starlin__comm_nccl_status(ncclResult_t ret, ncclComm_t nccl, const char *doing);

/* Waits until `nccl`, one of comm's, has taken in the call that returned `ret`, for timeout_ms at most. With
 * the lock held. */
starlin_status_t starlin__comm_nccl_settle(starlin__comm_nccl_t *comm, ncclComm_t nccl, ncclResult_t ret,
                                           const char *doing);

/* Where collectives of so many CTAs run: an index into comms, or -1: no such choice. */
int starlin__comm_nccl_index(unsigned ctas);

/* Opens the communicator for this number of CTAs unless it is open. `mine`: what failed on this rank before.
 * A failure on one rank is every rank's and leaves the others of comm as they are. Collective; blocks. */
starlin_status_t starlin__comm_nccl_open(starlin__comm_nccl_t *comm, unsigned ctas, starlin_status_t mine);

/* See comm.h. */
size_t starlin__comm_nccl_ctas_choices(const starlin__comm_t *base, unsigned *ctas, size_t most);
starlin_status_t starlin__comm_nccl_ctas_prepare(starlin__comm_t *base, unsigned ctas);

/* Finds out who is where, whether NCCL can work there, and makes several ranks on one GPU possible or an
 * error. Before NCCL's first call. Collective: the same verdict on every rank. */
starlin_status_t starlin__comm_nccl_meet(const starlin__comm_setup_t *setup);

/* Memory that NCCL's symmetric kernels can use, and its registration with every communicator that is open by
 * then (one that is opened later sums such a buffer as an ordinary one); without them where the version has
 * none. See comm.h. */
starlin_status_t starlin__comm_nccl_buffer_alloc(starlin__comm_t *base, size_t nbytes, void **buffer_p);
void starlin__comm_nccl_buffer_free(starlin__comm_t *base, void *buffer);
starlin_status_t starlin__comm_nccl_buffer_register(starlin__comm_t *base, void *buffer, size_t nbytes,
                                                    void **registration_p);
void starlin__comm_nccl_buffer_deregister(starlin__comm_t *base, void *registration);

#endif
