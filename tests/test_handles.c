/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside somebody's StarPU program: it starts and keeps its StarPU, its handles of every interface serve as
 * matrices, and its tasks work on chunks before and after the linear without a wait. */
#define _POSIX_C_SOURCE 200809L
#include <starpu_scheduler.h>

#include "check.h"
#include "linear.h"
#include "starlin/starlin_starpu.h"

enum { NROWS = 12, NOUTPUTS = 4, INNER = 5, NCHUNKS = 3 };

static float *buffer_data(void *buffer, size_t *count_p)
{
    switch (*(enum starpu_data_interface_id *)buffer) {
    case STARPU_VECTOR_INTERFACE_ID:
        *count_p = STARPU_VECTOR_GET_NX(buffer);
        return (float *)STARPU_VECTOR_GET_PTR(buffer);
    case STARPU_VARIABLE_INTERFACE_ID:
        *count_p = STARPU_VARIABLE_GET_ELEMSIZE(buffer) / sizeof(float);
        return (float *)STARPU_VARIABLE_GET_PTR(buffer);
    default:
        *count_p = (size_t)STARPU_MATRIX_GET_NX(buffer) * STARPU_MATRIX_GET_NY(buffer);
        return (float *)STARPU_MATRIX_GET_PTR(buffer);
    }
}

/* The application's own kernel: twice as much. */
static void twice(void *buffers[], void *arg)
{
    size_t count;
    float *data = buffer_data(buffers[0], &count);
    (void)arg;
    for (size_t i = 0; i < count; i++)
        data[i] *= 2.0f;
}

static struct starpu_codelet twice_codelet = {
    .cpu_funcs = {twice}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "twice"};

typedef struct application {
    float x[NROWS * INNER], w[NOUTPUTS * INNER], y[NROWS * NOUTPUTS];
    starpu_data_handle_t x_handles[NCHUNKS], w_handle, y_handles[NCHUNKS];
} application_t;

typedef enum kind { MATRIX, VECTOR, VARIABLE, NKINDS } kind_t;

static void register_part(kind_t kind, float *data, uint32_t cols, uint32_t rows,
                          starpu_data_handle_t *handle)
{
    if (kind == MATRIX)
        starpu_matrix_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)data, cols, cols, rows, sizeof *data);
    else if (kind == VECTOR)
        starpu_vector_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)data, cols * rows, sizeof *data);
    else
        starpu_variable_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)data,
                                      (size_t)cols * rows * sizeof *data);
}

static void application_begin(application_t *application, kind_t kind)
{
    const uint32_t rows = NROWS / NCHUNKS;

    memset(application, 0, sizeof *application);
    problem_fill(STARLIN_F32, application->x, NROWS, INNER, 0, INNER, problem_x);
    problem_fill(STARLIN_F32, application->w, NOUTPUTS, INNER, 0, INNER, problem_w);
    for (uint32_t i = 0; i < NCHUNKS; i++) {
        register_part(kind, application->x + i * rows * INNER, INNER, rows, &application->x_handles[i]);
        register_part(kind, application->y + i * rows * NOUTPUTS, NOUTPUTS, rows, &application->y_handles[i]);
    }
    register_part(kind, application->w, INNER, NOUTPUTS, &application->w_handle);
}

static void application_end(application_t *application)
{
    for (int i = 0; i < NCHUNKS; i++) {
        starpu_data_unregister(application->x_handles[i]);
        starpu_data_unregister(application->y_handles[i]);
    }
    starpu_data_unregister(application->w_handle);
}

static size_t wrong_elements(const float *y, double factor)
{
    size_t wrong = 0;
    for (int64_t i = 0; i < NROWS * NOUTPUTS; i++)
        wrong += y[i] != (float)(factor * problem_y(i / NOUTPUTS, i % NOUTPUTS, INNER));
    return wrong;
}

static starlin_chunking_t *plan(starlin_context_t *context)
{
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_chunking_t *rows = NULL;

    options.count = NCHUNKS;
    CHECK_STATUS(starlin_chunking_plan(context, NROWS, NULL, 0, &options, &rows), STARLIN_SUCCESS);
    return rows;
}

static void insert_twice(starpu_data_handle_t handle)
{
    CHECK_EQ_INT(starpu_task_insert(&twice_codelet, STARPU_RW, handle, 0), 0);
}

/* x doubled by the application, the linear, y doubled by the application: no wait until the end. */
static void test_kind(starlin_context_t *context, kind_t kind)
{
    static application_t application;
    starlin_matrix_layout_t input = {.cols = INNER, .placement = STARLIN_SHARD_COLS},
                            output = {.cols = NOUTPUTS};
    starlin_matrix_t *x = NULL, *w = NULL, *y = NULL;
    starlin_chunking_t *rows = plan(context);

    application_begin(&application, kind);
    CHECK_STATUS(starlin_matrix_from_handles(context, rows, application.x_handles, &input, &x),
                 STARLIN_SUCCESS);
    CHECK_STATUS(starlin_matrix_from_handles(context, rows, application.y_handles, &output, &y),
                 STARLIN_SUCCESS);
    input.rows = NOUTPUTS;
    input.placement = STARLIN_REPLICATE;
    CHECK_STATUS(starlin_matrix_from_handles(context, NULL, &application.w_handle, &input, &w),
                 STARLIN_SUCCESS);
    for (int i = 0; i < NCHUNKS; i++)
        insert_twice(application.x_handles[i]);
    CHECK_STATUS(starlin_row_linear(context, x, w, y, NULL), STARLIN_SUCCESS);
    for (size_t i = 0; i < NCHUNKS; i++) {
        CHECK(starlin_matrix_chunk_handle(y, i) == application.y_handles[i]);
        insert_twice(starlin_matrix_chunk_handle(y, i));
    }
    CHECK(starlin_matrix_data(y) == NULL);
    CHECK_STATUS(starlin_matrix_wait(y), STARLIN_SUCCESS);
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    starlin_chunking_destroy(rows);
    application_end(&application); /* the handles are still the application's; waits for its tasks */
    CHECK_EQ_INT(wrong_elements(application.y, 4.0), 0);
}

