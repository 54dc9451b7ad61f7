/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens NCCL's communicators, one for each number of CTAs that is asked for, since a communicator has but
 * one. Invariants: every rank takes part in every exchange, so that all of them see the failure of one and
 * open the same. Each has an id of its own rather than being split off another: a split that fails or takes
 * too long would take the communicator it comes from with it, and non-blocking splits used from several
 * threads crash in some versions of NCCL (its issue 1605). */
#include "comm/nccl/comm_nccl.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned choices[STARLIN__NCCL_CHOICES] = {4, 8, 16, 32};

/* What the ranks tell each other before a communicator is opened and afterwards. */
typedef struct message {
    int32_t status;
    uint32_t ctas;
    uint32_t below;  /* see comm_nccl.h; every rank goes on with the lowest */
    ncclUniqueId id; /* rank 0's counts */
    char text[160];  /* why the status is no success */
} message_t;

int starlin__comm_nccl_index(unsigned ctas)
{
    if (ctas == 0)
        return 0;
    for (int i = 0; i < STARLIN__NCCL_CHOICES; i++) {
        if (choices[i] == ctas)
            return 1 + i;
    }
    return -1;
}

/* The limit itself is the communicator's own number. NCCL's variable, which may come from its configuration
 * file, overrides what a communicator asks for: then there is no choice. */
static unsigned choices_below(const starlin__comm_nccl_t *comm)
{
    const char *fixed = getenv("NCCL_MAX_CTAS");
    if (fixed != NULL && fixed[0] != '\0')
        return 0;
    return comm->max_ctas != 0 ? comm->max_ctas : UINT_MAX;
}

/* The same on every rank. Where one has failed, its peers wait for it in vain: the failure that is no
 * time-out is the cause. */
static starlin_status_t judge(const message_t *all, int nranks)
{
    int cause = -1;
    for (int i = 0; i < nranks; i++) {
        if (all[i].status != STARLIN_SUCCESS &&
            (cause < 0 || (all[cause].status == STARLIN_ERR_TIMEOUT && all[i].status != STARLIN_ERR_TIMEOUT)))
            cause = i;
    }
    if (cause >= 0)
        return starlin__error((starlin_status_t)all[cause].status, "rank %d: %s", cause, all[cause].text);
    for (int i = 1; i < nranks; i++) {
        if (all[i].ctas != all[0].ctas)
            return starlin__error(STARLIN_ERR_MISMATCH,
                                  "ranks disagree: CTAs to prepare are %u on rank 0 and %u on rank %d",
                                  (unsigned)all[0].ctas, (unsigned)all[i].ctas, i);
    }
    return STARLIN_SUCCESS;
}

/* Has every rank come this far, and for the same? *message is mine, and all ranks' in what they share. */
static starlin_status_t exchange(starlin__comm_nccl_t *comm, starlin_status_t mine, unsigned timeout_ms,
                                 message_t *message)
{
    starlin__bootstrap_t *bootstrap = comm->bootstrap;
    message_t *all = starlin__alloc((size_t)bootstrap->nranks * sizeof(*all));
    /* a rank without this memory cannot take part: its peers run into the time limit */
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for an exchange");
    message->status = mine;
    if (mine != STARLIN_SUCCESS)
        snprintf(message->text, sizeof(message->text), "%s", starlin_last_error());
    starlin_status_t status =
        bootstrap->ops->allgather(bootstrap, message, sizeof(*message), all, timeout_ms);
    if (status == STARLIN_SUCCESS)
        status = judge(all, bootstrap->nranks);
    else if (mine != STARLIN_SUCCESS)
        status = starlin__error(mine, "%s", message->text);
    for (int i = 0; i < bootstrap->nranks && status == STARLIN_SUCCESS; i++)
        message->below = all[i].below < message->below ? all[i].below : message->below;
    message->id = all[0].id;
    starlin__free(all);
    return status;
}

