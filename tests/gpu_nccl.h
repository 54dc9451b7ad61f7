/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of NCCL share: the backend, and transfers between buffers on the device. Include gpu.h
 * first.
 */
#ifndef STARLIN_TESTS_GPU_NCCL_H
#define STARLIN_TESTS_GPU_NCCL_H

#include "collective.h"

typedef struct gpu_transfer {
    transfer_t host;
    void *send, *recv; /* on the device; the same in place */
    void *registrations[2];
} gpu_transfer_t;

/* NULL, with the reason printed, where there is none. */
static inline const starlin__comm_ops_t *find_nccl(void)
{
    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        if (strcmp(starlin__comm_registry[i]->name, "nccl") == 0)
            return starlin__comm_registry[i];
    }
    printf("skipped: this build has no NCCL\n");
    return NULL;
}

static inline void gpu_transfer_buffer(starlin__comm_t *comm, size_t nbytes, bool is_registered,
                                       void **buffer_p, void **registration_p)
{
    if (comm->ops->buffer_alloc == NULL) {
        CHECK_STATUS(comm->device->ops->alloc(comm->device, nbytes, buffer_p), STARLIN_SUCCESS);
        return;
    }
    CHECK_STATUS(comm->ops->buffer_alloc(comm, nbytes, buffer_p), STARLIN_SUCCESS);
    if (is_registered)
        CHECK_STATUS(comm->ops->buffer_register(comm, *buffer_p, nbytes, registration_p), STARLIN_SUCCESS);
}

/* Buffers have room for the largest run, so that they are as long on every rank. */
static inline void gpu_transfer_open(gpu_transfer_t *transfer, starlin__comm_t *comm, int rank, int nranks,
                                     const int64_t *rows, int64_t cols, bool in_place, bool is_registered)
{
    starlin__collective_t *collective = &transfer->host.collective;
    starlin__device_t *device = comm->device;
    size_t room;
    transfer_open(&transfer->host, rank, nranks, rows, cols, (int)cols);
    room = starlin__collective_nbytes(collective) + 1;
    gpu_transfer_buffer(comm, room, is_registered, &transfer->recv, &transfer->registrations[0]);
    transfer->send = transfer->recv;
    if (!in_place)
        gpu_transfer_buffer(comm, room, is_registered, &transfer->send, &transfer->registrations[1]);
    gpu_upload(device, transfer->recv, transfer->host.recv, transfer->host.recv_nbytes + 1);
    gpu_upload(device, transfer->send, transfer->host.send, transfer->host.send_nbytes);
    CHECK_STATUS(device->ops->event_create(device, &collective->after), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_create(device, &collective->done), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_record(device, collective->after, STARLIN__STREAM_COMPUTE),
                 STARLIN_SUCCESS);
    collective->send = transfer->send;
    collective->recv = transfer->recv;
}

static inline void gpu_transfer_close(gpu_transfer_t *transfer, starlin__comm_t *comm, int rank)
{
    starlin__device_t *device = comm->device;
    void *buffers[2] = {transfer->recv, transfer->send};
    gpu_download(device, transfer->host.recv, transfer->recv, transfer->host.recv_nbytes + 1);
    device->ops->event_destroy(device, transfer->host.collective.after);
    device->ops->event_destroy(device, transfer->host.collective.done);
    for (int i = 0; i < (transfer->send == transfer->recv ? 1 : 2); i++) {
        if (comm->ops->buffer_alloc == NULL) {
            device->ops->free(device, buffers[i]);
            continue;
        }
        comm->ops->buffer_deregister(comm, transfer->registrations[i]);
        comm->ops->buffer_free(comm, buffers[i]);
    }
    transfer_close(&transfer->host, rank);
}

#endif
