/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives by NCCL on the device's communication stream. Invariants: the communicator is non-blocking, so
 * nothing here waits longer than the configured time; calls on it are serialized by the lock. */
#include "machine/device_cuda.h"

#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "ranks/agreement.h"

/* Windows came with 2.27: buffers for NCCL's symmetric kernels. */
#define HAS_WINDOWS    (NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0))
#define OLDEST_VERSION (HAS_WINDOWS ? NCCL_VERSION(2, 27, 0) : NCCL_VERSION(2, 18, 0))

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL 2.18 or later is needed"
#endif

typedef struct comm_nccl {
    starlin__comm_t base;
    ncclComm_t nccl; /* NULL: aborted */
    int rank;
    unsigned timeout_ms;
    pthread_mutex_t lock; /* around NCCL's calls and `nccl` */
} comm_nccl_t;

/* ------------------------------------------------------------------- errors */

/* Translates an NCCL error; `doing` completes "while ...". `nccl` may be NULL. */
static starlin_status_t nccl_status(ncclResult_t ret, ncclComm_t nccl, const char *doing)
{
    if (ret == ncclSuccess)
        return STARLIN_SUCCESS;
    const char *detail = ncclGetLastError(nccl);
    (void)cudaGetLastError();
    return starlin__error(STARLIN_ERR_COMM, "NCCL: %s while %s%s%s", ncclGetErrorString(ret), doing,
                          detail != NULL && detail[0] != '\0' ? ": " : "", detail != NULL ? detail : "");
}

/* Waits until the communicator has taken in the call that returned `ret`, for timeout_ms at most. With the
 * lock held. */
static starlin_status_t settle(const comm_nccl_t *comm, ncclResult_t ret, const char *doing)
{
    double deadline_us = starlin__now_us() + 1e3 * comm->timeout_ms;
    while (ret == ncclSuccess || ret == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        ret = ncclCommGetAsyncError(comm->nccl, &state);
        if (ret == ncclSuccess && state == ncclSuccess)
            return STARLIN_SUCCESS;
        if (ret == ncclSuccess && state != ncclInProgress)
            ret = state;
        if (starlin__now_us() > deadline_us)
            return starlin__error(STARLIN_ERR_TIMEOUT, "NCCL: no progress for %u ms while %s",
                                  comm->timeout_ms, doing);
        sched_yield();
    }
    return nccl_status(ret, comm->nccl, doing);
}

/* The device is current and the lock is held until the matching leave. */
static starlin_status_t enter(comm_nccl_t *comm)
{
    STARLIN__FORWARD(starlin__device_cuda_enter(comm->base.device));
    pthread_mutex_lock(&comm->lock);
    return STARLIN_SUCCESS;
}

static void leave(comm_nccl_t *comm)
{
    pthread_mutex_unlock(&comm->lock);
    starlin__device_cuda_leave(comm->base.device);
}

/* Has something failed behind our back, here or at a peer? With the lock held. */
static starlin_status_t health(const comm_nccl_t *comm)
{
    ncclResult_t state = ncclSuccess;
    if (comm->nccl == NULL)
        return starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    ncclResult_t ret = ncclCommGetAsyncError(comm->nccl, &state);
    return nccl_status(ret == ncclSuccess && state != ncclInProgress ? state : ret, comm->nccl,
                       "running a collective");
}

static starlin_status_t nccl_check(starlin__comm_t *base)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    /* whoever has the lock looks at the same errors */
    if (pthread_mutex_trylock(&comm->lock) != 0)
        return STARLIN_SUCCESS;
    starlin_status_t status = health(comm);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* ------------------------------------------------------- opening and closing */

static void nccl_abort(starlin__comm_t *base)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    if (enter(comm) != STARLIN_SUCCESS)
        return;
    if (comm->nccl != NULL)
        (void)ncclCommAbort(comm->nccl);
    (void)cudaGetLastError();
    comm->nccl = NULL;
    leave(comm);
}

