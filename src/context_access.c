/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a context and looking at it. */
#define _POSIX_C_SOURCE 200809L
#include "context.h"

#include <starpu.h>

starlin_status_t starlin_context_wait(starlin_context_t *context)
{
    starlin_status_t status;
    uint64_t sequence;

    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    starpu_do_schedule(); /* a policy may hold tasks back until it hears that no more will come */
    pthread_mutex_lock(&context->lock);
    while (context->inflight > 0)
        pthread_cond_wait(&context->idle, &context->lock);
    sequence = context->sequence;
    pthread_mutex_unlock(&context->lock);
    status = starlin__context_synchronize(context);
    if (status != STARLIN_SUCCESS)
        return status;
    return starlin__context_failure(context, sequence);
}

int starlin_context_rank(const starlin_context_t *context)
{
    return context != NULL ? context->bootstrap->rank : 0;
}

int starlin_context_nranks(const starlin_context_t *context)
{
    return context != NULL ? context->bootstrap->nranks : 0;
}

starlin_status_t starlin_context_get_info(const starlin_context_t *context, starlin_context_info_t *info_p)
{
    if (context == NULL || info_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", context == NULL ? "context" : "info_p");
    *info_p = context->info;
    return STARLIN_SUCCESS;
}
