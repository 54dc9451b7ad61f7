/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix: one piece of memory, one StarPU handle per row chunk. Handles keep their home where the memory
 * lies, so nothing is copied or evicted as long as tasks run there. */
#define _POSIX_C_SOURCE 200809L
#include "graph/matrix.h"
#include "starlin/starlin_starpu.h"

#include <limits.h>
#include <string.h>

void *starlin__buffer_data(void *interface, size_t *ld_p)
{
    *ld_p = 0;
    switch (*(enum starpu_data_interface_id *)interface) {
    case STARPU_MATRIX_INTERFACE_ID:
        *ld_p = STARPU_MATRIX_GET_LD(interface);
        return (void *)STARPU_MATRIX_GET_PTR(interface);
    case STARPU_VECTOR_INTERFACE_ID:
        return (void *)STARPU_VECTOR_GET_PTR(interface);
    case STARPU_VARIABLE_INTERFACE_ID:
        return (void *)STARPU_VARIABLE_GET_PTR(interface);
    default:
        return NULL;
    }
}

static starlin_status_t check_layout(starlin_context_t *context, const starlin_chunking_t *chunking,
                                     const starlin_matrix_layout_t *layout, int64_t *rows_p, int64_t *ld_p)
{
    int64_t rows, ld;

    if (context == NULL || layout == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", context == NULL ? "context" : "layout");
    if (starlin_dtype_nbytes(layout->dtype) == 0)
        return starlin__error(STARLIN_ERR_INVALID, "layout: dtype is %d, allowed are 0 (f32) to 3 (bf16)",
                              (int)layout->dtype);
    rows = layout->rows;
    if (chunking != NULL) {
        int64_t total = starlin_chunking_total_rows(chunking);
        if (rows != 0 && rows != total)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "layout: rows is %lld, the chunking has %lld (0 takes them from it)",
                                  (long long)rows, (long long)total);
        rows = total;
    }
    if (rows < 1 || layout->cols < 0)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: rows is %lld and cols %lld, at least 1 and 0 are needed",
                              (long long)rows, (long long)layout->cols);
    ld = layout->ld == 0 ? layout->cols : layout->ld;
    if (ld < layout->cols || ld > UINT32_MAX)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: ld is %lld, allowed are cols (%lld) to %lld, or 0 for cols",
                              (long long)layout->ld, (long long)layout->cols, (long long)UINT32_MAX);
    if (ld > 0 && rows > (int64_t)(PTRDIFF_MAX / 8) / ld)
        return starlin__error(STARLIN_ERR_INVALID, "layout: %lld rows of %lld elements overflow memory",
                              (long long)rows, (long long)ld);
    *rows_p = rows;
    *ld_p = ld;
    return STARLIN_SUCCESS;
}

/* StarPU counts a handle's elements in 32 bits. */
static starlin_status_t check_chunks(const starlin_matrix_t *matrix)
{
    for (size_t i = 0; i < matrix->nchunks; i++) {
        if (matrix->ld > 0 && matrix->chunk_rows[i] > UINT32_MAX / matrix->ld)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "chunk %zu has %lld rows of %lld elements: a chunk holds at most %lld "
                                  "elements, use more chunks",
                                  i, (long long)matrix->chunk_rows[i], (long long)matrix->ld,
                                  (long long)UINT32_MAX);
    }
    return STARLIN_SUCCESS;
}

static void matrix_free(starlin_matrix_t *matrix)
{
    starlin__trial_release(matrix->trial);
    starlin__free(matrix->chunk_rows);
    starlin__free(matrix->handles);
    starlin__free(matrix);
}

/* Everything but memory and handles. */
static starlin_status_t matrix_new(starlin_context_t *context, const starlin_chunking_t *chunking,
                                   const starlin_matrix_layout_t *layout, starlin_matrix_t **matrix_p)
{
    starlin_matrix_t *matrix;
    starlin_status_t status;
    int64_t rows = 0, ld = 0;

    STARLIN__FORWARD(check_layout(context, chunking, layout, &rows, &ld));
    matrix = starlin__alloc(sizeof *matrix);
    if (matrix == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "matrix");
    matrix->context = context;
    matrix->rows = rows;
    matrix->cols = layout->cols;
    matrix->ld = ld;
    matrix->dtype = layout->dtype;
    matrix->nchunks = chunking != NULL ? chunking->nchunks : 1;
    matrix->ctas = chunking != NULL ? chunking->ctas : 0;
    matrix->piece_rows = chunking != NULL ? chunking->piece_rows : 0;
    matrix->chunk_rows = starlin__alloc(matrix->nchunks * sizeof *matrix->chunk_rows);
    matrix->handles = starlin__alloc(matrix->nchunks * sizeof(starpu_data_handle_t));
    if (matrix->chunk_rows == NULL || matrix->handles == NULL) {
        matrix_free(matrix);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "matrix of %zu chunks",
                              chunking != NULL ? chunking->nchunks : 1);
    }
    matrix->trial = chunking != NULL ? starlin__trial_retain(chunking->trial) : NULL;
    if (chunking != NULL)
        memcpy(matrix->chunk_rows, chunking->rows, matrix->nchunks * sizeof *matrix->chunk_rows);
    else
        matrix->chunk_rows[0] = rows;
    status = check_chunks(matrix);
    if (status != STARLIN_SUCCESS) {
        matrix_free(matrix);
        return status;
    }
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

