/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a matrix: the host's, the device's, or the communicator's where that makes sums faster. */
#define _POSIX_C_SOURCE 200809L
#include "matrix.h"

#include <starpu.h>

static size_t data_nbytes(const starlin_matrix_t *matrix)
{
    return (size_t)(matrix->rows * matrix->ld) * starlin_dtype_nbytes(matrix->dtype);
}

void starlin__matrix_memory_free(starlin_matrix_t *matrix)
{
    starlin_context_t *context = matrix->context;

    if (matrix->registration != NULL)
        context->comm->ops->buffer_deregister(context->comm, matrix->registration);
    if (!matrix->owns_data)
        return;
    if (matrix->comm_memory)
        context->comm->ops->buffer_free(context->comm, matrix->data);
    else if (matrix->space == STARLIN__DEVICE)
        context->device->ops->free(context->device, matrix->data);
    else
        starlin__free(matrix->data);
}

starlin_status_t starlin__matrix_memory_create(starlin_matrix_t *matrix, bool is_chunked)
{
    starlin_context_t *context = matrix->context;
    size_t nbytes = data_nbytes(matrix);

    const starlin__comm_ops_t *comm_ops = context->comm->ops;

    if (context->device != NULL) {
        matrix->space = STARLIN__DEVICE;
        matrix->comm_memory =
            is_chunked && comm_ops->buffer_alloc != NULL && context->comm->space == STARLIN__DEVICE;
    }
    if (matrix->comm_memory) {
        STARLIN__FORWARD(comm_ops->buffer_alloc(context->comm, nbytes + 1, &matrix->data));
    } else if (context->device != NULL) {
        STARLIN__FORWARD(context->device->ops->alloc(context->device, nbytes + 1, &matrix->data));
    } else {
        matrix->data = starlin__alloc(nbytes + 1);
        if (matrix->data == NULL)
            return starlin__error(STARLIN_ERR_NO_MEMORY, "matrix of %zu bytes", nbytes);
    }
    matrix->owns_data = true;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__matrix_register(starlin_matrix_t *matrix)
{
    starlin_context_t *context = matrix->context;
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    int32_t able = matrix->comm_memory && matrix->registration == NULL;

    if (context->comm->ops->buffer_register == NULL)
        return STARLIN_SUCCESS;
    /* a rank that registers waits for its peers, whose device may wait for a collective of this rank */
    starpu_do_schedule(); /* a policy may hold tasks back until it hears that no more will come */
    pthread_mutex_lock(&context->lock);
    while (context->inflight > 0)
        pthread_cond_wait(&context->idle, &context->lock);
    pthread_mutex_unlock(&context->lock);
    int32_t *all = starlin__alloc((size_t)bootstrap->nranks * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "registration of a matrix");
    starlin_status_t status =
        bootstrap->ops->allgather(bootstrap, &able, sizeof able, all, context->config.timeout_ms);
    for (int i = 0; i < bootstrap->nranks && status == STARLIN_SUCCESS; i++)
        able = able && all[i];
    starlin__free(all);
    if (status != STARLIN_SUCCESS || !able)
        return status;
    return context->comm->ops->buffer_register(context->comm, matrix->data, data_nbytes(matrix),
                                               &matrix->registration);
}
