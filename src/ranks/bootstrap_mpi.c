/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap over MPI: exchanges with a time limit and failure notices, on a duplicated communicator.
 *
 * A notice is acknowledged only after the receiver has stored it. A rank whose task failed waits for all
 * acknowledgements before it takes part in that task's collective; so nobody completes the collective
 * without knowing of the failure, and steady state needs no exchange at all. */
#define _POSIX_C_SOURCE 200809L
#include "ranks/bootstrap_mpi.h"
#include "ranks/bootstrap.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { TAG_NOTICE = 1, TAG_ACK = 2 };

typedef struct bootstrap_mpi {
    starlin__bootstrap_t base;
    MPI_Comm comm;
    MPI_Request receive; /* the standing receive for notices */
    starlin__notice_t incoming, outgoing;
    bool unheard;       /* `outgoing` is on its way: not every peer has acknowledged it */
    MPI_Request *sends; /* one per peer, for notify */
    MPI_Request *acks;
    atomic_bool
        abandoned; /* by either thread: an exchange timed out: requests are in flight, nothing may be freed */
    char *abandoned_buffer;
    struct bootstrap_mpi *next; /* in the list of those that outlive their context */
} bootstrap_mpi_t;

/* MPI may still write to their memory until it is finalized. Under the context's claim of the process. */
static bootstrap_mpi_t *abandoned_bootstraps;

