/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link, for machines without peers: virtual ranks, one real rank whose data is the result as it
 * stands, and the time that a real link would take. On the host it is a timer that uses no core; one link
 * carries one collective at a time. */
#include "comm/comm.h"
#include "starlin/starlin_cuda.h"

#include <stdio.h>

typedef struct starlin__comm_model {
    starlin__comm_t base;
    starlin__model_config_t config;
    double busy_until_us;
} comm_model_t;

static bool model_usable(const starlin__comm_setup_t *setup, char *why, size_t whysize)
{
    (void)setup;
    snprintf(why, whysize, "only when asked for");
    return false;
}

static starlin_status_t model_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    unsigned max_ctas = setup->config->max_ctas;
    starlin__model_config_t config;
    comm_model_t *comm;

    STARLIN__FORWARD(starlin__model_config_parse(setup->parameters, &config));
    if (setup->bootstrap->nranks != 1)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "communicator model has virtual ranks and needs one process, there are %d",
                              setup->bootstrap->nranks);
    if (setup->device != NULL && starlin__model_launch == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "communicator model has no device part in this build");
    STARLIN__FORWARD(starlin__comm_alloc(&starlin__comm_model_ops, setup, sizeof *comm, comm_p));
    if (max_ctas != 0 && config.ctas > max_ctas)
        config.ctas = max_ctas;
    comm = (comm_model_t *)*comm_p;
    comm->base.nranks = (int)config.ranks;
    comm->base.ctas = config.ctas;
    comm->config = config;
    return STARLIN_SUCCESS;
}

static void model_destroy(starlin__comm_t *comm)
{
    starlin__free(comm);
}

/* An allreduce moves twice what its halves, a reduce-scatter and an all-gather, move. */
static double model_predict_us(const starlin__comm_t *base, starlin__collective_kind_t kind, double nbytes)
{
    return starlin__model_config_time_us(&((const comm_model_t *)base)->config,
                                         kind == STARLIN__ALLREDUCE ? nbytes : 0.5 * nbytes);
}

static starlin_status_t model_start(starlin__comm_t *base, starlin__collective_t *collective)
{
    comm_model_t *comm = (comm_model_t *)base;
    double time_us = model_predict_us(base, collective->kind, (double)starlin__collective_nbytes(collective));
    double start_us = starlin__now_us();

    STARLIN__FORWARD(starlin__collective_check_in_place(base, collective));
    if (base->device != NULL)
        return starlin__model_launch(base->device, collective, base->ctas, time_us);
    if (start_us < comm->busy_until_us)
        start_us = comm->busy_until_us;
    comm->busy_until_us = start_us + time_us;
    collective->opaque.numbers[0] = comm->busy_until_us;
    return STARLIN_SUCCESS;
}

static starlin_status_t model_test(starlin__comm_t *base, starlin__collective_t *collective, bool *done_p)
{
    if (base->device != NULL)
        return base->device->ops->event_query(base->device, collective->done, done_p);
    *done_p = starlin__now_us() >= collective->opaque.numbers[0];
    return STARLIN_SUCCESS;
}

static double model_wake_us(const starlin__comm_t *base, const starlin__collective_t *collective)
{
    return base->device != NULL ? 0.0 : collective->opaque.numbers[0];
}

int starlin_cuda_paced_copy(void *buffer, size_t nbytes, unsigned ctas, double time_us,
                            struct CUstream_st *stream)
{
    enum { NOT_SUPPORTED = 801 }; /* cudaErrorNotSupported */
    return starlin__paced_copy != NULL ? starlin__paced_copy(buffer, nbytes, ctas, time_us, stream)
                                       : NOT_SUPPORTED;
}

const starlin__comm_ops_t starlin__comm_model_ops = {
    .name = "model",
    .usable = model_usable,
    .create = model_create,
    .destroy = model_destroy,
    .start = model_start,
    .test = model_test,
    .predict_us = model_predict_us,
    .wake_us = model_wake_us,
};
