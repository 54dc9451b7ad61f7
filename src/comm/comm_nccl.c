/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by NCCL on the device's communication stream. Invariants: every rank takes part in every exchange of
 * create(), so that all of them see the failure of one; the communicator is non-blocking, so nothing here
 * waits longer than the configured time; its calls are serialized by the lock. */
#include "comm_nccl.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* The second exchange; only rank 0's counts. */
typedef struct ticket {
    int32_t status;
    ncclUniqueId id;
} ticket_t;

starlin_status_t starlin__comm_nccl_status(ncclResult_t ret, ncclComm_t comm, const char *doing)
{
    if (ret == ncclSuccess)
        return STARLIN_SUCCESS;
    const char *detail = ncclGetLastError(comm);
    (void)cudaGetLastError();
    return starlin__error(STARLIN_ERR_COMM, "NCCL: %s while %s%s%s", ncclGetErrorString(ret), doing,
                          detail != NULL && detail[0] != '\0' ? ": " : "", detail != NULL ? detail : "");
}

starlin_status_t starlin__comm_nccl_settle(starlin__comm_nccl_t *comm, ncclResult_t ret, const char *doing)
{
    double deadline_us = starlin__now_us() + 1e3 * comm->timeout_ms;
    while (ret == ncclSuccess || ret == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        ret = ncclCommGetAsyncError(comm->comm, &state);
        if (ret == ncclSuccess && state == ncclSuccess)
            return STARLIN_SUCCESS;
        if (ret == ncclSuccess && state != ncclInProgress)
            ret = state;
        if (starlin__now_us() > deadline_us)
            return starlin__error(STARLIN_ERR_TIMEOUT, "NCCL: no progress for %u ms while %s",
                                  comm->timeout_ms, doing);
        sched_yield();
    }
    return starlin__comm_nccl_status(ret, comm->comm, doing);
}

/* Every rank learns whether all of them got this far. */
static starlin_status_t agree(const starlin__comm_setup_t *setup, starlin_status_t mine, const char *doing)
{
    starlin__bootstrap_t *bootstrap = setup->bootstrap;
    int32_t status = mine;
    int32_t *all = starlin__alloc((size_t)bootstrap->nranks * sizeof(*all));
    /* a rank without this memory cannot take part: its peers run into the time limit */
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for an exchange");
    starlin_status_t result =
        bootstrap->ops->allgather(bootstrap, &status, sizeof(status), all, setup->config->timeout_ms);
    for (int i = 0; i < bootstrap->nranks && result == STARLIN_SUCCESS && mine == STARLIN_SUCCESS; i++) {
        if (all[i] != STARLIN_SUCCESS)
            result = starlin__error((starlin_status_t)all[i], "communicator nccl: rank %d failed while %s", i,
                                    doing);
    }
    starlin__free(all);
    return mine != STARLIN_SUCCESS ? mine : result;
}

static starlin_status_t draw_id(const starlin__comm_setup_t *setup, ncclUniqueId *id_p)
{
    starlin__bootstrap_t *bootstrap = setup->bootstrap;
    ticket_t mine;
    ticket_t *all = starlin__alloc((size_t)bootstrap->nranks * sizeof(*all));
    memset(&mine, 0, sizeof(mine));
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for an exchange");
    if (bootstrap->rank == 0)
        mine.status =
            starlin__comm_nccl_status(ncclGetUniqueId(&mine.id), NULL, "drawing a communicator's id");
    starlin_status_t status =
        bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), all, setup->config->timeout_ms);
    if (status == STARLIN_SUCCESS && all[0].status != STARLIN_SUCCESS) {
        status = (starlin_status_t)all[0].status;
        if (bootstrap->rank != 0)
            status = starlin__error(status, "communicator nccl: rank 0 could not draw an id");
    }
    if (status == STARLIN_SUCCESS)
        *id_p = all[0].id;
    starlin__free(all);
    return status;
}

static starlin_status_t open_comm(starlin__comm_nccl_t *comm, const starlin__comm_setup_t *setup,
                                  ncclUniqueId id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (setup->config->max_ctas != 0)
        config.maxCTAs = (int)setup->config->max_ctas;
    STARLIN__FORWARD(starlin__device_cuda_enter(setup->device));
    ncclResult_t ret =
        ncclCommInitRankConfig(&comm->comm, setup->bootstrap->nranks, id, setup->bootstrap->rank, &config);
    starlin_status_t status;
    if (comm->comm != NULL)
        status = starlin__comm_nccl_settle(comm, ret, "opening the communicator");
    else
        status = starlin__comm_nccl_status(ret == ncclSuccess ? ncclInternalError : ret, NULL,
                                           "opening the communicator");
    starlin__device_cuda_leave(setup->device);
    return status;
}

static void nccl_abort(starlin__comm_t *base)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    if (starlin__device_cuda_enter(base->device) != STARLIN_SUCCESS)
        return;
    pthread_mutex_lock(&comm->lock);
    if (comm->comm != NULL) {
        (void)ncclCommAbort(comm->comm);
        (void)cudaGetLastError();
        comm->comm = NULL;
    }
    pthread_mutex_unlock(&comm->lock);
    starlin__device_cuda_leave(base->device);
}

static void nccl_destroy(starlin__comm_t *base)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    if (comm == NULL)
        return;
    if (comm->comm != NULL && starlin__device_cuda_enter(base->device) == STARLIN_SUCCESS) {
        pthread_mutex_lock(&comm->lock);
        if (starlin__comm_nccl_settle(comm, ncclCommFinalize(comm->comm), "closing the communicator") ==
            STARLIN_SUCCESS) {
            (void)ncclCommDestroy(comm->comm);
            comm->comm = NULL;
        }
        pthread_mutex_unlock(&comm->lock);
        starlin__device_cuda_leave(base->device);
        nccl_abort(base); /* what could not be closed */
    }
    pthread_mutex_destroy(&comm->lock);
    starlin__free(comm);
}

