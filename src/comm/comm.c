/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection of a communicator: a backend asked for by name must open, an automatic one may be passed over. */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

static void list_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; starlin__comm_registry[i] != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 starlin__comm_registry[i]->name);
}

starlin_status_t starlin__comm_check(const char *request)
{
    char names[128];
    size_t length = strcspn(request, ":");

    list_names(names, sizeof names);
    if (strcmp(request, "auto") == 0)
        return STARLIN_SUCCESS;
    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        const char *name = starlin__comm_registry[i]->name;
        if (strlen(name) != length || strncmp(name, request, length) != 0)
            continue;
        if (strcmp(name, "model") == 0) {
            starlin__model_config_t model;
            return starlin__model_config_parse(request[length] ? request + length + 1 : "", &model);
        }
        if (request[length] != '\0')
            return starlin__error(STARLIN_ERR_INVALID, "communicator \"%s\": \"%s\" takes no parameters",
                                  request, name);
        return STARLIN_SUCCESS;
    }
    return starlin__error(STARLIN_ERR_UNSUPPORTED,
                          "communicator \"%s\" is not in this build; built: auto, %s", request, names);
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
    const char *request = setup->config->comm;
    size_t length = strcspn(request, ":");

    STARLIN__FORWARD(starlin__comm_check(request));
    if (strcmp(request, "auto") == 0)
        return create_auto(setup, comm_p);
    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        const char *name = starlin__comm_registry[i]->name;
        if (strlen(name) == length && strncmp(name, request, length) == 0) {
            setup->parameters = request[length] ? request + length + 1 : "";
            return starlin__comm_registry[i]->create(setup, comm_p);
        }
    }
    return starlin__error(STARLIN_ERR_UNSUPPORTED, "communicator \"%s\" is not in this build", request);
}

starlin_status_t starlin__comm_prepare_ctas(starlin__comm_t *comm, unsigned ctas)
{
    return ctas != 0 && comm->ops->ctas_prepare != NULL ? comm->ops->ctas_prepare(comm, ctas)
                                                        : STARLIN_SUCCESS;
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