static void nccl_destroy(starlin__comm_t *base)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    if (comm->nccl != NULL && enter(comm) == STARLIN_SUCCESS) {
        if (settle(comm, ncclCommFinalize(comm->nccl), "closing the communicator") == STARLIN_SUCCESS) {
            (void)ncclCommDestroy(comm->nccl);
            comm->nccl = NULL;
        }
        leave(comm);
        nccl_abort(base); /* what could not be closed */
    }
    pthread_mutex_destroy(&comm->lock);
    starlin__free(comm);
}

static starlin_status_t init(comm_nccl_t *comm, ncclUniqueId id, unsigned max_ctas)
{
    static const char doing[] = "opening the communicator";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (max_ctas != 0)
        config.maxCTAs = (int)max_ctas;
    STARLIN__FORWARD(enter(comm));
    ncclResult_t ret = ncclCommInitRankConfig(&comm->nccl, comm->base.nranks, id, comm->rank, &config);
    starlin_status_t status = comm->nccl != NULL
                                  ? settle(comm, ret, doing)
                                  : nccl_status(ret == ncclSuccess ? ncclInternalError : ret, NULL, doing);
    leave(comm);
    return status;
}

/* What the ranks tell each other. */
typedef struct hello {
    int32_t node; /* its first rank */
    int32_t version;
    int32_t share_gpu;
    char busid[36];
    ncclUniqueId id; /* rank 0's counts, the second time */
} hello_t;

static starlin_status_t hello_fill(const starlin__comm_setup_t *setup, hello_t *hello)
{
    int version = 0;
    memset(hello, 0, sizeof(*hello));
    (void)ncclGetVersion(&version);
    hello->node = setup->bootstrap->node;
    hello->version = version;
    hello->share_gpu = (int32_t)setup->config->share_gpu;
    if (setup->device == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "communicator nccl needs a device, this rank computes on the host");
    if (version < OLDEST_VERSION)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "NCCL %d is loaded, %d or later is needed", version,
                              OLDEST_VERSION);
    return setup->device->ops->busid(setup->device->index, hello->busid, sizeof(hello->busid));
}

/* The same verdict on every rank. */
static starlin_status_t judge(const hello_t *hellos, int nranks, bool *shared_p)
{
    bool may_share = true;
    for (int i = 0; i < nranks; i++)
        may_share = may_share && hellos[i].share_gpu;
    *shared_p = false;
    for (int i = 0; i < nranks; i++) {
        for (int j = i + 1; j < nranks; j++) {
            if (hellos[i].node != hellos[j].node || strcmp(hellos[i].busid, hellos[j].busid) != 0)
                continue;
            *shared_p = true;
            if (!may_share)
                return starlin__error(
                    STARLIN_ERR_NO_DEVICE,
                    "ranks %d and %d are on the same GPU %s: give each rank a GPU of its own, or set "
                    "STARLIN_SHARE_GPU=1 on every rank (for tests: speed then means nothing)",
                    i, j, hellos[i].busid);
        }
    }
    return STARLIN_SUCCESS;
}

/* What NCCL must find in the environment for several ranks on one GPU; the user's own settings stay. As NCCL
 * offers it, or as if the ranks were on different hosts, which talk over sockets. */
static starlin_status_t share_gpu(const hello_t *hellos, int rank, int nranks,
                                  starlin__environment_t *environment)
{
    bool one_node = true, native = true;
    char name[32];
    for (int i = 0; i < nranks; i++) {
        one_node = one_node && hellos[i].node == hellos[0].node;
        native = native && hellos[i].version >= NCCL_VERSION(2, 30, 0);
    }
    starlin__log("several ranks share a GPU (STARLIN_SHARE_GPU=1): results are right, speed means nothing");
    if (native)
        return starlin__environment_default(environment, "NCCL_MULTI_RANK_GPU_ENABLE", "1");
    snprintf(name, sizeof(name), "starlin-%d", rank);
    STARLIN__FORWARD(starlin__environment_default(environment, "NCCL_HOSTID", name));
    return one_node ? starlin__environment_default(environment, "NCCL_SOCKET_IFNAME", "lo") : STARLIN_SUCCESS;
}

