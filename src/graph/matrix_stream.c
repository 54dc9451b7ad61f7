/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices and streams of a caller that works on the device itself. */
#define _POSIX_C_SOURCE 200809L
#include "graph/matrix.h"
#include "starlin/starlin_cuda.h"

static starlin_status_t check_device(const starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    if (context->device == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "the context computes on the host (%s): it has no device memory or streams",
                              context->info.compute);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_matrix_wrap_device(starlin_context_t *context, const starlin_chunking_t *chunking,
                                            void *device_data, const starlin_matrix_layout_t *layout,
                                            starlin_matrix_t **matrix_p)
{
    STARLIN__FORWARD(check_device(context));
    return starlin__matrix_wrap(context, chunking, device_data, layout, STARLIN__DEVICE, matrix_p);
}

starlin_status_t starlin_cuda_operators_wait_stream(starlin_context_t *context, struct CUstream_st *stream)
{
    STARLIN__FORWARD(check_device(context));
    return context->device->ops->join(context->device, stream);
}

starlin_status_t starlin_cuda_stream_wait_matrix(struct CUstream_st *stream, starlin_matrix_t *matrix)
{
    starlin_context_t *context;
    starlin__device_t *device;
    uint64_t sequence;

    if (matrix == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "matrix is NULL");
    context = matrix->context;
    STARLIN__FORWARD(check_device(context));
    if (matrix->events == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "the memory of the matrix is not on the device");
    sequence = starlin__matrix_wait_launched(matrix);
    device = context->device;
    if (matrix->is_read) /* all that was launched so far stands for the readers */
        STARLIN__FORWARD(
            device->ops->event_record(device, matrix->events[0].compute, STARLIN__STREAM_COMPUTE));
    for (size_t i = 0; i < matrix->nchunks; i++) {
        STARLIN__FORWARD(device->ops->event_wait_foreign(device, matrix->events[i].compute, stream));
        STARLIN__FORWARD(device->ops->event_wait_foreign(device, matrix->events[i].comm, stream));
    }
    return starlin__context_failure(context, sequence);
}
