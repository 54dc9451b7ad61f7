/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers for NCCL's symmetric kernels (2.27 and later): memory from NCCL, registered as a window. Where the
 * version, the transport or the memory does not allow it, buffers are ordinary and the sums merely slower. */
#include "comm/nccl/comm_nccl.h"

#define HAS_WINDOWS (NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0))

#if HAS_WINDOWS

typedef struct registration {
    /* one per communicator; NULL: none. NCCL writes it when the registration completes */
    ncclWindow_t windows[STARLIN__NCCL_COMMS];
} registration_t;

static bool windows_usable(const starlin__comm_t *base)
{
    return ((const starlin__comm_nccl_t *)base)->version >= NCCL_VERSION(2, 27, 0);
}

starlin_status_t starlin__comm_nccl_buffer_alloc(starlin__comm_t *base, size_t nbytes, void **buffer_p)
{
    starlin__device_t *device = base->device;
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMPUTE);
    cudaError_t error = cudaSuccess;
    void *buffer = NULL;
    if (!windows_usable(base))
        return device->ops->alloc(device, nbytes, buffer_p);
    if (nbytes == 0)
        nbytes = 1;
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

void starlin__comm_nccl_buffer_free(starlin__comm_t *base, void *buffer)
{
    if (!windows_usable(base)) {
        base->device->ops->free(base->device, buffer);
        return;
    }
    if (buffer == NULL || starlin__device_cuda_enter(base->device) != STARLIN_SUCCESS)
        return;
    (void)ncclMemFree(buffer);
    (void)cudaGetLastError();
    starlin__device_cuda_leave(base->device);
}

/* A refusal leaves *refused_p true and the communicator in order; an error is one of the communicator. */
static starlin_status_t window_open(starlin__comm_nccl_t *comm, ncclComm_t nccl, void *buffer, size_t nbytes,
                                    ncclWindow_t *window, bool *refused_p)
{
    static const char doing[] = "registering a buffer";
    ncclResult_t state = ncclSuccess;
    ncclResult_t ret = ncclCommWindowRegister(nccl, buffer, nbytes, window, NCCL_WIN_COLL_SYMMETRIC);
    if (ret == ncclSuccess || ret == ncclInProgress)
        return starlin__comm_nccl_settle(comm, nccl, ret, doing);
    (void)cudaGetLastError();
    starlin__log("communicator nccl: a buffer of %zu bytes was not registered: %s", nbytes,
                 ncclGetErrorString(ret));
    *refused_p = true;
    return starlin__comm_nccl_status(ncclCommGetAsyncError(nccl, &state) == ncclSuccess ? state : ret, nccl,
                                     doing);
}

/* With the communicators that are open, the same on every rank; the first that has no window is the last that
 * is asked. With the lock held. */
static starlin_status_t windows_open(starlin__comm_nccl_t *comm, void *buffer, size_t nbytes,
                                     registration_t *registration)
{
    if (comm->aborted)
        return starlin__error(STARLIN_ERR_COMM, "the communicator was aborted");
    for (int i = 0; i < STARLIN__NCCL_COMMS; i++) {
        bool refused = false;
        if (comm->comms[i] == NULL)
            continue;
        starlin_status_t status =
            window_open(comm, comm->comms[i], buffer, nbytes, &registration->windows[i], &refused);
        if (refused)
            registration->windows[i] = NULL;
        STARLIN__FORWARD(status);
        if (registration->windows[i] != NULL)
            continue;
        if (!refused)
            starlin__log("communicator nccl: a buffer of %zu bytes was not registered: not supported here",
                         nbytes);
        break;
    }
    return STARLIN_SUCCESS;
}

/* With the lock held. */
static void windows_close(starlin__comm_nccl_t *comm, const registration_t *registration)
{
    for (int i = STARLIN__NCCL_COMMS - 1; i >= 0; i--) {
        ncclComm_t nccl = comm->comms[i];
        if (nccl != NULL && registration->windows[i] != NULL)
            (void)starlin__comm_nccl_settle(comm, nccl,
                                            ncclCommWindowDeregister(nccl, registration->windows[i]),
                                            "deregistering a buffer");
    }
}

starlin_status_t starlin__comm_nccl_buffer_register(starlin__comm_t *base, void *buffer, size_t nbytes,
                                                    void **registration_p)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    if (!windows_usable(base) || nbytes == 0) {
        *registration_p = NULL;
        return STARLIN_SUCCESS;
    }
    registration_t *registration = starlin__alloc(sizeof(*registration));
    if (registration == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the registration of a buffer");
    starlin_status_t status = starlin__device_cuda_enter(base->device);
    if (status == STARLIN_SUCCESS) {
        pthread_mutex_lock(&comm->lock);
        status = windows_open(comm, buffer, nbytes, registration);
        if (status != STARLIN_SUCCESS && status != STARLIN_ERR_TIMEOUT)
            windows_close(comm, registration);
        pthread_mutex_unlock(&comm->lock);
        starlin__device_cuda_leave(base->device);
    }
    /* after a time-out NCCL may still write a window: then its place is given up, not freed */
    if (status != STARLIN_ERR_TIMEOUT && (status != STARLIN_SUCCESS || registration->windows[0] == NULL)) {
        starlin__free(registration);
        registration = NULL;
    }
    STARLIN__FORWARD(status);
    *registration_p = registration;
    return STARLIN_SUCCESS;
}

void starlin__comm_nccl_buffer_deregister(starlin__comm_t *base, void *registration)
{
    starlin__comm_nccl_t *comm = (starlin__comm_nccl_t *)base;
    if (registration == NULL)
        return;
    if (starlin__device_cuda_enter(base->device) == STARLIN_SUCCESS) {
        pthread_mutex_lock(&comm->lock);
        windows_close(comm, registration);
        pthread_mutex_unlock(&comm->lock);
        starlin__device_cuda_leave(base->device);
    }
    starlin__free(registration);
}

#else

starlin_status_t starlin__comm_nccl_buffer_alloc(starlin__comm_t *base, size_t nbytes, void **buffer_p)
{
    return base->device->ops->alloc(base->device, nbytes, buffer_p);
}

void starlin__comm_nccl_buffer_free(starlin__comm_t *base, void *buffer)
{
    base->device->ops->free(base->device, buffer);
}

starlin_status_t starlin__comm_nccl_buffer_register(starlin__comm_t *base, void *buffer, size_t nbytes,
                                                    void **registration_p)
{
    (void)base;
    (void)buffer;
    (void)nbytes;
    *registration_p = NULL;
    return STARLIN_SUCCESS;
}

void starlin__comm_nccl_buffer_deregister(starlin__comm_t *base, void *registration)
{
    (void)base;
    (void)registration;
}

#endif
