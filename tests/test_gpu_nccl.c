/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL over one rank: create, register, each collective in place and from one buffer to another, close,
 * abort. More ranks are tested elsewhere. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

#include "gpu_nccl.h"

static void check_kind(starlin__comm_t *comm, starlin__collective_kind_t kind, starlin_dtype_t dtype,
                       int64_t rows)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        gpu_transfer_t transfer;
        memset(&transfer, 0, sizeof(transfer));
        transfer.host.collective.kind = kind;
        transfer.host.collective.dtype = dtype;
        gpu_transfer_open(&transfer, comm, 0, 1, &rows, 7, in_place, true);
        for (int i = 0; i < 2; i++) { /* over one rank, twice is once */
            CHECK_STATUS(comm->ops->start(comm, &transfer.host.collective), STARLIN_SUCCESS);
            collective_wait(comm, &transfer.host.collective);
        }
        gpu_transfer_close(&transfer, comm, 0);
    }
}

/* After an abort everything fails with an error, and the end is quiet. */
static void check_abort(starlin__comm_t *comm)
{
    starlin__collective_t collective = {.count = 1, .cols = 1, .dtype = STARLIN_F32};
    void *registration = NULL;
    bool done = false;
    CHECK_STATUS(comm->device->ops->event_create(comm->device, &collective.done), STARLIN_SUCCESS);
    CHECK_STATUS(comm->device->ops->alloc(comm->device, sizeof(float), &collective.recv), STARLIN_SUCCESS);
    collective.send = collective.recv;
    for (int i = 0; i < 2; i++) {
        comm->ops->abort(comm);
        CHECK_STATUS(comm->ops->start(comm, &collective), STARLIN_ERR_COMM);
        CHECK_STATUS(comm->ops->test(comm, &collective, &done), STARLIN_ERR_COMM);
        CHECK_STATUS(comm->ops->check(comm), STARLIN_ERR_COMM);
        CHECK_CONTAINS(starlin_last_error(), "aborted");
        if (comm->ops->buffer_register != NULL)
            CHECK_STATUS(comm->ops->buffer_register(comm, collective.recv, sizeof(float), &registration),
                         STARLIN_ERR_COMM);
        CHECK(registration == NULL);
    }
    comm->device->ops->free(comm->device, collective.recv);
    comm->device->ops->event_destroy(comm->device, collective.done);
}

int main(void)
{
    starlin__device_t *device = gpu_open();
    const starlin__comm_ops_t *ops = find_nccl();
    starlin__config_t config;
    starlin__bootstrap_t *bootstrap = NULL;
    starlin__comm_t *comm = NULL;
    char why[128] = "";
    if (ops == NULL)
        return 77;
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__bootstrap_self_create(&bootstrap), STARLIN_SUCCESS);
    config.max_ctas = 8;
    config.timeout_ms = 60000;
    starlin__comm_setup_t setup = {.config = &config, .bootstrap = bootstrap, .parameters = ""};
    CHECK(!ops->usable(&setup, why, sizeof(why)));
    CHECK_CONTAINS(why, "host");
    CHECK_STATUS(ops->create(&setup, &comm), STARLIN_ERR_UNSUPPORTED);
    CHECK_CONTAINS(starlin_last_error(), "needs a device");
    CHECK(comm == NULL);
    setup.device = device;
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(ops->create(&setup, &comm), STARLIN_SUCCESS);
        if (comm == NULL)
            return 1;
        CHECK_EQ_INT(comm->nranks, 1);
        for (int kind = 0; kind < STARLIN__NCOLLECTIVES; kind++) {
            for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
                check_kind(comm, (starlin__collective_kind_t)kind, (starlin_dtype_t)dtype, 0);
                check_kind(comm, (starlin__collective_kind_t)kind, (starlin_dtype_t)dtype, 1);
                check_kind(comm, (starlin__collective_kind_t)kind, (starlin_dtype_t)dtype, 14287);
            }
        }
        if (round == 1)
            check_abort(comm);
        ops->destroy(comm);
        comm = NULL;
    }
    bootstrap->ops->destroy(bootstrap);
    device->ops->destroy(device);
    return CHECK_RESULT();
}