/* All ranks have the communicator, or none. NCCL reads the environment once, at the first call that needs it,
 * so what a shared GPU takes comes before the id. `hellos` has room for all ranks. */
static starlin_status_t nccl_open(comm_nccl_t *comm, const starlin__comm_setup_t *setup, hello_t *hellos,
                                  starlin__environment_t *environment)
{
    starlin__bootstrap_t *bootstrap = setup->bootstrap;
    unsigned timeout_ms = comm->timeout_ms;
    hello_t mine;
    bool shared;
    starlin_status_t status = hello_fill(setup, &mine);
    STARLIN__FORWARD(starlin__agree_status(bootstrap, "communicator nccl", status, timeout_ms));
    STARLIN__FORWARD(bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), hellos, timeout_ms));
    STARLIN__FORWARD(judge(hellos, bootstrap->nranks, &shared));
    if (shared)
        status = share_gpu(hellos, bootstrap->rank, bootstrap->nranks, environment);
    if (status == STARLIN_SUCCESS && bootstrap->rank == 0)
        status = nccl_status(ncclGetUniqueId(&mine.id), NULL, "drawing a communicator's id");
    STARLIN__FORWARD(starlin__agree_status(bootstrap, "the id of NCCL", status, timeout_ms));
    STARLIN__FORWARD(bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), hellos, timeout_ms));
    status = init(comm, hellos[0].id, setup->config->max_ctas);
    /* who has failed at once waits for those who wait for it */
    return starlin__agree_status(bootstrap, "communicator nccl", status, 2 * timeout_ms);
}

static starlin_status_t nccl_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    starlin__environment_t environment = {0};
    starlin__comm_t *base;
    int version = 0;
    STARLIN__FORWARD(starlin__comm_alloc(&starlin__comm_nccl_ops, setup, sizeof(comm_nccl_t), &base));
    comm_nccl_t *comm = (comm_nccl_t *)base;
    hello_t *hellos = starlin__alloc((size_t)base->nranks * sizeof(*hellos));
    base->space = STARLIN__DEVICE;
    comm->rank = setup->bootstrap->rank;
    comm->timeout_ms = setup->config->timeout_ms;
    (void)ncclGetVersion(&version);
    snprintf(base->version, sizeof(base->version), "NCCL %d", version);
    pthread_mutex_init(&comm->lock, NULL);
    starlin_status_t status = hellos != NULL
                                  ? nccl_open(comm, setup, hellos, &environment)
                                  : starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for communicator nccl");
    starlin__environment_restore(&environment);
    starlin__free(hellos);
    if (status != STARLIN_SUCCESS) {
        if (comm->nccl != NULL)
            nccl_abort(base); /* a peer may be missing: an orderly close would wait for it */
        nccl_destroy(base);
        return status;
    }
    starlin__log("communicator nccl: version %d, %d ranks, CTAs at most %u (0: NCCL's choice)", version,
                 base->nranks, setup->config->max_ctas);
    *comm_p = base;
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

/* --------------------------------------------------------------- collectives */