starlin_status_t starlin__mpi_status(int ret, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (ret == MPI_SUCCESS)
        return STARLIN_SUCCESS;
    MPI_Error_string(ret, text, &length);
    return starlin__error(STARLIN_ERR_COMM, "%s: %s", call, text);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* MPI may still write the new handle after a time-out: then its place is kept. */
typedef struct pending_dup {
    MPI_Comm comm;
    MPI_Request request;
    struct pending_dup *next;
} pending_dup_t;

static pending_dup_t *abandoned_dups;

starlin_status_t starlin__mpi_dup(int mpi_comm, unsigned timeout_ms, MPI_Comm *comm_p)
{
    double deadline_us = starlin__now_us() + 1e3 * timeout_ms;
    pending_dup_t *dup = starlin__alloc(sizeof *dup);
    starlin_status_t status;
    int done = 0;

    if (dup == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "communicator");
    status = starlin__mpi_status(MPI_Comm_idup(MPI_Comm_f2c(mpi_comm), &dup->comm, &dup->request),
                                 "MPI_Comm_idup");
    while (status == STARLIN_SUCCESS && !done) {
        status = starlin__mpi_status(MPI_Test(&dup->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done || status != STARLIN_SUCCESS)
            break;
        if (starlin__now_us() > deadline_us) {
            dup->next = abandoned_dups;
            abandoned_dups = dup;
            return starlin__error(STARLIN_ERR_TIMEOUT,
                                  "waited %u ms for every rank to open its context "
                                  "(STARLIN_TIMEOUT_MS sets the limit)",
                                  timeout_ms);
        }
        nap();
    }
    if (status == STARLIN_SUCCESS) {
        MPI_Comm_set_errhandler(dup->comm, MPI_ERRORS_RETURN);
        *comm_p = dup->comm;
    }
    starlin__free(dup);
    return status;
}

/* Peers that have not failed themselves are as far behind as they may be without a failure. */
static const double vain_wait_us = 3e6;

/* The buffers are the bootstrap's: after a time-out MPI may still write to them, so they are left alone. */
static starlin_status_t mpi_allgather(starlin__bootstrap_t *base, const void *mine, size_t nbytes, void *all,
                                      unsigned timeout_ms)
{
    bootstrap_mpi_t *bootstrap = (bootstrap_mpi_t *)base;
    double deadline_us = starlin__now_us() + 1e3 * timeout_ms;
    size_t total = nbytes * (size_t)base->nranks;
    starlin_status_t status;
    MPI_Request request;
    char *buffer;
    bool is_in_vain = false;
    int done = 0;

    if (bootstrap->abandoned)
        return starlin__error(STARLIN_ERR_COMM, "an earlier exchange between the ranks timed out");
    if (nbytes > INT_MAX)
        return starlin__error(STARLIN_ERR_INVALID, "an exchange of %zu bytes is too large", nbytes);
    buffer = starlin__alloc(total + nbytes);
    if (buffer == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "an exchange of %zu bytes", total);
    memcpy(buffer + total, mine, nbytes);
    status = starlin__mpi_status(MPI_Iallgather(buffer + total, (int)nbytes, MPI_BYTE, buffer, (int)nbytes,
                                                MPI_BYTE, bootstrap->comm, &request),
                                 "MPI_Iallgather");
    while (status == STARLIN_SUCCESS && !done) {
        status = starlin__mpi_status(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done || status != STARLIN_SUCCESS)
            break;
        if (!is_in_vain && base->is_in_vain != NULL && base->is_in_vain(base->in_vain_arg)) {
            double grace_us = starlin__now_us() + vain_wait_us;
            is_in_vain = true;
            deadline_us = grace_us < deadline_us ? grace_us : deadline_us;
        }
        if (starlin__now_us() > deadline_us) {
            bootstrap->abandoned = true;
            bootstrap->abandoned_buffer = buffer;
            return starlin__error(
                STARLIN_ERR_TIMEOUT,
                "rank %d waited %u ms for an exchange among %d ranks: does every rank make the same "
                "calls? (STARLIN_TIMEOUT_MS sets the limit)",
                base->rank, timeout_ms, base->nranks);
        }
        nap();
    }
    if (done)
        memcpy(all, buffer, total);
    starlin__free(buffer);
    return status;
}

static starlin_status_t post_receive(bootstrap_mpi_t *bootstrap)
{
    return starlin__mpi_status(MPI_Irecv(&bootstrap->incoming, (int)sizeof bootstrap->incoming, MPI_BYTE,
                                         MPI_ANY_SOURCE, TAG_NOTICE, bootstrap->comm, &bootstrap->receive),
                               "MPI_Irecv");
}

static starlin_status_t mpi_poll(starlin__bootstrap_t *base,
                                 void (*received)(void *arg, const starlin__notice_t *notice), void *arg)
{
    bootstrap_mpi_t *bootstrap = (bootstrap_mpi_t *)base;
    MPI_Status from;
    int done = 0;

    for (;;) {
        STARLIN__FORWARD(starlin__mpi_status(MPI_Test(&bootstrap->receive, &done, &from), "MPI_Test"));
        if (!done)
            return STARLIN_SUCCESS;
        received(arg, &bootstrap->incoming);
        STARLIN__FORWARD(starlin__mpi_status(
            MPI_Send(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG_ACK, bootstrap->comm), "MPI_Send"));
        STARLIN__FORWARD(post_receive(bootstrap));
    }
}

static starlin_status_t send_notice(bootstrap_mpi_t *bootstrap, const starlin__notice_t *notice)
{
    int npeers = 0;

    bootstrap->outgoing = *notice;
    bootstrap->unheard = true;
    for (int peer = 0; peer < bootstrap->base.nranks; peer++) {
        if (peer == bootstrap->base.rank)
            continue;
        STARLIN__FORWARD(starlin__mpi_status(
            MPI_Irecv(NULL, 0, MPI_BYTE, peer, TAG_ACK, bootstrap->comm, &bootstrap->acks[npeers]),
            "MPI_Irecv"));
        STARLIN__FORWARD(
            starlin__mpi_status(MPI_Isend(&bootstrap->outgoing, (int)sizeof bootstrap->outgoing, MPI_BYTE,
                                          peer, TAG_NOTICE, bootstrap->comm, &bootstrap->sends[npeers]),
                                "MPI_Isend"));
        npeers++;
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t is_heard(bootstrap_mpi_t *bootstrap, bool *heard_p)
{
    int npeers = bootstrap->base.nranks - 1, done = 0;

    STARLIN__FORWARD(
        starlin__mpi_status(MPI_Testall(npeers, bootstrap->acks, &done, MPI_STATUSES_IGNORE), "MPI_Testall"));
    if (done) {
        STARLIN__FORWARD(
            starlin__mpi_status(MPI_Waitall(npeers, bootstrap->sends, MPI_STATUSES_IGNORE), "MPI_Waitall"));
        bootstrap->unheard = false;
    }
    *heard_p = done != 0;
    return STARLIN_SUCCESS;
}

static starlin_status_t mpi_notify(starlin__bootstrap_t *base, const starlin__notice_t *notice,
                                   unsigned timeout_ms,
                                   void (*received)(void *arg, const starlin__notice_t *notice), void *arg)
{
    bootstrap_mpi_t *bootstrap = (bootstrap_mpi_t *)base;
    double deadline_us = starlin__now_us() + 1e3 * timeout_ms;
    bool is_sent = bootstrap->unheard && memcmp(&bootstrap->outgoing, notice, sizeof *notice) == 0;

    for (;;) {
        bool heard = !bootstrap->unheard;
        if (!heard)
            STARLIN__FORWARD(is_heard(bootstrap, &heard));
        if (heard && is_sent)
            return STARLIN_SUCCESS;
        if (heard) { /* there may be an earlier notice, one is on its way at a time */
            STARLIN__FORWARD(send_notice(bootstrap, notice));
            is_sent = true;
        }
        /* two ranks may fail at the same time: answer while waiting */
        STARLIN__FORWARD(mpi_poll(base, received, arg));
        if (timeout_ms == 0)
            return STARLIN_SUCCESS;
        if (starlin__now_us() > deadline_us) {
            bootstrap->abandoned = true;
            return starlin__error(STARLIN_ERR_TIMEOUT,
                                  "rank %d: not every peer took notice of a failure within %u ms", base->rank,
                                  timeout_ms);
        }
        if (!heard)
            nap();
    }
}

static void mpi_destroy(starlin__bootstrap_t *base)
{
    bootstrap_mpi_t *bootstrap = (bootstrap_mpi_t *)base;
    bool heard = true;
    int finalized = 0;

    MPI_Finalized(&finalized);
    if (bootstrap->unheard && !finalized && is_heard(bootstrap, &heard) == STARLIN_SUCCESS && !heard)
        bootstrap->abandoned = true;
    /* requests in flight still point into this memory */
    if (bootstrap->abandoned) {
        bootstrap->next = abandoned_bootstraps;
        abandoned_bootstraps = bootstrap;
        return;
    }
    if (!finalized) {
        MPI_Cancel(&bootstrap->receive);
        MPI_Wait(&bootstrap->receive, MPI_STATUS_IGNORE);
        MPI_Comm_free(&bootstrap->comm);
    }
    starlin__free(bootstrap->sends);
    starlin__free(bootstrap->acks);
    starlin__free(bootstrap);
}

static const starlin__bootstrap_ops_t bootstrap_mpi_ops = {
    .name = "mpi",
    .allgather = mpi_allgather,
    .notify = mpi_notify,
    .poll = mpi_poll,
    .destroy = mpi_destroy,
};

static starlin_status_t check_mpi(void)
{
    int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE;

    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return starlin__error(STARLIN_ERR_INVALID,
                              "MPI is %s: call MPI_Init_thread before starlin_mpi_context_create",
                              finalized ? "finalized" : "not initialized");
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE)
        return starlin__error(
            STARLIN_ERR_INVALID,
            "MPI's thread level is %d, starlin's progress thread needs MPI_THREAD_MULTIPLE (%d): call "
            "MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) instead of MPI_Init",
            provided, MPI_THREAD_MULTIPLE);
    return STARLIN_SUCCESS;
}

static starlin_status_t mpi_create(int mpi_comm, unsigned timeout_ms, starlin__bootstrap_t **bootstrap_p)
{
    bootstrap_mpi_t *bootstrap;
    MPI_Comm comm = MPI_COMM_NULL;
    starlin_status_t status;

    STARLIN__FORWARD(check_mpi());
    STARLIN__FORWARD(starlin__mpi_dup(mpi_comm, timeout_ms, &comm));
    bootstrap = starlin__alloc(sizeof *bootstrap);
    if (bootstrap == NULL) {
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "bootstrap");
        goto free_comm;
    }
    bootstrap->base.ops = &bootstrap_mpi_ops;
    bootstrap->base.has_mpi = true;
    bootstrap->base.mpi_comm = mpi_comm;
    bootstrap->comm = comm;
    MPI_Comm_rank(comm, &bootstrap->base.rank);
    MPI_Comm_size(comm, &bootstrap->base.nranks);
    bootstrap->sends = starlin__alloc((size_t)bootstrap->base.nranks * sizeof *bootstrap->sends);
    bootstrap->acks = starlin__alloc((size_t)bootstrap->base.nranks * sizeof *bootstrap->acks);
    if (bootstrap->sends == NULL || bootstrap->acks == NULL) {
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "bootstrap of %d ranks", bootstrap->base.nranks);
        goto free_bootstrap;
    }
    status = post_receive(bootstrap);
    if (status != STARLIN_SUCCESS)
        goto free_bootstrap;
    *bootstrap_p = &bootstrap->base;
    return STARLIN_SUCCESS;

free_bootstrap:
    starlin__free(bootstrap->sends);
    starlin__free(bootstrap->acks);
    starlin__free(bootstrap);
free_comm:
    MPI_Comm_free(&comm);
    return status;
}

starlin__bootstrap_mpi_fn_t *const starlin__bootstrap_mpi_create = mpi_create;
