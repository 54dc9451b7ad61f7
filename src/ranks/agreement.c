/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement at planning time: every rank shows what it is about to do, and a difference is an error with
 * the same text on every rank, before anything has started. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/operator.h"

void starlin__field_set(starlin__field_t *field, const char *name, const char *format, ...)
{
    va_list arguments;

    memset(field, 0, sizeof *field);
    snprintf(field->name, sizeof field->name, "%s", name);
    va_start(arguments, format);
    vsnprintf(field->value, sizeof field->value, format, arguments);
    va_end(arguments);
}

static starlin_status_t compare(const starlin__field_t *all, size_t nfields, int nranks)
{
    for (size_t i = 0; i < nfields; i++) {
        for (int rank = 1; rank < nranks; rank++) {
            const starlin__field_t *first = &all[i], *other = &all[(size_t)rank * nfields + i];
            if (memcmp(first, other, sizeof *first) == 0)
                continue;
            if (strcmp(first->name, other->name) != 0)
                return starlin__error(STARLIN_ERR_MISMATCH, "ranks disagree: rank 0 compares %s, rank %d %s",
                                      first->name, rank, other->name);
            return starlin__error(STARLIN_ERR_MISMATCH,
                                  "ranks disagree: %s is %s on rank 0 and %s on rank %d", first->name,
                                  first->value, other->value, rank);
        }
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__agree(starlin_context_t *context, const starlin__field_t *fields, size_t nfields)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    size_t nbytes = nfields * sizeof *fields;
    starlin__field_t *all;
    starlin_status_t status;

    if (bootstrap->nranks == 1)
        return STARLIN_SUCCESS;
    all = starlin__alloc(nbytes * (size_t)bootstrap->nranks);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "agreement of %d ranks", bootstrap->nranks);
    status = bootstrap->ops->allgather(bootstrap, fields, nbytes, all, context->config.timeout_ms);
    if (status == STARLIN_SUCCESS)
        status = compare(all, nfields, bootstrap->nranks);
    starlin__free(all);
    return status;
}
