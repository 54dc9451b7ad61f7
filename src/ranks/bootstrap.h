/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks find and inform each other outside of the collectives: an exchange for planning time, and
 * failure notices. Two kinds: `self` (one rank) and `mpi`. */
#ifndef STARLIN_BOOTSTRAP_H
#define STARLIN_BOOTSTRAP_H

#include "base/base.h"

/* A task failed on some rank. */
typedef struct starlin__notice {
    uint64_t sequence; /* of the operator whose task failed */
    int32_t rank;
    int32_t status; /* starlin_status_t */
    uint32_t chunk; /* of the operator */
    char text[236];
} starlin__notice_t;

/* Which of two failures is reported? The earlier operator's, then the lower rank's, then the earlier chunk's:
 * every rank that knows both decides alike. */
bool starlin__notice_precedes(const starlin__notice_t *notice, const starlin__notice_t *other);

typedef struct starlin__bootstrap starlin__bootstrap_t;

typedef struct starlin__bootstrap_ops {
    const char *name;
    /* all[r*nbytes...] = rank r's mine. ERR_TIMEOUT names the ranks' count and the time. Blocks. */
    starlin_status_t (*allgather)(starlin__bootstrap_t *bootstrap, const void *mine, size_t nbytes, void *all,
                                  unsigned timeout_ms);
    /* Tells every other rank and returns when each has stored the notice (its poll has returned it), or on
     * timeout. With timeout_ms 0 it only sends, unless an earlier notice is still on its way, and a later
     * call with the same notice waits. `received` is called for notices that arrive meanwhile. Progress
     * thread only. */
    starlin_status_t (*notify)(starlin__bootstrap_t *bootstrap, const starlin__notice_t *notice,
                               unsigned timeout_ms,
                               void (*received)(void *arg, const starlin__notice_t *notice), void *arg);
    /* Has a notice arrived? If so it is passed to `received`, then acknowledged. Progress thread only. */
    starlin_status_t (*poll)(starlin__bootstrap_t *bootstrap,
                             void (*received)(void *arg, const starlin__notice_t *notice), void *arg);
    void (*destroy)(starlin__bootstrap_t *bootstrap);
} starlin__bootstrap_ops_t;

struct starlin__bootstrap {
    const starlin__bootstrap_ops_t *ops;
    int rank, nranks;
    /* among the ranks of this node, and the first of them; filled in by starlin__bootstrap_locate() */
    int local_rank, local_size, node;
    /* May a peer not come to the exchange that is going on? Then it is waited for a few seconds only. NULL:
     * for the whole time limit. */
    bool (*is_in_vain)(void *arg);
    void *in_vain_arg;
    bool has_mpi; /* mpi_comm is set */
    int mpi_comm; /* Fortran handle of the caller's communicator; `mpi` only */
};

starlin_status_t starlin__bootstrap_self_create(starlin__bootstrap_t **bootstrap_p);

/* Duplicates the communicator. ERR_INVALID: MPI is not initialised, or its thread level is below
 * MPI_THREAD_MULTIPLE (the text says how to ask for it). ERR_TIMEOUT: not every rank came. NULL in a build
 * without MPI. Collective; blocks. */
typedef starlin_status_t starlin__bootstrap_mpi_fn_t(int mpi_comm, unsigned timeout_ms,
                                                     starlin__bootstrap_t **bootstrap_p);
extern starlin__bootstrap_mpi_fn_t *const starlin__bootstrap_mpi_create;

/* Finds local_rank and local_size with one exchange of host names. */
starlin_status_t starlin__bootstrap_locate(starlin__bootstrap_t *bootstrap, unsigned timeout_ms);

#endif
