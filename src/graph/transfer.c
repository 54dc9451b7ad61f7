/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix's contents from outside: waiting for it, copies to and from the host, order with the caller's
 * streams. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "graph/graph.h"
#include "starlin/starlin_cuda.h"

uint64_t starlin__matrix_wait_launched(starlin_matrix_t *matrix)
{
    starlin_context_t *context = matrix->context;
    uint64_t sequence;

    starlin__graph_flush(context);
    starpu_do_schedule(); /* a policy may hold tasks back until it hears that no more will come */
    pthread_mutex_lock(&context->lock);
    while (matrix->inflight > 0)
        pthread_cond_wait(&context->idle, &context->lock);
    starlin__context_waited(context);
    sequence = matrix->last_sequence;
    pthread_mutex_unlock(&context->lock);
    return sequence;
}

starlin_status_t starlin__matrix_wait_operators(starlin_matrix_t *matrix)
{
    uint64_t sequence = starlin__matrix_wait_launched(matrix);

    if (matrix->events != NULL)
        STARLIN__FORWARD(starlin__context_synchronize(matrix->context));
    return starlin__context_failure(matrix->context, sequence);
}

/* In main memory, wherever the handle's home is, where it must be released too. */
static starlin_status_t acquire(starlin_matrix_t *matrix, size_t i, enum starpu_data_access_mode mode)
{
    const starlin__device_t *device = matrix->context->device;
    void *caller = device != NULL ? device->ops->caller_take(device) : NULL;
    int ret = starpu_data_acquire_on_node(matrix->handles[i], STARPU_MAIN_RAM, mode);

    if (device != NULL)
        device->ops->caller_give_back(caller);
    if (ret != 0)
        return starlin__error(STARLIN_ERR_RUNTIME, "starpu_data_acquire_on_node of chunk %zu returned %d", i,
                              ret);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_matrix_wait(starlin_matrix_t *matrix)
{
    if (matrix == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "matrix is NULL");
    STARLIN__FORWARD(starlin__matrix_wait_operators(matrix));
    /* on a device StarPU brings wrapped host memory up to date only when asked */
    for (size_t i = 0;
         matrix->context->device != NULL && matrix->space == STARLIN__HOST && i < matrix->nchunks; i++) {
        STARLIN__FORWARD(acquire(matrix, i, STARPU_R));
        starpu_data_release_on_node(matrix->handles[i], STARPU_MAIN_RAM);
    }
    return STARLIN_SUCCESS;
}

/* --- copies */

typedef struct copy {
    starlin_matrix_t *matrix;
    char *host;   /* this rank's rows, in order */
    size_t pitch; /* of the host's rows, in bytes */
    bool reads;
} copy_t;

static void copy_rows(const copy_t *copy, char *host, const starlin__view_t *view)
{
    size_t nbytes = starlin_dtype_nbytes(view->dtype), width = (size_t)view->cols * nbytes;
    char *data = view->data;

    for (int64_t i = 0; i < view->rows; i++) {
        char *own = data + (size_t)(i * view->ld) * nbytes, *theirs = host + (size_t)i * copy->pitch;
        if (copy->reads)
            memcpy(theirs, own, width);
        else
            memcpy(own, theirs, width);
    }
}

static starlin_status_t copy_device(const copy_t *copy, char *host, const starlin__view_t *view)
{
    starlin__device_t *device = copy->matrix->context->device;
    size_t nbytes = starlin_dtype_nbytes(view->dtype), width = (size_t)view->cols * nbytes,
           pitch = (size_t)view->ld * nbytes, rows = (size_t)view->rows;

    return copy->reads ? device->ops->copy(device, host, copy->pitch, view->data, pitch, width, rows)
                       : device->ops->copy(device, view->data, pitch, host, copy->pitch, width, rows);
}

/* Each run to its place among this rank's rows. */
static starlin_status_t copy_runs(const copy_t *copy, size_t chunk, void *base, int64_t ld, bool on_device)
{
    const starlin_matrix_t *matrix = copy->matrix;
    const starlin__rows_t *rows = matrix->rows;
    bool is_block = matrix->placement == STARLIN_SHARD_ROWS;
    unsigned nruns = rows == NULL || is_block ? 1 : rows->nblocks;

    for (unsigned run = 0; run < nruns; run++) {
        starlin__view_t view = starlin__matrix_run(matrix, chunk, run, nruns, base, ld);
        int64_t first = rows == NULL ? 0
                        : is_block   ? rows->run_first[chunk * rows->nblocks + rows->block] -
                                         starlin__block_first(rows->m, rows->nblocks, rows->block)
                                   : rows->run_first[chunk * rows->nblocks + run];
        char *host = copy->host + (size_t)first * copy->pitch;
        if (view.rows == 0)
            continue;
        if (on_device)
            STARLIN__FORWARD(copy_device(copy, host, &view));
        else
            copy_rows(copy, host, &view);
    }
    return STARLIN_SUCCESS;
}

/* Chunks that the application's tasks may have touched, or that StarPU keeps coherent between host and
 * device, are accessed through StarPU; our own device memory directly. */
static starlin_status_t copy_chunk(const copy_t *copy, size_t i)
{
    starlin_matrix_t *matrix = copy->matrix;
    starlin_status_t status;
    int64_t ld;
    void *base;

    if (starlin__matrix_chunk_rows(matrix, i) == 0)
        return STARLIN_SUCCESS;
    if (matrix->space == STARLIN__DEVICE && !matrix->root->exposed)
        return copy_runs(copy, i, starlin__matrix_chunk_data(matrix, i), 0, true);
    STARLIN__FORWARD(acquire(matrix, i, copy->reads ? STARPU_R : STARPU_W));
    if (matrix->cols > 0 && starlin__matrix_is_contiguous(matrix)) {
        base =
            starlin__buffer_data(starpu_data_get_interface_on_node(matrix->handles[i], STARPU_MAIN_RAM), &ld);
    } else { /* runs lie in the caller's memory; an empty chunk's handle has no interface to read */
        base = starlin__matrix_chunk_data(matrix, i);
        ld = 0;
    }
    status = copy_runs(copy, i, base, ld, false);
    starpu_data_release_on_node(matrix->handles[i], STARPU_MAIN_RAM);
    return status;
}

static starlin_status_t copy_matrix(starlin_matrix_t *matrix, char *host, int64_t ld, bool reads)
{
    copy_t copy = {.matrix = matrix, .host = host, .reads = reads};

    if (matrix == NULL || host == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", matrix == NULL ? "matrix" : "host");
    if (ld == 0)
        ld = matrix->cols;
    if (ld < matrix->cols || (ld > 0 && matrix->local_rows > (int64_t)(PTRDIFF_MAX / 8) / ld))
        return starlin__error(STARLIN_ERR_INVALID, "ld is %lld for %lld rows of %lld columns", (long long)ld,
                              (long long)matrix->local_rows, (long long)matrix->cols);
    STARLIN__FORWARD(starlin__matrix_wait_operators(matrix));
    copy.pitch = (size_t)ld * starlin_dtype_nbytes(matrix->dtype);
    for (size_t i = 0; matrix->cols > 0 && i < matrix->nchunks; i++)
        STARLIN__FORWARD(copy_chunk(&copy, i));
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_matrix_read(starlin_matrix_t *matrix, void *host, int64_t ld)
{
    return copy_matrix(matrix, host, ld, true);
}

starlin_status_t starlin_matrix_write(starlin_matrix_t *matrix, const void *host, int64_t ld)
{
    return copy_matrix(matrix, (char *)(uintptr_t)host, ld, false);
}

/* --- the caller's streams */

static starlin_status_t check_device(const starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    if (context->device == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "the context computes on the host (%s): it has no streams",
                              context->info.compute);
    return STARLIN_SUCCESS;
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
    if (matrix->root->is_read) /* all that was launched so far stands for the readers */
        STARLIN__FORWARD(
            device->ops->event_record(device, matrix->events[0].compute, STARLIN__STREAM_COMPUTE));
    for (size_t i = 0; i < matrix->nchunks; i++) {
        STARLIN__FORWARD(device->ops->event_wait_foreign(device, matrix->events[i].compute, stream));
        STARLIN__FORWARD(device->ops->event_wait_foreign(device, matrix->events[i].comm, stream));
    }
    return starlin__context_failure(context, sequence);
}