/* Runs that differ, one after the other in one group. */
static ncclResult_t enqueue_runs(const comm_nccl_t *comm, const starlin__collective_t *collective,
                                 ncclDataType_t type, cudaStream_t stream)
{
    size_t row_nbytes = (size_t)collective->cols * starlin_dtype_nbytes(collective->dtype);
    bool gathers = collective->kind == STARLIN__ALLGATHER;
    size_t place = 0;
    ncclResult_t ret = ncclGroupStart(), end;
    for (int rank = 0; rank < comm->base.nranks && ret == ncclSuccess; rank++) {
        size_t count = (size_t)(collective->rows[rank] * collective->cols);
        if (count > 0 && gathers)
            ret = ncclBroadcast(collective->send, (char *)collective->recv + place, count, type, rank,
                                comm->nccl, stream);
        else if (count > 0)
            ret = ncclReduce((const char *)collective->send + place, collective->recv, count, type, ncclSum,
                             rank, comm->nccl, stream);
        place += (size_t)collective->rows[rank] * row_nbytes;
        ret = ret == ncclInProgress ? ncclSuccess : ret;
    }
    end = ncclGroupEnd();
    return ret != ncclSuccess ? ret : end;
}

/* Over one rank each kind is the sum of one summand. */
static ncclResult_t enqueue(const comm_nccl_t *comm, const starlin__collective_t *collective)
{
    static const ncclDataType_t types[] = {[STARLIN_F32] = ncclFloat32,
                                           [STARLIN_F64] = ncclFloat64,
                                           [STARLIN_F16] = ncclFloat16,
                                           [STARLIN_BF16] = ncclBfloat16};
    cudaStream_t stream = starlin__device_cuda_stream(comm->base.device, STARLIN__STREAM_COMM);
    ncclDataType_t type = types[collective->dtype];
    const void *send = collective->send;
    void *recv = collective->recv;
    if (collective->kind == STARLIN__ALLREDUCE || comm->base.nranks == 1)
        return ncclAllReduce(send, recv, starlin__collective_elements(collective), type, ncclSum, comm->nccl,
                             stream);
    for (int rank = 1; rank < comm->base.nranks; rank++) {
        if (collective->rows[rank] != collective->rows[0])
            return enqueue_runs(comm, collective, type, stream);
    }
    size_t count = (size_t)(collective->rows[0] * collective->cols);
    if (collective->kind == STARLIN__ALLGATHER)
        return ncclAllGather(send, recv, count, type, comm->nccl, stream);
    return ncclReduceScatter(send, recv, count, type, ncclSum, comm->nccl, stream);
}

static starlin_status_t nccl_start(starlin__comm_t *base, starlin__collective_t *collective)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    starlin__device_t *device = base->device;
    starlin_status_t status = STARLIN_SUCCESS;
    if (collective->after != NULL)
        STARLIN__FORWARD(device->ops->event_wait(device, collective->after, STARLIN__STREAM_COMM));
    STARLIN__FORWARD(enter(comm));
    if (comm->nccl == NULL)
        status = starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    else if (starlin__collective_elements(collective) > 0)
        /* only what the communicator has taken in lies on the stream, before the event behind it */
        status = settle(comm, enqueue(comm, collective), "starting a collective");
    leave(comm);
    STARLIN__FORWARD(status);
    return device->ops->event_record(device, collective->done, STARLIN__STREAM_COMM);
}

static starlin_status_t nccl_test(starlin__comm_t *base, starlin__collective_t *collective, bool *done_p)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    pthread_mutex_lock(&comm->lock);
    starlin_status_t status = health(comm);
    pthread_mutex_unlock(&comm->lock);
    STARLIN__FORWARD(status);
    return base->device->ops->event_query(base->device, collective->done, done_p);
}

/* ------------------------------------------------------------------- buffers
 * Memory from NCCL, registered as a window. Where the version, the transport or the memory does not allow it,
 * buffers are ordinary and collectives merely slower. */

#if HAS_WINDOWS

/* NCCL writes it when the registration completes. */
typedef struct registration {
    ncclWindow_t window;
} registration_t;

