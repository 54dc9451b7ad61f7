/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a matrix: the host's, the device's, or the communicator's where that makes sums faster. */
#define _POSIX_C_SOURCE 200809L
#include "graph/matrix.h"

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
        starlin__comm_host_free(context->comm, matrix->data);
}

starlin_status_t starlin__matrix_memory_create(starlin_matrix_t *matrix, bool is_chunked)
{
    starlin_context_t *context = matrix->context;
    const starlin__comm_ops_t *comm_ops = context->comm->ops;
    size_t nbytes = data_nbytes(matrix);

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

/* StarPU gives out pieces of up to 4 MB from blocks of 32 MB, and may keep one such block in hand. */
static const size_t starpu_block_nbytes = (size_t)32 << 20, starpu_piece_nbytes = (size_t)4 << 20;

static size_t largest_chunk_nbytes(const starlin_matrix_t *matrix)
{
    int64_t rows = 0;
    for (size_t i = 0; i < matrix->nchunks; i++)
        rows = matrix->chunk_rows[i] > rows ? matrix->chunk_rows[i] : rows;
    return (size_t)(rows * matrix->cols) * starlin_dtype_nbytes(matrix->dtype);
}

/* What StarPU can have: its limit, and no more than there is beside the library's own memory. */
static starlin_status_t starpu_room(const starlin_context_t *context, size_t *nbytes_p)
{
    starpu_ssize_t total = starpu_memory_get_total(context->memory_node),
                   available = starpu_memory_get_available(context->memory_node);
    size_t used = total > available ? (size_t)(total - available) : 0, free_nbytes = 0;

    STARLIN__FORWARD(context->device->ops->free_nbytes(context->device, &free_nbytes));
    *nbytes_p = free_nbytes + used;
    if (total >= 0 && (size_t)total < *nbytes_p)
        *nbytes_p = (size_t)total;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__matrix_check_room(starlin_matrix_t *const matrices[3])
{
    const starlin_context_t *context = matrices[0]->context;
    size_t pieces = 1, needed = 0, room = 0;
    bool is_moved = false;

    for (int i = 0; context->device != NULL && i < 3; i++) {
        size_t nbytes = matrices[i]->space == STARLIN__HOST ? largest_chunk_nbytes(matrices[i]) : 0;
        is_moved = is_moved || nbytes > 0;
        *(nbytes > starpu_piece_nbytes ? &needed : &pieces) += nbytes;
    }
    if (!is_moved)
        return STARLIN_SUCCESS;
    needed += (pieces + starpu_block_nbytes - 1) / starpu_block_nbytes * starpu_block_nbytes;
    STARLIN__FORWARD(starpu_room(context, &room));
    if (needed <= room)
        return STARLIN_SUCCESS;
    return starlin__error(
        STARLIN_ERR_NO_MEMORY,
        "one chunk of matrices in host memory needs %zu bytes on device %u, StarPU can have "
        "%zu (STARPU_LIMIT_CUDA_MEM limits that): use more chunks or device memory",
        needed, context->device->index, room);
}

starlin_status_t starlin__matrix_register(starlin_matrix_t *matrix)
{
    starlin_context_t *context = matrix->context;
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    int32_t able = matrix->comm_memory && matrix->registration == NULL, *all;
    starlin_status_t status;

    if (context->comm->ops->buffer_register == NULL)
        return STARLIN_SUCCESS;
    /* a rank that registers waits for its peers, whose device may wait for a collective of this rank */
    starlin__context_drain(context);
    all = starlin__alloc((size_t)bootstrap->nranks * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "registration of a matrix");
    status = bootstrap->ops->allgather(bootstrap, &able, sizeof able, all, context->config.timeout_ms);
    for (int i = 0; i < bootstrap->nranks && status == STARLIN_SUCCESS; i++)
        able = able && all[i];
    starlin__free(all);
    if (status != STARLIN_SUCCESS || !able)
        return status;
    return context->comm->ops->buffer_register(context->comm, matrix->data, data_nbytes(matrix),
                                               &matrix->registration);
}
