/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix: one area of memory, one StarPU handle per chunk. Handles keep their home where the memory
 * lies, so nothing is copied or evicted as long as tasks run there. The library's own memory holds the rows
 * chunk by chunk, so that each chunk is contiguous; the caller's holds them in order, so that with several
 * blocks a chunk is a run of rows per block. */
#define _POSIX_C_SOURCE 200809L
#include "graph/matrix.h"

#include <limits.h>
#include <string.h>

#include "starlin/starlin_cuda.h"
#include "starlin/starlin_starpu.h"

void *starlin__buffer_data(void *interface, int64_t *ld_p)
{
    *ld_p = 0;
    switch (*(enum starpu_data_interface_id *)interface) {
    case STARPU_MATRIX_INTERFACE_ID:
        *ld_p = STARPU_MATRIX_GET_LD(interface);
        return (void *)STARPU_MATRIX_GET_PTR(interface);
    case STARPU_BLOCK_INTERFACE_ID:
        *ld_p = STARPU_BLOCK_GET_LDY(interface);
        return (void *)STARPU_BLOCK_GET_PTR(interface);
    case STARPU_VECTOR_INTERFACE_ID:
        return (void *)STARPU_VECTOR_GET_PTR(interface);
    case STARPU_VARIABLE_INTERFACE_ID:
        return (void *)STARPU_VARIABLE_GET_PTR(interface);
    default:
        return NULL;
    }
}

/* --- where rows lie */

/* This rank's block alone? */
static bool is_block(const starlin_matrix_t *matrix)
{
    return matrix->placement == STARLIN_SHARD_ROWS;
}

int64_t starlin__matrix_chunk_rows(const starlin_matrix_t *matrix, size_t chunk)
{
    const starlin__rows_t *rows = matrix->rows;

    if (rows == NULL)
        return matrix->local_rows;
    return is_block(matrix) ? rows->run_rows[chunk * rows->nblocks + rows->block] : rows->chunk_rows[chunk];
}

bool starlin__matrix_is_contiguous(const starlin_matrix_t *matrix)
{
    return matrix->rows == NULL || !matrix->ordered || is_block(matrix) || matrix->rows->nblocks == 1 ||
           matrix->nchunks == 1;
}

/* Rows of the matrix's memory that lie before the chunk's first run. */
static int64_t first_row(const starlin_matrix_t *matrix, size_t chunk)
{
    const starlin__rows_t *rows = matrix->rows;

    if (rows == NULL)
        return 0;
    if (is_block(matrix))
        return rows->run_first[chunk * rows->nblocks + rows->block] -
               starlin__block_first(rows->m, rows->nblocks, rows->block);
    return matrix->ordered ? rows->run_first[chunk * rows->nblocks] : rows->chunk_first[chunk];
}

static size_t row_nbytes(const starlin_matrix_t *matrix, int64_t ld)
{
    return (size_t)ld * starlin_dtype_nbytes(matrix->dtype);
}

void *starlin__matrix_chunk_data(const starlin_matrix_t *matrix, size_t chunk)
{
    if (matrix->data == NULL)
        return NULL;
    return (char *)matrix->data + (size_t)first_row(matrix, chunk) * row_nbytes(matrix, matrix->ld);
}

starlin__view_t starlin__matrix_run(const starlin_matrix_t *matrix, size_t chunk, unsigned run,
                                    unsigned nruns, void *base, int64_t ld)
{
    const starlin__rows_t *rows = matrix->rows;
    starlin__view_t view = {.data = base,
                            .rows = starlin__matrix_chunk_rows(matrix, chunk),
                            .cols = matrix->cols,
                            .ld = ld != 0 ? ld : matrix->ld,
                            .dtype = matrix->dtype};
    int64_t before = 0;

    if (nruns == 1 || rows == NULL)
        return view;
    view.rows = rows->run_rows[chunk * rows->nblocks + run];
    if (starlin__matrix_is_contiguous(matrix)) {
        for (unsigned b = 0; b < run; b++)
            before += rows->run_rows[chunk * rows->nblocks + b];
    } else {
        before = rows->run_first[chunk * rows->nblocks + run] - rows->run_first[chunk * rows->nblocks];
    }
    if (base != NULL)
        view.data = (char *)base + (size_t)before * row_nbytes(matrix, view.ld);
    return view;
}