static starlin_status_t open_one(starlin__comm_nccl_t *comm, int index, unsigned ctas, ncclUniqueId id)
{
    starlin__bootstrap_t *bootstrap = comm->bootstrap;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t *nccl = &comm->comms[index]; /* NCCL may write it once more when it is done */
    char doing[64];
    starlin_status_t status;
    config.blocking = 0;
    if (ctas != 0)
        config.maxCTAs = (int)ctas;
    snprintf(doing, sizeof(doing),
             ctas != 0 ? "opening the communicator of %u CTAs" : "opening the communicator", ctas);
    STARLIN__FORWARD(starlin__device_cuda_enter(comm->base.device));
    pthread_mutex_lock(&comm->lock);
    ncclResult_t ret = ncclCommInitRankConfig(nccl, bootstrap->nranks, id, bootstrap->rank, &config);
    if (*nccl != NULL)
        status = starlin__comm_nccl_settle(comm, *nccl, ret, doing);
    else
        status = starlin__comm_nccl_status(ret == ncclSuccess ? ncclInternalError : ret, NULL, doing);
    pthread_mutex_unlock(&comm->lock);
    starlin__device_cuda_leave(comm->base.device);
    return status;
}

/* A peer may be missing: an orderly close would wait for it. */
static void give_up(starlin__comm_nccl_t *comm, int index)
{
    if (starlin__device_cuda_enter(comm->base.device) != STARLIN_SUCCESS)
        return;
    pthread_mutex_lock(&comm->lock);
    if (comm->comms[index] != NULL) {
        (void)ncclCommAbort(comm->comms[index]);
        (void)cudaGetLastError();
        comm->comms[index] = NULL;
    }
    pthread_mutex_unlock(&comm->lock);
    starlin__device_cuda_leave(comm->base.device);
}

starlin_status_t starlin__comm_nccl_open(starlin__comm_nccl_t *comm, unsigned ctas, starlin_status_t mine)
{
    int index = starlin__comm_nccl_index(ctas);
    bool is_open = index >= 0 && comm->opened[index];
    message_t message;
    memset(&message, 0, sizeof(message));
    message.ctas = ctas;
    if (mine == STARLIN_SUCCESS && !is_open && comm->bootstrap->rank == 0)
        mine = starlin__comm_nccl_status(ncclGetUniqueId(&message.id), NULL, "drawing a communicator's id");
    STARLIN__FORWARD(exchange(comm, mine, comm->timeout_ms, &message));
    if (is_open)
        return STARLIN_SUCCESS;
    starlin_status_t status = open_one(comm, index, index == 0 ? comm->max_ctas : ctas, message.id);
    /* by now NCCL has read its configuration; who has failed at once waits for those who wait for it */
    message.below = index == 0 ? choices_below(comm) : comm->below;
    status = exchange(comm, status, 2 * comm->timeout_ms, &message);
    if (status != STARLIN_SUCCESS) {
        give_up(comm, index);
        return status;
    }
    comm->below = message.below;
    comm->opened[index] = true;
    return STARLIN_SUCCESS;
}

size_t starlin__comm_nccl_ctas_choices(const starlin__comm_t *base, unsigned *ctas, size_t most)
{
    const starlin__comm_nccl_t *comm = (const starlin__comm_nccl_t *)base;
    size_t count = 0;
    for (size_t i = 0; i < STARLIN__NCCL_CHOICES && count < most; i++) {
        if (choices[i] < comm->below)
            ctas[count++] = choices[i];
    }
    return count;
}

starlin_status_t starlin__comm_nccl_ctas_prepare(starlin__comm_t *base, unsigned ctas)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    starlin_status_t status = STARLIN_SUCCESS;
    pthread_mutex_lock(&comm->lock);
    if (comm->aborted)
        status = starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    else if (ctas != 0 && (starlin__comm_nccl_index(ctas) < 0 || ctas >= comm->below))
        status = starlin__error(STARLIN_ERR_INVALID, "communicator nccl: %u CTAs are not one of its choices",
                                ctas);
    pthread_mutex_unlock(&comm->lock);
    return starlin__comm_nccl_open(comm, ctas, status);
}
