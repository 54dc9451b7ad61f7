/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by NCCL on the device's communication stream. Invariants: the communicators are non-blocking, so
 * nothing here waits longer than the configured time; calls on them are serialized by the lock; what ends or
 * fails one of them (abort, destroy, an error) concerns all. */
#include "comm/nccl/comm_nccl.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

starlin_status_t starlin__comm_nccl_status(ncclResult_t ret, ncclComm_t nccl, const char *doing)
{
    if (ret == ncclSuccess)
        return STARLIN_SUCCESS;
    const char *detail = ncclGetLastError(nccl);
    (void)cudaGetLastError();
    return starlin__error(STARLIN_ERR_COMM, "NCCL: %s while %s%s%s", ncclGetErrorString(ret), doing,
                          detail != NULL && detail[0] != '\0' ? ": " : "", detail != NULL ? detail : "");
}

starlin_status_t starlin__comm_nccl_settle(starlin__comm_nccl_t *comm, ncclComm_t nccl, ncclResult_t ret,
                                           const char *doing)
{
    double deadline_us = starlin__now_us() + 1e3 * comm->timeout_ms;
    while (ret == ncclSuccess || ret == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        ret = ncclCommGetAsyncError(nccl, &state);
        if (ret == ncclSuccess && state == ncclSuccess)
            return STARLIN_SUCCESS;
        if (ret == ncclSuccess && state != ncclInProgress)
            ret = state;
        if (starlin__now_us() > deadline_us)
            return starlin__error(STARLIN_ERR_TIMEOUT, "NCCL: no progress for %u ms while %s",
                                  comm->timeout_ms, doing);
        sched_yield();
    }
    return starlin__comm_nccl_status(ret, nccl, doing);
}

static void nccl_abort(starlin__comm_t *base)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    if (starlin__device_cuda_enter(base->device) != STARLIN_SUCCESS)
        return;
    pthread_mutex_lock(&comm->lock);
    comm->aborted = true;
    for (int i = STARLIN__NCCL_COMMS - 1; i >= 0; i--) {
        if (comm->comms[i] == NULL)
            continue;
        (void)ncclCommAbort(comm->comms[i]);
        (void)cudaGetLastError();
        comm->comms[i] = NULL;
    }
    pthread_mutex_unlock(&comm->lock);
    starlin__device_cuda_leave(base->device);
}

/* In the same order on every rank; stops at the first that cannot be closed. With the lock held. */
static void close_all(starlin__comm_nccl_t *comm)
{
    for (int i = STARLIN__NCCL_COMMS - 1; i >= 0; i--) {
        ncclComm_t nccl = comm->comms[i];
        if (nccl == NULL)
            continue;
        if (starlin__comm_nccl_settle(comm, nccl, ncclCommFinalize(nccl), "closing the communicator") !=
            STARLIN_SUCCESS)
            return;
        (void)ncclCommDestroy(nccl);
        comm->comms[i] = NULL;
    }
}

static void nccl_destroy(starlin__comm_t *base)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    if (comm == NULL)
        return;
    if (!comm->aborted && starlin__device_cuda_enter(base->device) == STARLIN_SUCCESS) {
        pthread_mutex_lock(&comm->lock);
        close_all(comm);
        pthread_mutex_unlock(&comm->lock);
        starlin__device_cuda_leave(base->device);
        nccl_abort(base); /* what could not be closed */
    }
    pthread_mutex_destroy(&comm->lock);
    starlin__free(comm);
}

static starlin_status_t nccl_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    starlin__comm_nccl_t *comm = starlin__alloc(sizeof(*comm));
    if (comm == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for communicator nccl");
    comm->base.ops = &starlin__comm_nccl_ops;
    comm->base.space = STARLIN__DEVICE;
    comm->base.device = setup->device;
    comm->base.nranks = setup->bootstrap->nranks;
    comm->bootstrap = setup->bootstrap;
    comm->timeout_ms = setup->config->timeout_ms;
    comm->max_ctas = setup->config->max_ctas;
    (void)ncclGetVersion(&comm->version);
    snprintf(comm->base.version, sizeof(comm->base.version), "NCCL %d", comm->version);
    pthread_mutex_init(&comm->lock, NULL);

    starlin_status_t status = starlin__comm_nccl_meet(setup); /* all ranks go on, or none */
    if (status == STARLIN_SUCCESS)
        status = starlin__comm_nccl_open(comm, 0, STARLIN_SUCCESS);
    if (status != STARLIN_SUCCESS) {
        pthread_mutex_destroy(&comm->lock);
        starlin__free(comm);
        return status;
    }
    starlin__log("communicator nccl: version %d, %d ranks, CTAs at most %u (0: NCCL's choice)", comm->version,
                 comm->base.nranks, comm->max_ctas);
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
    int index = starlin__comm_nccl_index(request->ctas);
    starlin_status_t status;
    pthread_mutex_lock(&comm->lock);
    ncclComm_t nccl = index < 0 ? NULL : comm->comms[index];
    if (comm->aborted)
        status = starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    else if (nccl == NULL)
        status = starlin__error(STARLIN_ERR_INVALID, "communicator nccl: %u CTAs were not prepared",
                                request->ctas);
    else /* only what the communicator has taken in lies on the stream, before the event behind it */
        status = starlin__comm_nccl_settle(comm, nccl,
                                           ncclAllReduce(request->buffer, request->buffer, request->count,
                                                         data_type(request->dtype), ncclSum, nccl, stream),
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
    if (comm->aborted)
        return starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    for (int i = 0; i < STARLIN__NCCL_COMMS; i++) {
        ncclResult_t state = ncclSuccess;
        if (comm->comms[i] == NULL)
            continue;
        ncclResult_t ret = ncclCommGetAsyncError(comm->comms[i], &state);
        if (ret == ncclSuccess && state != ncclInProgress)
            ret = state;
        STARLIN__FORWARD(starlin__comm_nccl_status(ret, comm->comms[i], "running an allreduce"));
    }
    return STARLIN_SUCCESS;
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
    .ctas_choices = starlin__comm_nccl_ctas_choices,
    .ctas_prepare = starlin__comm_nccl_ctas_prepare,
    .check = nccl_check,
    .abort = nccl_abort,
};