/* The library's matrices, the application's tasks. */
static void test_chunk_handles(starlin_context_t *context)
{
    linear_t linear = {.context = context, .m = NROWS, .n = NOUTPUTS, .k = INNER, .count = NCHUNKS};

    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    CHECK(starlin_matrix_chunk_handle(NULL, 0) == NULL);
    CHECK(starlin_matrix_chunk_handle(linear.y, NCHUNKS) == NULL);
    for (size_t i = 0; i < NCHUNKS; i++)
        insert_twice(starlin_matrix_chunk_handle(linear.x, i));
    CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
    for (size_t i = 0; i < NCHUNKS; i++)
        insert_twice(starlin_matrix_chunk_handle(linear.y, i));
    CHECK_EQ_INT(starpu_task_wait_for_all(), 0);
    CHECK_EQ_INT(wrong_elements(linear.y_data, 4.0), 0);
    linear_close(&linear);
}

static void refuse(starlin_context_t *context, const starlin_chunking_t *rows,
                   const starpu_data_handle_t *handles, int64_t cols, starlin_dtype_t dtype, const char *part)
{
    starlin_matrix_layout_t layout = {.rows = NROWS, .cols = cols, .dtype = dtype};
    starlin_matrix_t *matrix = NULL;

    CHECK_STATUS(starlin_matrix_from_handles(context, rows, handles, &layout, &matrix), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), part);
    CHECK(matrix == NULL);
}

static void test_refusals(starlin_context_t *context)
{
    static application_t application;
    starlin_matrix_layout_t layout = {.cols = INNER};
    starlin_chunking_t *rows = plan(context);
    starpu_data_handle_t broken[NCHUNKS];
    starlin_matrix_t *x = NULL, *y = NULL, *w = NULL;

    for (int kind = 0; kind < NKINDS; kind++) {
        application_begin(&application, (kind_t)kind);
        refuse(context, rows, application.x_handles, INNER + 1, STARLIN_F32, "handle 0 holds 20 elements");
        refuse(context, rows, application.x_handles, INNER, STARLIN_F16, kind == VARIABLE ? "40" : "2-byte");
        refuse(context, NULL, application.x_handles, INNER, STARLIN_F32, "expected 12 rows of 5");
        memcpy(broken, application.x_handles, sizeof broken);
        broken[1] = NULL;
        refuse(context, rows, broken, INNER, STARLIN_F32, "handle 1 is NULL");
        application_end(&application);
    }
    refuse(NULL, rows, broken, INNER, STARLIN_F32, "context");
    refuse(context, rows, NULL, INNER, STARLIN_F32, "handles");
    CHECK_STATUS(starlin_matrix_from_handles(context, rows, broken, NULL, &x), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin_matrix_from_handles(context, rows, broken, &layout, NULL), STARLIN_ERR_INVALID);
    /* one handle twice is an overlap */
    application_begin(&application, VECTOR);
    layout = (starlin_matrix_layout_t){.rows = NOUTPUTS, .cols = INNER};
    CHECK_STATUS(starlin_matrix_from_handles(context, NULL, &application.w_handle, &layout, &x),
                 STARLIN_SUCCESS);
    layout = (starlin_matrix_layout_t){.rows = INNER, .cols = INNER};
    w = y = x;
    CHECK_STATUS(starlin_row_linear(context, x, w, y, NULL), STARLIN_ERR_INVALID);
    starlin_matrix_destroy(x);
    application_end(&application);
    starlin_chunking_destroy(rows);
}

int main(void)
{
    starlin_context_t *context = NULL;
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;
    struct starpu_conf conf;

    setenv("STARPU_SILENT", "1", 0);
    unsetenv("STARPU_SCHED"); /* it would beat what the application asks for */
    starpu_conf_init(&conf);
    conf.sched_policy_name = "prio";
    conf.ncpus = 2;
    CHECK_EQ_INT(starpu_init(&conf), 0);
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(starlin_context_create(NULL, &context), STARLIN_SUCCESS);
        if (context == NULL)
            return 1;
        CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
        CHECK(info.adopted);
        CHECK_EQ_STR(info.policy, "prio");
        for (int kind = 0; kind < NKINDS; kind++)
            test_kind(context, (kind_t)kind);
        test_chunk_handles(context);
        test_refusals(context);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
        CHECK(starpu_is_initialized());
        CHECK_EQ_INT(starpu_task_wait_for_all(), 0);
    }
    starpu_shutdown();
    return CHECK_RESULT();
}
