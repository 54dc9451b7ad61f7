/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference communicator: one rank, the sum is the buffer itself. */
#include "comm/comm.h"

#include <stdio.h>

static bool self_usable(const starlin__comm_setup_t *setup, char *why, size_t whysize)
{
    if (setup->bootstrap->nranks == 1)
        return true;
    snprintf(why, whysize, "sums over one rank only");
    return false;
}

static starlin_status_t self_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    starlin__comm_t *comm;

    if (setup->bootstrap->nranks != 1)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "communicator self needs one rank, there are %d",
                              setup->bootstrap->nranks);
    comm = starlin__alloc(sizeof *comm);
    if (comm == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "communicator self");
    comm->ops = &starlin__comm_self_ops;
    comm->space = setup->device != NULL ? STARLIN__DEVICE : STARLIN__HOST;
    comm->device = setup->device;
    comm->nranks = 1;
    *comm_p = comm;
    return STARLIN_SUCCESS;
}

static void self_destroy(starlin__comm_t *comm)
{
    starlin__free(comm);
}

/* On a device the empty collective still carries the order from `after` to `done`. */
static starlin_status_t self_start(starlin__comm_t *comm, starlin__allreduce_t *request)
{
    if (comm->device == NULL)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(comm->device->ops->event_wait(comm->device, request->after, STARLIN__STREAM_COMM));
    return comm->device->ops->event_record(comm->device, request->done, STARLIN__STREAM_COMM);
}

static starlin_status_t self_test(starlin__comm_t *comm, starlin__allreduce_t *request, bool *done_p)
{
    if (comm->device != NULL)
        return comm->device->ops->event_query(comm->device, request->done, done_p);
    *done_p = true;
    return STARLIN_SUCCESS;
}

static double self_predict_us(const starlin__comm_t *comm, double nbytes)
{
    (void)comm;
    (void)nbytes;
    return 0.0;
}

const starlin__comm_ops_t starlin__comm_self_ops = {
    .name = "self",
    .usable = self_usable,
    .create = self_create,
    .destroy = self_destroy,
    .allreduce_start = self_start,
    .allreduce_test = self_test,
    .predict_us = self_predict_us,
};