/* --- checks */

static starlin_status_t check_layout(starlin_context_t *context, const starlin__rows_t *list,
                                     const starlin_matrix_layout_t *layout)
{
    int64_t rows = list != NULL ? list->m : layout->rows, ld = layout->ld == 0 ? layout->cols : layout->ld;

    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    if (starlin_dtype_nbytes(layout->dtype) == 0)
        return starlin__error(STARLIN_ERR_INVALID, "layout: dtype is %d, allowed are 0 (f32) to 3 (bf16)",
                              (int)layout->dtype);
    if (starlin_placement_name(layout->placement) == NULL)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: placement is %d, allowed are 0 (replicate) to 3 (partial)",
                              (int)layout->placement);
    if (list == NULL && layout->placement != STARLIN_REPLICATE)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: placement is %s without a chunking: that of a matrix that is not cut "
                              "follows from its operator",
                              starlin_placement_name(layout->placement));
    if (list != NULL && layout->rows != 0 && layout->rows != list->m)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: rows is %lld, the chunking has %lld (0 takes them from it)",
                              (long long)layout->rows, (long long)list->m);
    if (rows < 0 || layout->cols < 0 || (rows == 0 && layout->cols == 0))
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: rows is %lld and cols %lld: neither may be negative, nor both 0",
                              (long long)rows, (long long)layout->cols);
    if (ld < layout->cols || ld > UINT32_MAX)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: ld is %lld, allowed are cols (%lld) to %lld, or 0 for cols",
                              (long long)layout->ld, (long long)layout->cols, (long long)UINT32_MAX);
    if (ld > 0 && rows > (int64_t)(PTRDIFF_MAX / 8) / ld)
        return starlin__error(STARLIN_ERR_INVALID, "layout: %lld rows of %lld elements overflow memory",
                              (long long)rows, (long long)ld);
    if (layout->placement == STARLIN_SHARD_ROWS && (int)list->nblocks != context->bootstrap->nranks)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: placement shard_rows needs a chunking with blocks "
                              "(starlin_chunking_options_t)");
    return STARLIN_SUCCESS;
}

/* StarPU counts a handle's elements in 32 bits. */
static starlin_status_t check_chunks(const starlin_matrix_t *matrix)
{
    for (size_t i = 0; i < matrix->nchunks; i++) {
        int64_t rows = starlin__matrix_chunk_rows(matrix, i);
        if (matrix->ld > 0 && rows > UINT32_MAX / matrix->ld)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "chunk %zu has %lld rows of %lld elements: a chunk holds at most %lld "
                                  "elements, use more chunks",
                                  i, (long long)rows, (long long)matrix->ld, (long long)UINT32_MAX);
    }
    return STARLIN_SUCCESS;
}

/* --- making and freeing */

void starlin__matrix_free(starlin_matrix_t *matrix)
{
    starlin__rows_release(matrix->rows);
    starlin__free(matrix->known);
    starlin__free(matrix->handles);
    starlin__free(matrix);
}