static starlin_status_t nccl_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    ncclUniqueId id;
    int nranks = setup->bootstrap->nranks;
    starlin__comm_nccl_t *comm = starlin__alloc(sizeof(*comm));
    if (comm == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for communicator nccl");
    comm->base.ops = &starlin__comm_nccl_ops;
    comm->base.space = STARLIN__DEVICE;
    comm->base.device = setup->device;
    comm->base.nranks = nranks;
    comm->timeout_ms = setup->config->timeout_ms;
    (void)ncclGetVersion(&comm->version);
    snprintf(comm->base.version, sizeof(comm->base.version), "NCCL %d", comm->version);
    pthread_mutex_init(&comm->lock, NULL);

    starlin_status_t status = starlin__comm_nccl_meet(setup);
    if (status == STARLIN_SUCCESS)
        status = draw_id(setup, &id);
    if (status == STARLIN_SUCCESS) {
        status = agree(setup, open_comm(comm, setup, id), "opening the communicator");
        if (status != STARLIN_SUCCESS)
            nccl_abort(&comm->base); /* a peer may be missing: an orderly close would wait for it */
    }
    if (status != STARLIN_SUCCESS) {
        pthread_mutex_destroy(&comm->lock);
        starlin__free(comm);
        return status;
    }
    starlin__log("communicator nccl: version %d, %d ranks, CTAs at most %u (0: NCCL's choice)", comm->version,
                 nranks, setup->config->max_ctas);
    *comm_p = &comm->base;
    return STARLIN_SUCCESS;
}

static bool nccl_usable(const starlin__comm_setup_t *setup, char *why, size_t whysize)
{
    if (setup->device == NULL)
        snprintf(why, whysize, "this rank computes on the host");
    else if (setup->bootstrap->nranks == 1)
        snprintf(why, whysize, "there is one rank");
    else
        return true;
    return false;
}

static ncclDataType_t data_type(starlin_dtype_t dtype)
{
    switch (dtype) {
    case STARLIN_F64:
        return ncclFloat64;
    case STARLIN_F16:
        return ncclFloat16;
    case STARLIN_BF16:
        return ncclBfloat16;
    case STARLIN_F32:
        break;
    }
    return ncclFloat32;
}

static starlin_status_t launch(starlin__comm_nccl_t *comm, const starlin__allreduce_t *request)
{
    cudaStream_t stream = starlin__device_cuda_stream(comm->base.device, STARLIN__STREAM_COMM);
    starlin_status_t status;
    pthread_mutex_lock(&comm->lock);
    if (comm->comm == NULL)
        status = starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    else /* only what the communicator has taken in lies on the stream, before the event behind it */
        status =
            starlin__comm_nccl_settle(comm,
                                      ncclAllReduce(request->buffer, request->buffer, request->count,
                                                    data_type(request->dtype), ncclSum, comm->comm, stream),
                                      "starting an allreduce");
    pthread_mutex_unlock(&comm->lock);
    return status;
}

static starlin_status_t nccl_start(starlin__comm_t *base, starlin__allreduce_t *request)
{
    starlin__device_t *device = base->device;
    if (request->after != NULL)
        STARLIN__FORWARD(device->ops->event_wait(device, request->after, STARLIN__STREAM_COMM));
    if (request->count > 0) {
        STARLIN__FORWARD(starlin__device_cuda_enter(device));
        starlin_status_t status = launch((starlin__comm_nccl_t *)base, request);
        starlin__device_cuda_leave(device);
        STARLIN__FORWARD(status);
    }
    return device->ops->event_record(device, request->done, STARLIN__STREAM_COMM);
}

/* Has something failed behind our back, here or at a peer? With the lock held. */
static starlin_status_t health(starlin__comm_nccl_t *comm)
{
    ncclResult_t state = ncclSuccess;
    if (comm->comm == NULL)
        return starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    ncclResult_t ret = ncclCommGetAsyncError(comm->comm, &state);
    if (ret == ncclSuccess && state != ncclInProgress)
        ret = state;
    return starlin__comm_nccl_status(ret, comm->comm, "running an allreduce");
}

static starlin_status_t nccl_check(starlin__comm_t *base)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    /* whoever has the lock looks at the same errors */
    if (pthread_mutex_trylock(&comm->lock) != 0)
        return STARLIN_SUCCESS;
    starlin_status_t status = health(comm);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

static starlin_status_t nccl_test(starlin__comm_t *base, starlin__allreduce_t *request, bool *done_p)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    pthread_mutex_lock(&comm->lock);
    starlin_status_t status = health(comm);
    pthread_mutex_unlock(&comm->lock);
    STARLIN__FORWARD(status);
    return base->device->ops->event_query(base->device, request->done, done_p);
}

const starlin__comm_ops_t starlin__comm_nccl_ops = {
    .name = "nccl",
    .usable = nccl_usable,
    .create = nccl_create,
    .destroy = nccl_destroy,
    .allreduce_start = nccl_start,
    .allreduce_test = nccl_test,
    .buffer_alloc = starlin__comm_nccl_buffer_alloc,
    .buffer_free = starlin__comm_nccl_buffer_free,
    .buffer_register = starlin__comm_nccl_buffer_register,
    .buffer_deregister = starlin__comm_nccl_buffer_deregister,
    .check = nccl_check,
    .abort = nccl_abort,
};