static void events_destroy(starlin_matrix_t *matrix)
{
    starlin__device_t *device = matrix->context->device;

    for (size_t i = 0; matrix->events != NULL && i < matrix->nchunks; i++) {
        if (matrix->events[i].compute != NULL)
            device->ops->event_destroy(device, matrix->events[i].compute);
        if (matrix->events[i].comm != NULL)
            device->ops->event_destroy(device, matrix->events[i].comm);
    }
    starlin__free(matrix->events);
    matrix->events = NULL;
}

static starlin_status_t events_create(starlin_matrix_t *matrix)
{
    starlin__device_t *device = matrix->context->device;
    starlin_status_t status = STARLIN_SUCCESS;

    matrix->events = starlin__alloc(matrix->nchunks * sizeof *matrix->events);
    if (matrix->events == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "events of %zu chunks", matrix->nchunks);
    for (size_t i = 0; i < matrix->nchunks && status == STARLIN_SUCCESS; i++) {
        status = device->ops->event_create(device, &matrix->events[i].compute);
        if (status == STARLIN_SUCCESS)
            status = device->ops->event_create(device, &matrix->events[i].comm);
    }
    if (status != STARLIN_SUCCESS)
        events_destroy(matrix);
    return status;
}

static void register_handles(starlin_matrix_t *matrix)
{
    size_t nbytes = starlin_dtype_nbytes(matrix->dtype);
    int node = matrix->space == STARLIN__DEVICE ? (int)matrix->context->memory_node : STARPU_MAIN_RAM;
    char *data = matrix->data;

    for (size_t i = 0; i < matrix->nchunks; i++) {
        if (matrix->cols == 0)
            starpu_void_data_register(&matrix->handles[i]);
        else
            starpu_matrix_data_register(&matrix->handles[i], node, (uintptr_t)data, (uint32_t)matrix->ld,
                                        (uint32_t)matrix->cols, (uint32_t)matrix->chunk_rows[i], nbytes);
        data += (size_t)(matrix->chunk_rows[i] * matrix->ld) * nbytes;
    }
    matrix->owns_handles = true;
}

static void count_matrix(starlin_matrix_t *matrix, int change)
{
    pthread_mutex_lock(&matrix->context->lock);
    matrix->context->nmatrices += (unsigned)change;
    pthread_mutex_unlock(&matrix->context->lock);
}

starlin_status_t starlin_matrix_create(starlin_context_t *context, const starlin_chunking_t *chunking,
                                       const starlin_matrix_layout_t *layout, starlin_matrix_t **matrix_p)
{
    starlin_matrix_t *matrix = NULL;
    starlin_status_t status;

    if (matrix_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "matrix_p is NULL");
    STARLIN__FORWARD(matrix_new(context, chunking, layout, &matrix));
    if (matrix->ld != matrix->cols) {
        matrix_free(matrix);
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: ld is %lld; a matrix in the library's memory is contiguous "
                              "(ld 0 or cols)",
                              (long long)layout->ld);
    }
    status = starlin__matrix_memory_create(matrix, chunking != NULL);
    if (status == STARLIN_SUCCESS && context->device != NULL)
        status = events_create(matrix);
    if (status != STARLIN_SUCCESS) {
        starlin__matrix_memory_free(matrix);
        matrix_free(matrix);
        return status;
    }
    register_handles(matrix);
    count_matrix(matrix, 1);
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__matrix_create_like(const starlin_matrix_t *model, starlin_dtype_t dtype,
                                             starlin_matrix_t **matrix_p)
{
    starlin_matrix_layout_t layout = {.cols = model->cols, .dtype = dtype};
    starlin_chunking_t *chunking = NULL;
    starlin_status_t status;

    STARLIN__FORWARD(starlin__chunking_create(model->chunk_rows, model->nchunks, NULL, &chunking));
    status = starlin_matrix_create(model->context, chunking, &layout, matrix_p);
    if (status == STARLIN_SUCCESS) { /* the caller knows nothing of it */
        (*matrix_p)->is_partial = true;
        count_matrix(*matrix_p, -1);
    }
    starlin_chunking_destroy(chunking);
    return status;
}

