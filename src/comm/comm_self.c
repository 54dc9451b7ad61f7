/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference communicator: one rank, whose data is the result as it stands. */
#include "comm/comm.h"

#include <stdio.h>

static bool self_usable(const starlin__comm_setup_t *setup, char *why, size_t whysize)
{
    if (setup->bootstrap->nranks == 1)
        return true;
    snprintf(why, whysize, "it is for one rank only");
    return false;
}

static starlin_status_t self_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    if (setup->bootstrap->nranks != 1)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "communicator self needs one rank, there are %d",
                              setup->bootstrap->nranks);
    return starlin__comm_alloc(&starlin__comm_self_ops, setup, sizeof(starlin__comm_t), comm_p);
}

static void self_destroy(starlin__comm_t *comm)
{
    starlin__free(comm);
}

/* On a device the empty collective still carries the order from `after` to `done`. */
static starlin_status_t self_start(starlin__comm_t *comm, starlin__collective_t *collective)
{
    STARLIN__FORWARD(starlin__collective_check_in_place(comm, collective));
    if (comm->device == NULL)
        return STARLIN_SUCCESS;
    if (collective->after != NULL)
        STARLIN__FORWARD(
            comm->device->ops->event_wait(comm->device, collective->after, STARLIN__STREAM_COMM));
    return comm->device->ops->event_record(comm->device, collective->done, STARLIN__STREAM_COMM);
}

static starlin_status_t self_test(starlin__comm_t *comm, starlin__collective_t *collective, bool *done_p)
{
    if (comm->device != NULL)
        return comm->device->ops->event_query(comm->device, collective->done, done_p);
    *done_p = true;
    return STARLIN_SUCCESS;
}

static double self_predict_us(const starlin__comm_t *comm, starlin__collective_kind_t kind, double nbytes)
{
    (void)comm;
    (void)kind;
    (void)nbytes;
    return 0.0;
}

const starlin__comm_ops_t starlin__comm_self_ops = {
    .name = "self",
    .usable = self_usable,
    .create = self_create,
    .destroy = self_destroy,
    .start = self_start,
    .test = self_test,
    .predict_us = self_predict_us,
};
