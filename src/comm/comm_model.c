/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link, for machines without peers: virtual ranks, the sum over one rank, and the time that
 * a real link would take. On the host it is a timer that uses no core; one link carries one collective at a
 * time. */
#include "comm/comm_model.h"

#include <stdio.h>

typedef struct starlin__comm_model {
    starlin__comm_t base;
    starlin__model_config_t config;
    unsigned max_ctas; /* 0: any */
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
    starlin__model_config_t config;
    comm_model_t *comm;
    unsigned max_ctas;

    STARLIN__FORWARD(starlin__model_config_parse(setup->parameters, &config));
    if (setup->bootstrap->nranks != 1)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "communicator model has virtual ranks and needs one process, there are %d",
                              setup->bootstrap->nranks);
    if (setup->device != NULL && starlin__model_device == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "communicator model has no device part in this build");
    max_ctas = setup->config->max_ctas;
    if (max_ctas != 0 && config.ctas > max_ctas)
        config.ctas = max_ctas;
    comm = starlin__alloc(sizeof *comm);
    if (comm == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "communicator model");
    comm->base.ops = &starlin__comm_model_ops;
    comm->base.space = setup->device != NULL ? STARLIN__DEVICE : STARLIN__HOST;
    comm->base.device = setup->device;
    comm->base.nranks = (int)config.ranks;
    comm->base.ctas = config.ctas;
    comm->config = config;
    comm->max_ctas = max_ctas;
    *comm_p = &comm->base;
    return STARLIN_SUCCESS;
}

static void model_destroy(starlin__comm_t *comm)
{
    starlin__free(comm);
}

static starlin_status_t model_start(starlin__comm_t *base, starlin__allreduce_t *request)
{
    comm_model_t *comm = (comm_model_t *)base;
    size_t nbytes = request->count * starlin_dtype_nbytes(request->dtype);
    double start_us = starlin__now_us();

    if (base->device != NULL)
        return starlin__model_device->start(base->device, request, nbytes, &comm->config);
    if (start_us < comm->busy_until_us)
        start_us = comm->busy_until_us;
    comm->busy_until_us = start_us + starlin__model_config_time_us(&comm->config, (double)nbytes);
    request->opaque.numbers[0] = comm->busy_until_us;
    return STARLIN_SUCCESS;
}

static starlin_status_t model_test(starlin__comm_t *base, starlin__allreduce_t *request, bool *done_p)
{
    if (base->device != NULL)
        return base->device->ops->event_query(base->device, request->done, done_p);
    *done_p = starlin__now_us() >= request->opaque.numbers[0];
    return STARLIN_SUCCESS;
}

static double model_wake_us(const starlin__comm_t *base, const starlin__allreduce_t *request)
{
    return base->device != NULL ? 0.0 : request->opaque.numbers[0];
}

/* A link whose thread blocks were not named works with any number that can keep up with it. */
static size_t model_ctas_choices(const starlin__comm_t *base, unsigned *ctas, size_t most)
{
    static const unsigned choices[] = {2, 4, 8, 16, 24};
    const comm_model_t *comm = (const comm_model_t *)base;
    size_t count = 0;

    if (base->device == NULL || comm->config.ctas_given)
        return 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0] && count < most; i++) {
        if ((comm->max_ctas == 0 || choices[i] <= comm->max_ctas) && choices[i] != comm->config.ctas)
            ctas[count++] = choices[i];
    }
    return count;
}

static double model_predict_us(const starlin__comm_t *base, double nbytes)
{
    return starlin__model_config_time_us(&((const comm_model_t *)base)->config, nbytes);
}

const starlin__comm_ops_t starlin__comm_model_ops = {
    .name = "model",
    .usable = model_usable,
    .create = model_create,
    .destroy = model_destroy,
    .allreduce_start = model_start,
    .allreduce_test = model_test,
    .ctas_choices = model_ctas_choices,
    .predict_us = model_predict_us,
    .wake_us = model_wake_us,
};