/* Shared by host and device memory of the caller. */
starlin_status_t starlin__matrix_wrap(starlin_context_t *context, const starlin_chunking_t *chunking,
                                      void *data, const starlin_matrix_layout_t *layout,
                                      starlin__space_t space, starlin_matrix_t **matrix_p)
{
    starlin_matrix_t *matrix = NULL;
    starlin_status_t status;

    if (matrix_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "matrix_p is NULL");
    STARLIN__FORWARD(matrix_new(context, chunking, layout, &matrix));
    if (data == NULL && matrix->cols > 0) {
        matrix_free(matrix);
        return starlin__error(STARLIN_ERR_INVALID, "data is NULL");
    }
    matrix->data = data;
    matrix->space = space;
    if (space == STARLIN__DEVICE) {
        status = events_create(matrix);
        if (status != STARLIN_SUCCESS) {
            matrix_free(matrix);
            return status;
        }
    }
    register_handles(matrix);
    count_matrix(matrix, 1);
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_matrix_wrap(starlin_context_t *context, const starlin_chunking_t *chunking,
                                     void *data, const starlin_matrix_layout_t *layout,
                                     starlin_matrix_t **matrix_p)
{
    return starlin__matrix_wrap(context, chunking, data, layout, STARLIN__HOST, matrix_p);
}

/* Elements of an application's handle, or -1 for an interface that is none of ours. */
static int64_t handle_elements(starpu_data_handle_t handle, size_t nbytes, int64_t *cols_p, bool *padded_p)
{
    *cols_p = 0;
    *padded_p = false;
    switch (starpu_data_get_interface_id(handle)) {
    case STARPU_MATRIX_INTERFACE_ID:
        if (starpu_matrix_get_elemsize(handle) != nbytes)
            return -1;
        *cols_p = starpu_matrix_get_nx(handle);
        *padded_p = starpu_matrix_get_local_ld(handle) != starpu_matrix_get_nx(handle);
        return (int64_t)starpu_matrix_get_nx(handle) * starpu_matrix_get_ny(handle);
    case STARPU_VECTOR_INTERFACE_ID:
        return starpu_vector_get_elemsize(handle) == nbytes ? (int64_t)starpu_vector_get_nx(handle) : -1;
    case STARPU_VARIABLE_INTERFACE_ID:
        return (int64_t)(starpu_variable_get_elemsize(handle) / nbytes);
    default:
        return -1;
    }
}

static starlin_status_t take_handles(starlin_matrix_t *matrix, const starpu_data_handle_t *handles)
{
    size_t nbytes = starlin_dtype_nbytes(matrix->dtype);

    for (size_t i = 0; i < matrix->nchunks; i++) {
        int64_t expected = matrix->chunk_rows[i] * matrix->cols, elements, cols;
        bool padded;
        if (handles[i] == NULL)
            return starlin__error(STARLIN_ERR_INVALID, "handle %zu is NULL", i);
        elements = handle_elements(handles[i], nbytes, &cols, &padded);
        if (elements < 0)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "handle %zu is no matrix, vector or variable of %zu-byte elements (%s)", i,
                                  nbytes, starlin_dtype_name(matrix->dtype));
        if (elements != expected || (cols != 0 && cols != matrix->cols))
            return starlin__error(
                STARLIN_ERR_INVALID,
                "handle %zu holds %lld elements in rows of %lld, expected %lld rows of %lld", i,
                (long long)elements, (long long)cols, (long long)matrix->chunk_rows[i],
                (long long)matrix->cols);
        if (padded)
            matrix->ld = starpu_matrix_get_local_ld(handles[i]);
        matrix->handles[i] = handles[i];
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_matrix_from_handles(starlin_context_t *context, const starlin_chunking_t *chunking,
                                             const starpu_data_handle_t *handles,
                                             const starlin_matrix_layout_t *layout,
                                             starlin_matrix_t **matrix_p)
{
    starlin_matrix_layout_t contiguous;
    starlin_matrix_t *matrix = NULL;
    starlin_status_t status;

    if (matrix_p == NULL || handles == NULL || layout == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL",
                              matrix_p == NULL  ? "matrix_p"
                              : handles == NULL ? "handles"
                                                : "layout");
    contiguous = *layout;
    contiguous.ld = 0;
    STARLIN__FORWARD(matrix_new(context, chunking, &contiguous, &matrix));
    status = take_handles(matrix, handles);
    if (status != STARLIN_SUCCESS) {
        matrix_free(matrix);
        return status;
    }
    matrix->exposed = true;
    count_matrix(matrix, 1);
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

static void unregister_handles(starlin_matrix_t *matrix)
{
    const starlin__device_t *device = matrix->context->device;
    void *caller = device != NULL ? device->ops->caller_take(device) : NULL;

    for (size_t i = 0; matrix->owns_handles && i < matrix->nchunks; i++)
        starpu_data_unregister(matrix->handles[i]);
    if (device != NULL)
        device->ops->caller_give_back(caller);
}

void starlin_matrix_destroy(starlin_matrix_t *matrix)
{
    if (matrix == NULL)
        return;
    (void)starlin__matrix_wait_launched(matrix);
    if (matrix->events != NULL)
        (void)starlin__context_synchronize(matrix->context);
    unregister_handles(matrix);
    starlin_matrix_destroy(matrix->partial);
    starlin__matrix_memory_free(matrix);
    events_destroy(matrix);
    if (!matrix->is_partial)
        count_matrix(matrix, -1);
    matrix_free(matrix);
}