starlin_status_t starlin__matrix_shape(starlin_context_t *context, starlin__rows_t *rows,
                                       const starlin_matrix_layout_t *layout, starlin_matrix_t **matrix_p)
{
    static atomic_ullong last_id;
    starlin_matrix_t *matrix;
    starlin_status_t status;

    STARLIN__FORWARD(check_layout(context, rows, layout));
    matrix = starlin__alloc(sizeof *matrix);
    if (matrix == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "matrix");
    matrix->context = context;
    matrix->root = matrix;
    matrix->id = atomic_fetch_add(&last_id, 1) + 1;
    matrix->rows = starlin__rows_retain(rows);
    matrix->cols = layout->cols;
    matrix->ld = layout->ld == 0 ? layout->cols : layout->ld;
    matrix->dtype = layout->dtype;
    matrix->placement = layout->placement;
    matrix->nchunks = rows != NULL ? rows->nchunks : 1;
    matrix->local_rows = rows == NULL ? layout->rows : rows->m;
    if (is_block(matrix))
        matrix->local_rows = starlin__block_first(rows->m, rows->nblocks, rows->block + 1) -
                             starlin__block_first(rows->m, rows->nblocks, rows->block);
    matrix->space = context->device != NULL ? STARLIN__DEVICE : STARLIN__HOST;
    status = check_chunks(matrix);
    if (status == STARLIN_SUCCESS) {
        matrix->handles = starlin__alloc(matrix->nchunks * sizeof(starpu_data_handle_t));
        if (matrix->handles == NULL)
            status = starlin__error(STARLIN_ERR_NO_MEMORY, "matrix of %zu chunks", matrix->nchunks);
    }
    if (status != STARLIN_SUCCESS) {
        starlin__matrix_free(matrix);
        return status;
    }
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

static void events_destroy(starlin_matrix_t *matrix)
{
    starlin__device_t *device = matrix->context->device;

    if (!matrix->owns_events)
        return;
    for (size_t i = 0; i < matrix->nchunks; i++) {
        if (matrix->events[i].compute != NULL)
            device->ops->event_destroy(device, matrix->events[i].compute);
        if (matrix->events[i].comm != NULL)
            device->ops->event_destroy(device, matrix->events[i].comm);
    }
    starlin__free(matrix->events);
}

static starlin_status_t events_create(starlin_matrix_t *matrix)
{
    starlin__device_t *device = matrix->context->device;

    matrix->events = starlin__alloc(matrix->nchunks * sizeof *matrix->events);
    if (matrix->events == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "events of %zu chunks", matrix->nchunks);
    matrix->owns_events = true;
    for (size_t i = 0; i < matrix->nchunks; i++) {
        STARLIN__FORWARD(device->ops->event_create(device, &matrix->events[i].compute));
        STARLIN__FORWARD(device->ops->event_create(device, &matrix->events[i].comm));
    }
    return STARLIN_SUCCESS;
}

static size_t data_nbytes(const starlin_matrix_t *matrix)
{
    return (size_t)matrix->local_rows * row_nbytes(matrix, matrix->ld);
}

static void memory_free(starlin_matrix_t *matrix)
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

/* The host's memory, the device's, or the communicator's where that makes collectives faster. */
static starlin_status_t memory_create(starlin_matrix_t *matrix)
{
    starlin_context_t *context = matrix->context;
    const starlin__comm_ops_t *comm_ops = context->comm->ops;
    size_t nbytes = data_nbytes(matrix);

    matrix->comm_memory = context->device != NULL && matrix->rows != NULL && comm_ops->buffer_alloc != NULL &&
                          context->comm->space == STARLIN__DEVICE;
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

/* A chunk in several runs is a block of equal runs at a fixed stride; without those it has no data for
 * StarPU, only its dependencies. */
static void register_runs(starlin_matrix_t *matrix, size_t chunk, int node)
{
    const starlin__rows_t *rows = matrix->rows;
    const int64_t *run_rows = &rows->run_rows[chunk * rows->nblocks];
    const int64_t *run_first = &rows->run_first[chunk * rows->nblocks];
    int64_t stride = run_first[1] - run_first[0];
    bool regular = run_rows[0] > 0;

    for (unsigned b = 1; b < rows->nblocks; b++)
        regular = regular && run_rows[b] == run_rows[0] && run_first[b] - run_first[b - 1] == stride;
    if (!regular || stride * matrix->ld > UINT32_MAX)
        starpu_void_data_register(&matrix->handles[chunk]);
    else
        starpu_block_data_register(&matrix->handles[chunk], node,
                                   (uintptr_t)starlin__matrix_chunk_data(matrix, chunk), (uint32_t)matrix->ld,
                                   (uint32_t)(stride * matrix->ld), (uint32_t)matrix->cols,
                                   (uint32_t)run_rows[0], rows->nblocks, starlin_dtype_nbytes(matrix->dtype));
}

static void register_handles(starlin_matrix_t *matrix)
{
    int node = matrix->space == STARLIN__DEVICE ? (int)matrix->context->memory_node : STARPU_MAIN_RAM;

    for (size_t i = 0; i < matrix->nchunks; i++) {
        int64_t rows = starlin__matrix_chunk_rows(matrix, i);
        if (matrix->cols == 0 || rows == 0)
            starpu_void_data_register(&matrix->handles[i]);
        else if (!starlin__matrix_is_contiguous(matrix))
            register_runs(matrix, i, node);
        else
            starpu_matrix_data_register(&matrix->handles[i], node,
                                        (uintptr_t)starlin__matrix_chunk_data(matrix, i),
                                        (uint32_t)matrix->ld, (uint32_t)matrix->cols, (uint32_t)rows,
                                        starlin_dtype_nbytes(matrix->dtype));
    }
    matrix->owns_handles = true;
}

static void count_matrix(starlin_matrix_t *matrix, int change)
{
    pthread_mutex_lock(&matrix->context->lock);
    matrix->context->nmatrices += (unsigned)change;
    pthread_mutex_unlock(&matrix->context->lock);
}

static starlin_status_t check_memory(const starlin_matrix_t *matrix, const void *data)
{
    size_t nbytes = starlin_dtype_nbytes(matrix->dtype);

    if (data == NULL && matrix->ld != matrix->cols)
        return starlin__error(STARLIN_ERR_INVALID,
                              "layout: ld is %lld; a matrix in the library's memory is contiguous (ld 0 or "
                              "cols)",
                              (long long)matrix->ld);
    if ((uintptr_t)data % nbytes != 0)
        return starlin__error(STARLIN_ERR_INVALID, "data is at %p, not aligned to elements of %zu bytes",
                              data, nbytes);
    if (matrix->context->device != NULL && matrix->space == STARLIN__HOST &&
        !starlin__matrix_is_contiguous(matrix))
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "chunks of %u runs in host memory: a context that computes on a device needs "
                              "device memory or a matrix of the library's",
                              matrix->rows->nblocks);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__matrix_make(starlin_context_t *context, starlin__rows_t *rows, void *data,
                                      const starlin_matrix_layout_t *layout, starlin__space_t space,
                                      starlin_matrix_t **matrix_p)
{
    starlin_matrix_t *matrix = NULL;
    starlin_status_t status;

    STARLIN__FORWARD(starlin__matrix_shape(context, rows, layout, &matrix));
    matrix->data = data;
    matrix->ordered = data != NULL;
    if (data != NULL)
        matrix->space = space;
    status = check_memory(matrix, data);
    if (status == STARLIN_SUCCESS && data == NULL)
        status = memory_create(matrix);
    if (status == STARLIN_SUCCESS && matrix->space == STARLIN__DEVICE)
        status = events_create(matrix);
    if (status != STARLIN_SUCCESS) {
        memory_free(matrix);
        events_destroy(matrix);
        starlin__matrix_free(matrix);
        return status;
    }
    register_handles(matrix);
    count_matrix(matrix, 1);
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

static starlin_status_t check_arguments(const starlin_context_t *context,
                                        const starlin_matrix_layout_t *layout, starlin_matrix_t **matrix_p)
{
    if (context == NULL || layout == NULL || matrix_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL",
                              context == NULL  ? "context"
                              : layout == NULL ? "layout"
                                               : "matrix_p");
    return STARLIN_SUCCESS;
}

static starlin__rows_t *rows_of(const starlin_chunking_t *chunking)
{
    return chunking != NULL ? chunking->rows : NULL;
}

starlin_status_t starlin_matrix_create(starlin_context_t *context, const starlin_chunking_t *chunking,
                                       const starlin_matrix_layout_t *layout, starlin_matrix_t **matrix_p)
{
    STARLIN__FORWARD(check_arguments(context, layout, matrix_p));
    return starlin__matrix_make(context, rows_of(chunking), NULL, layout, STARLIN__HOST, matrix_p);
}

static starlin_status_t wrap(starlin_context_t *context, const starlin_chunking_t *chunking, void *data,
                             const starlin_matrix_layout_t *layout, starlin__space_t space,
                             starlin_matrix_t **matrix_p)
{
    STARLIN__FORWARD(check_arguments(context, layout, matrix_p));
    if (data == NULL && layout->cols > 0)
        return starlin__error(STARLIN_ERR_INVALID, "data is NULL");
    return starlin__matrix_make(context, rows_of(chunking), data, layout, space, matrix_p);
}

starlin_status_t starlin_matrix_wrap(starlin_context_t *context, const starlin_chunking_t *chunking,
                                     void *data, const starlin_matrix_layout_t *layout,
                                     starlin_matrix_t **matrix_p)
{
    return wrap(context, chunking, data, layout, STARLIN__HOST, matrix_p);
}

starlin_status_t starlin_matrix_wrap_device(starlin_context_t *context, const starlin_chunking_t *chunking,
                                            void *device_data, const starlin_matrix_layout_t *layout,
                                            starlin_matrix_t **matrix_p)
{
    if (context != NULL && context->device == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "the context computes on the host (%s): it has no device memory",
                              context->info.compute);
    return wrap(context, chunking, device_data, layout, STARLIN__DEVICE, matrix_p);
}

static bool may_view(starlin_placement_t from, starlin_placement_t to)
{
    bool whole = from == STARLIN_PARTIAL || from == STARLIN_REPLICATE;
    return (whole && (to == STARLIN_PARTIAL || to == STARLIN_REPLICATE)) ||
           (from == STARLIN_REPLICATE && to == STARLIN_SHARD_COLS);
}

starlin_status_t starlin_matrix_view(starlin_matrix_t *matrix, starlin_placement_t placement,
                                     starlin_matrix_t **view_p)
{
    starlin_matrix_layout_t layout;
    starlin_matrix_t *view = NULL;

    if (matrix == NULL || view_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", matrix == NULL ? "matrix" : "view_p");
    if (matrix->rows == NULL || !may_view(matrix->placement, placement))
        return starlin__error(STARLIN_ERR_INVALID,
                              "a view of a %s matrix%s as placement %d (%s): allowed are partial and "
                              "replicate, and replicate as shard_cols, over rows",
                              starlin_placement_name(matrix->placement),
                              matrix->rows == NULL ? " that is not cut" : "", (int)placement,
                              starlin_placement_name(placement) != NULL ? starlin_placement_name(placement)
                                                                        : "none");
    layout = (starlin_matrix_layout_t){
        .cols = matrix->cols, .ld = matrix->ld, .dtype = matrix->dtype, .placement = placement};
    STARLIN__FORWARD(starlin__matrix_shape(matrix->context, matrix->rows, &layout, &view));
    view->root = matrix->root;
    view->ordered = matrix->ordered;
    view->space = matrix->space;
    view->data = matrix->data;
    view->comm_memory = matrix->comm_memory;
    view->events = matrix->events;
    memcpy(view->handles, matrix->handles, matrix->nchunks * sizeof(starpu_data_handle_t));
    count_matrix(view, 1);
    *view_p = view;
    return STARLIN_SUCCESS;
}

/* --- handles of the application */

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
        int64_t rows = starlin__matrix_chunk_rows(matrix, i), elements, cols;
        bool padded;
        if (handles[i] == NULL)
            return starlin__error(STARLIN_ERR_INVALID, "handle %zu is NULL", i);
        elements = handle_elements(handles[i], nbytes, &cols, &padded);
        if (elements < 0)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "handle %zu is no matrix, vector or variable of %zu-byte elements (%s)", i,
                                  nbytes, starlin_dtype_name(matrix->dtype));
        if (elements != rows * matrix->cols || (cols != 0 && cols != matrix->cols))
            return starlin__error(
                STARLIN_ERR_INVALID,
                "handle %zu holds %lld elements in rows of %lld, expected %lld rows of %lld", i,
                (long long)elements, (long long)cols, (long long)rows, (long long)matrix->cols);
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

    STARLIN__FORWARD(check_arguments(context, layout, matrix_p));
    if (handles == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "handles is NULL");
    contiguous = *layout;
    contiguous.ld = 0;
    STARLIN__FORWARD(starlin__matrix_shape(context, rows_of(chunking), &contiguous, &matrix));
    matrix->space = STARLIN__HOST;
    status = take_handles(matrix, handles);
    if (status != STARLIN_SUCCESS) {
        starlin__matrix_free(matrix);
        return status;
    }
    matrix->exposed = true;
    count_matrix(matrix, 1);
    *matrix_p = matrix;
    return STARLIN_SUCCESS;
}

starpu_data_handle_t starlin_matrix_chunk_handle(starlin_matrix_t *matrix, size_t i)
{
    if (matrix == NULL || i >= matrix->nchunks)
        return NULL;
    /* what was launched without a task that ends with it must be over before foreign tasks see the data */
    if (!matrix->root->exposed && matrix->events != NULL)
        (void)starlin__matrix_wait_operators(matrix);
    matrix->root->exposed = true;
    return matrix->handles[i];
}

/* --- the end */

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
    for (size_t i = 0; i < sizeof matrix->scratch / sizeof matrix->scratch[0]; i++)
        starlin_matrix_destroy(matrix->scratch[i]);
    if (matrix->replaced != NULL)
        starlin_matrix_destroy(matrix->replaced); /* and, with it, those replaced before */
    memory_free(matrix);
    events_destroy(matrix);
    if (!matrix->is_scratch)
        count_matrix(matrix, -1);
    starlin__matrix_free(matrix);
}

int64_t starlin_matrix_rows(const starlin_matrix_t *matrix)
{
    return matrix != NULL ? matrix->local_rows : 0;
}

void *starlin_matrix_data(const starlin_matrix_t *matrix)
{
    return matrix != NULL ? matrix->data : NULL;
}

/* --- the device's room, the communicator's registration */

/* StarPU gives out parts of up to 4 MB from blocks of 32 MB, and may keep one such block in hand. */
static const size_t starpu_block_nbytes = (size_t)32 << 20, starpu_part_nbytes = (size_t)4 << 20;

static size_t largest_chunk_nbytes(const starlin_matrix_t *matrix)
{
    int64_t largest = 0;

    for (size_t i = 0; i < matrix->nchunks; i++) {
        int64_t rows = starlin__matrix_chunk_rows(matrix, i);
        largest = rows > largest ? rows : largest;
    }
    return (size_t)largest * row_nbytes(matrix, matrix->cols);
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

starlin_status_t starlin__matrix_check_room(const starlin_context_t *context,
                                            starlin_matrix_t *const *matrices, size_t count)
{
    size_t parts = 1, needed = 0, room = 0;
    bool is_moved = false;

    for (size_t i = 0; context->device != NULL && i < count; i++) {
        bool is_host = matrices[i] != NULL && matrices[i]->space == STARLIN__HOST;
        size_t nbytes = is_host ? largest_chunk_nbytes(matrices[i]) : 0;
        is_moved = is_moved || nbytes > 0;
        *(nbytes > starpu_part_nbytes ? &needed : &parts) += nbytes;
    }
    if (!is_moved)
        return STARLIN_SUCCESS;
    needed += (parts + starpu_block_nbytes - 1) / starpu_block_nbytes * starpu_block_nbytes;
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
