/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection of a communicator: a backend asked for by name must open, an automatic one may be passed over. */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

const char *starlin__collective_name(starlin__collective_kind_t kind)
{
    static const char *const names[STARLIN__NCOLLECTIVES] = {"allreduce", "allgather", "reduce_scatter"};
    return names[kind];
}

void starlin__collective_release(starlin__collective_t *collective)
{
    if (!collective->inflight)
        starlin__free(collective->counts);
    collective->counts = NULL;
    collective->ncounts = 0;
}

starlin_status_t starlin__comm_alloc(const starlin__comm_ops_t *ops, const starlin__comm_setup_t *setup,
                                     size_t nbytes, starlin__comm_t **comm_p)
{
    starlin__comm_t *comm = starlin__alloc(nbytes);

    if (comm == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for communicator %s", ops->name);
    comm->ops = ops;
    comm->device = setup->device;
    comm->space = setup->device != NULL ? STARLIN__DEVICE : STARLIN__HOST;
    comm->nranks = setup->bootstrap->nranks;
    *comm_p = comm;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__collective_check_in_place(const starlin__comm_t *comm,
                                                    const starlin__collective_t *collective)
{
    if (collective->send == collective->recv)
        return STARLIN_SUCCESS;
    return starlin__error(STARLIN_ERR_INVALID,
                          "communicator %s: %s from one buffer to another: with one rank it is in place",
                          comm->ops->name, starlin__collective_name(collective->kind));
}

static void list_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; starlin__comm_registry[i] != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 starlin__comm_registry[i]->name);
}

/* The backend that "name" or "name:parameters" asks for; NULL for "auto". */
static starlin_status_t find(const char *request, const starlin__comm_ops_t **ops_p,
                             const char **parameters_p)
{
    char names[128];
    size_t length = strcspn(request, ":");

    *ops_p = NULL;
    *parameters_p = request[length] != '\0' ? request + length + 1 : "";
    if (strcmp(request, "auto") == 0)
        return STARLIN_SUCCESS;
    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        const char *name = starlin__comm_registry[i]->name;
        if (strlen(name) == length && strncmp(name, request, length) == 0) {
            *ops_p = starlin__comm_registry[i];
            return STARLIN_SUCCESS;
        }
    }
    list_names(names, sizeof names);
    return starlin__error(STARLIN_ERR_UNSUPPORTED,
                          "communicator \"%s\" is not in this build; built: auto, %s", request, names);
}

starlin_status_t starlin__comm_check(const char *request)
{
    const starlin__comm_ops_t *ops;
    const char *parameters;
    starlin__model_config_t model;

    STARLIN__FORWARD(find(request, &ops, &parameters));
    if (ops == &starlin__comm_model_ops)
        return starlin__model_config_parse(parameters, &model);
    if (ops != NULL && strchr(request, ':') != NULL)
        return starlin__error(STARLIN_ERR_INVALID, "communicator \"%s\": \"%s\" takes no parameters", request,
                              ops->name);
    return STARLIN_SUCCESS;
}

static starlin_status_t create_auto(starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    char why[160], reasons[512] = "";
    size_t used = 0;

    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        const starlin__comm_ops_t *ops = starlin__comm_registry[i];
        why[0] = '\0';
        if (ops->usable(setup, why, sizeof why)) {
            setup->parameters = "";
            return ops->create(setup, comm_p);
        }
        starlin__log("communicator %s passed over: %s", ops->name, why);
        if (used < sizeof reasons)
            used += (size_t)snprintf(reasons + used, sizeof reasons - used, "%s%s: %s", used ? "; " : "",
                                     ops->name, why);
    }
    return starlin__error(STARLIN_ERR_UNSUPPORTED, "no communicator fits %d ranks (%s)",
                          setup->bootstrap->nranks, reasons);
}

starlin_status_t starlin__comm_create(starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    const starlin__comm_ops_t *ops;

    STARLIN__FORWARD(starlin__comm_check(setup->config->comm));
    STARLIN__FORWARD(find(setup->config->comm, &ops, &setup->parameters));
    return ops != NULL ? ops->create(setup, comm_p) : create_auto(setup, comm_p);
}

void starlin__comm_destroy(starlin__comm_t *comm)
{
    if (comm != NULL)
        comm->ops->destroy(comm);
}

void starlin__comm_host_free(const starlin__comm_t *comm, void *memory)
{
    if (!comm->given_up)
        starlin__free(memory);
}
