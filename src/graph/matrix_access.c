/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a matrix, and its contents from outside: copies, pointer, handles. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "graph/matrix.h"
#include "starlin/starlin_starpu.h"

/* Chunks that the application's tasks may have touched, or that StarPU keeps coherent between host and
 * device, are accessed through StarPU; our own device memory directly. */
static bool goes_through_starpu(const starlin_matrix_t *matrix)
{
    return matrix->exposed || matrix->space == STARLIN__HOST;
}

void *starlin__matrix_chunk_data(const starlin_matrix_t *matrix, size_t chunk)
{
    int64_t first = 0;

    for (size_t i = 0; i < chunk; i++)
        first += matrix->chunk_rows[i];
    return (char *)matrix->data + (size_t)(first * matrix->ld) * starlin_dtype_nbytes(matrix->dtype);
}

uint64_t starlin__matrix_wait_launched(starlin_matrix_t *matrix)
{
    starlin_context_t *context = matrix->context;
    uint64_t sequence;

    starpu_do_schedule(); /* a policy may hold tasks back until it hears that no more will come */
    pthread_mutex_lock(&context->lock);
    while (matrix->inflight > 0)
        pthread_cond_wait(&context->idle, &context->lock);
    starlin__context_waited(context);
    sequence = matrix->last_sequence;
    pthread_mutex_unlock(&context->lock);
    return sequence;
}

static starlin_status_t wait_operators(starlin_matrix_t *matrix)
{
    uint64_t sequence = starlin__matrix_wait_launched(matrix);

    if (matrix->events != NULL)
        STARLIN__FORWARD(starlin__context_synchronize(matrix->context));
    if (matrix->events != NULL || matrix->context->device == NULL) /* else the device may still be busy */
        starlin__step_end(matrix->context);
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
    STARLIN__FORWARD(wait_operators(matrix));
    /* on a device StarPU brings wrapped host memory up to date only when asked */
    for (size_t i = 0;
         matrix->context->device != NULL && matrix->space == STARLIN__HOST && i < matrix->nchunks; i++) {
        STARLIN__FORWARD(acquire(matrix, i, STARPU_R));
        starpu_data_release_on_node(matrix->handles[i], STARPU_MAIN_RAM);
    }
    return STARLIN_SUCCESS;
}

static void copy_rows(char *dst, size_t dst_pitch, const char *src, size_t src_pitch, size_t width,
                      int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(dst + (size_t)i * dst_pitch, src + (size_t)i * src_pitch, width);
}

/* One chunk to (`reads`) or from host memory, through StarPU's coherence. */
static starlin_status_t copy_chunk(starlin_matrix_t *matrix, size_t i, char *host, size_t pitch, bool reads)
{
    size_t nbytes = starlin_dtype_nbytes(matrix->dtype), width = (size_t)matrix->cols * nbytes, ld;
    char *data;

    if (width == 0) /* the data of an empty slice has no interface to look into */
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(acquire(matrix, i, reads ? STARPU_R : STARPU_W));
    data = starlin__buffer_data(starpu_data_get_interface_on_node(matrix->handles[i], STARPU_MAIN_RAM), &ld);
    ld = (ld == 0 ? (size_t)matrix->cols : ld) * nbytes;
    if (reads)
        copy_rows(host, pitch, data, ld, width, matrix->chunk_rows[i]);
    else
        copy_rows(data, ld, host, pitch, width, matrix->chunk_rows[i]);
    starpu_data_release_on_node(matrix->handles[i], STARPU_MAIN_RAM);
    return STARLIN_SUCCESS;
}

static starlin_status_t copy_matrix(starlin_matrix_t *matrix, char *host, int64_t ld, bool reads)
{
    starlin__device_t *device;
    size_t nbytes, pitch, width;

    if (matrix == NULL || host == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", matrix == NULL ? "matrix" : "host");
    if (ld == 0)
        ld = matrix->cols;
    if (ld < matrix->cols || (ld > 0 && matrix->rows > (int64_t)(PTRDIFF_MAX / 8) / ld))
        return starlin__error(STARLIN_ERR_INVALID, "ld is %lld for %lld rows of %lld columns", (long long)ld,
                              (long long)matrix->rows, (long long)matrix->cols);
    STARLIN__FORWARD(wait_operators(matrix));
    if (matrix->cols == 0)
        return STARLIN_SUCCESS;
    nbytes = starlin_dtype_nbytes(matrix->dtype);
    pitch = (size_t)ld * nbytes;
    width = (size_t)matrix->cols * nbytes;
    device = matrix->context->device;
    if (!goes_through_starpu(matrix)) {
        size_t own = (size_t)matrix->ld * nbytes;
        return reads ? device->ops->copy(device, host, pitch, matrix->data, own, width, (size_t)matrix->rows)
                     : device->ops->copy(device, matrix->data, own, host, pitch, width, (size_t)matrix->rows);
    }
    for (size_t i = 0; i < matrix->nchunks; i++) {
        STARLIN__FORWARD(copy_chunk(matrix, i, host, pitch, reads));
        host += (size_t)matrix->chunk_rows[i] * pitch;
    }
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

void *starlin_matrix_data(const starlin_matrix_t *matrix)
{
    return matrix != NULL ? matrix->data : NULL;
}

starpu_data_handle_t starlin_matrix_chunk_handle(starlin_matrix_t *matrix, size_t i)
{
    if (matrix == NULL || i >= matrix->nchunks)
        return NULL;
    /* what was launched without a task that ends with it must be over before foreign tasks see the data */
    if (!matrix->exposed && matrix->events != NULL)
        (void)wait_operators(matrix);
    matrix->exposed = true;
    return matrix->handles[i];
}