static starlin_status_t buffer_alloc(starlin__comm_t *base, size_t nbytes, void **buffer_p)
{
    starlin__device_t *device = base->device;
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMPUTE);
    cudaError_t error = cudaSuccess;
    void *buffer = NULL;
    nbytes = nbytes > 0 ? nbytes : 1;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    ncclResult_t ret = ncclMemAlloc(&buffer, nbytes);
    if (ret == ncclSuccess) {
        error = cudaMemsetAsync(buffer, 0, nbytes, stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
        if (error != cudaSuccess)
            (void)ncclMemFree(buffer);
    }
    (void)cudaGetLastError();
    starlin__device_cuda_leave(device);
    if (ret != ncclSuccess)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory on device %u for %zu bytes (NCCL: %s)",
                              device->index, nbytes, ncclGetErrorString(ret));
    STARLIN__FORWARD(starlin__device_cuda_status(error, "allocating device memory"));
    *buffer_p = buffer;
    return STARLIN_SUCCESS;
}

static void buffer_free(starlin__comm_t *base, void *buffer)
{
    if (buffer == NULL || starlin__device_cuda_enter(base->device) != STARLIN_SUCCESS)
        return;
    (void)ncclMemFree(buffer);
    (void)cudaGetLastError();
    starlin__device_cuda_leave(base->device);
}

/* A refusal leaves *window_p NULL and the communicator in order; an error is one of the communicator. With
 * the lock held. */
static starlin_status_t window_open(const comm_nccl_t *comm, void *buffer, size_t nbytes,
                                    ncclWindow_t *window_p)
{
    static const char doing[] = "registering a buffer";
    ncclResult_t state = ncclSuccess;
    if (comm->nccl == NULL)
        return starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    ncclResult_t ret = ncclCommWindowRegister(comm->nccl, buffer, nbytes, window_p, NCCL_WIN_COLL_SYMMETRIC);
    if (ret == ncclSuccess || ret == ncclInProgress) {
        STARLIN__FORWARD(settle(comm, ret, doing));
        if (*window_p == NULL)
            starlin__log("communicator nccl: a buffer of %zu bytes was not registered: not supported here",
                         nbytes);
        return STARLIN_SUCCESS;
    }
    (void)cudaGetLastError();
    *window_p = NULL;
    starlin__log("communicator nccl: a buffer of %zu bytes was not registered: %s", nbytes,
                 ncclGetErrorString(ret));
    return nccl_status(ncclCommGetAsyncError(comm->nccl, &state) == ncclSuccess ? state : ret, comm->nccl,
                       doing);
}

static starlin_status_t buffer_register(starlin__comm_t *base, void *buffer, size_t nbytes,
                                        void **registration_p)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    registration_t *registration;
    *registration_p = NULL;
    if (nbytes == 0)
        return STARLIN_SUCCESS;
    registration = starlin__alloc(sizeof(*registration));
    if (registration == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the registration of a buffer");
    starlin_status_t status = enter(comm);
    if (status == STARLIN_SUCCESS) {
        status = window_open(comm, buffer, nbytes, &registration->window);
        leave(comm);
    }
    if (status == STARLIN_SUCCESS && registration->window != NULL)
        *registration_p = registration;
    else if (status != STARLIN_ERR_TIMEOUT) /* then NCCL may still write the window: its place is given up */
        starlin__free(registration);
    return status;
}

static void buffer_deregister(starlin__comm_t *base, void *registration)
{
    comm_nccl_t *comm = (comm_nccl_t *)base;
    if (registration == NULL)
        return;
    if (enter(comm) == STARLIN_SUCCESS) {
        if (comm->nccl != NULL)
            (void)settle(comm, ncclCommWindowDeregister(comm->nccl, ((registration_t *)registration)->window),
                         "deregistering a buffer");
        leave(comm);
    }
    starlin__free(registration);
}

#endif

const starlin__comm_ops_t starlin__comm_nccl_ops = {
    .name = "nccl",
    .usable = nccl_usable,
    .create = nccl_create,
    .destroy = nccl_destroy,
    .start = nccl_start,
    .test = nccl_test,
#if HAS_WINDOWS
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .buffer_register = buffer_register,
    .buffer_deregister = buffer_deregister,
#endif
    .check = nccl_check,
    .abort = nccl_abort,
};
