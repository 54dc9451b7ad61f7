/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators of all kinds on small integers, and their right answers, which every rank works out for itself:
 * a job is one call with its matrices, a scene what jobs over the same rows have in common. Values are small
 * enough that every sum is exact in every dtype. Include check.h and world.h first. */
#ifndef STARLIN_TESTS_OPERATORS_H
#define STARLIN_TESTS_OPERATORS_H

#include "graph/context.h"
#include "row_linear.h"
#include "starlin/starlin_cuda.h"

/* How columns are cut into the ranks' slices: nearly equal, very unequal, and none for rank 0. */
typedef enum cut { EVEN, SKEWED, HOLLOW, NCUTS } cut_t;

typedef struct scene {
    starlin_context_t *context;
    int64_t m;
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
    cut_t cut;
    unsigned variant; /* bits: inputs are the library's, outputs are; times 4: padding of wrapped inputs */
    bool on_host;     /* the caller's memory is host memory where the library's is not */
    size_t count;     /* chunks, or 0 and the list */
    const int64_t *list;
    size_t nlist;
    bool blocks;
    starlin_chunking_t *rows; /* made by scene_open() */
} scene_t;

/* What this rank has of a matrix: a window of rows and columns. */
typedef struct tensor {
    starlin_context_t *context;
    starlin_matrix_t *matrix;
    int64_t cols; /* of all ranks together */
    int64_t first_row, nrows, first_col, ncols, ld;
    starlin_dtype_t dtype;
    void *host, *device; /* the caller's memory; both NULL: the library's */
} tensor_t;

typedef struct job {
    /* what is called; of a redistribute n columns */
    starlin_operator_t op;
    starlin_placement_t from, to;
    starlin_activation_kind_t activation;
    bool bias, residual;
    bool in_place; /* y is a view of x */
    int64_t n, k;
    struct job *input; /* x is its y; NULL: a matrix of its own */
    struct job *skip;  /* the residual is its x */
    /* made by job_open() */
    const scene_t *scene;
    tensor_t x, w, y, bias_row, rest;
    starlin_matrix_t *view;
    double *x_values, *y_values; /* of all ranks together: of a partial matrix the sum */
    double *summand;             /* of a partial y: this rank's */
    bool is_submitted, is_overwritten;
} job_t;

/* --- values */

/* From -2 to 2. */
static inline double draw(uint64_t seed, int64_t row, int64_t col)
{
    uint64_t words[3] = {seed, (uint64_t)row, (uint64_t)col};
    return (double)((starlin__hash(STARLIN__HASH_INIT, words, sizeof words) >> 13) % 5) - 2.0;
}

static inline double *values(int64_t rows, int64_t cols, uint64_t seed)
{
    double *all = calloc((size_t)(rows * cols) + 1, sizeof *all);
    for (int64_t i = 0; i < rows * cols; i++)
        all[i] = draw(seed, i / cols, i % cols);
    return all;
}

/* -1, 0 or 1, one in six not zero: a chain of three products stays below 2^8. */
static inline double *weights(int64_t n, int64_t k, uint64_t seed)
{
    double *all = calloc((size_t)(n * k) + 1, sizeof *all);
    for (int64_t i = 0; i < n * k; i++)
        all[i] = (i / k + i % k) % 6 != 0 ? 0 : draw(seed, i / k, i % k) > 0 ? 1 : -1;
    return all;
}

/* x w^T over the inner columns [first, first + count). */
static inline double *product(const double *x, const double *w, int64_t m, int64_t n, int64_t k,
                              int64_t first, int64_t count)
{
    double *all = calloc((size_t)(m * n) + 1, sizeof *all);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t l = first; l < first + count; l++)
                all[i * n + j] += x[i * k + l] * w[j * k + l];
        }
    }
    return all;
}

static inline void slice(cut_t cut, int64_t n, int64_t *first_p, int64_t *count_p)
{
    int64_t rank = world_rank, nranks = world_nranks;

    if (cut == SKEWED) {
        *first_p = n * rank * rank / (nranks * nranks);
        *count_p = n * (rank + 1) * (rank + 1) / (nranks * nranks) - *first_p;
    } else if (cut == HOLLOW && nranks > 1 && rank > 0) {
        problem_slice(n, (int)rank - 1, (int)nranks - 1, first_p, count_p);
    } else if (cut == HOLLOW && nranks > 1) {
        *first_p = *count_p = 0;
    } else {
        problem_slice(n, (int)rank, (int)nranks, first_p, count_p);
    }
}

/* --- scenes */

static inline void scene_open(scene_t *scene)
{
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;

    options.count = scene->count;
    options.rows = scene->list;
    options.nrows = scene->nlist;
    options.blocks = scene->blocks;
    scene->rows = NULL;
    CHECK_STATUS(starlin_chunking_plan(scene->context, scene->m, NULL, 0, &options, &scene->rows),
                 STARLIN_SUCCESS);
}

static inline void scene_close(scene_t *scene)
{
    starlin_chunking_destroy(scene->rows);
    scene->rows = NULL;
}

/* --- tensors */

static inline size_t tensor_nbytes(const tensor_t *tensor)
{
    return (size_t)(tensor->nrows * tensor->ld) * starlin_dtype_nbytes(tensor->dtype);
}

static inline void tensor_fill(tensor_t *tensor, const double *all)
{
    size_t nbytes = tensor_nbytes(tensor);
    char *host = tensor->host != NULL ? tensor->host : calloc(nbytes + 1, 1);

    for (int64_t i = 0; i < tensor->nrows; i++) {
        for (int64_t j = 0; j < tensor->ld; j++) {
            bool is_inside = all != NULL && j < tensor->ncols;
            element_store(tensor->dtype, host, (size_t)(i * tensor->ld + j),
                          is_inside ? all[(tensor->first_row + i) * tensor->cols + tensor->first_col + j]
                                    : -99);
        }
    }
    if (tensor->device != NULL && nbytes > 0) {
        starlin__device_t *device = tensor->context->device;
        CHECK_STATUS(device->ops->copy(device, tensor->device, nbytes, host, nbytes, nbytes, 1),
                     STARLIN_SUCCESS);
    } else if (tensor->host == NULL) {
        CHECK_STATUS(starlin_matrix_write(tensor->matrix, host, tensor->ld), STARLIN_SUCCESS);
    }
    if (tensor->host == NULL)
        free(host);
}

/* Makes the matrix of this window and fills it from the values of all ranks; NULL: an output, all -99. */
static inline void tensor_make(tensor_t *tensor, const scene_t *scene, const starlin_chunking_t *rows,
                               starlin_placement_t placement, const double *all)
{
    starlin_matrix_layout_t layout = {.rows = rows != NULL ? 0 : tensor->nrows,
                                      .cols = tensor->ncols,
                                      .dtype = scene->dtype,
                                      .placement = placement};

    tensor->context = scene->context;
    tensor->dtype = scene->dtype;
    tensor->ld = tensor->ncols;
    if (scene->variant >> (all != NULL ? 0 : 1) & 1) {
        CHECK_STATUS(starlin_matrix_create(scene->context, rows, &layout, &tensor->matrix), STARLIN_SUCCESS);
    } else {
        starlin__device_t *device = scene->on_host ? NULL : scene->context->device;
        if (all != NULL)
            tensor->ld = layout.ld = tensor->ncols + scene->variant / 4 % 3;
        if (device == NULL) {
            tensor->host = calloc(tensor_nbytes(tensor) + 1, 1);
            CHECK_STATUS(starlin_matrix_wrap(scene->context, rows, tensor->host, &layout, &tensor->matrix),
                         STARLIN_SUCCESS);
        } else {
            CHECK_STATUS(device->ops->alloc(device, tensor_nbytes(tensor) + 1, &tensor->device),
                         STARLIN_SUCCESS);
            CHECK_STATUS(
                starlin_matrix_wrap_device(scene->context, rows, tensor->device, &layout, &tensor->matrix),
                STARLIN_SUCCESS);
        }
    }
    if (tensor->matrix == NULL)
        return;
    CHECK_EQ_INT(starlin_matrix_rows(tensor->matrix), tensor->nrows);
    tensor_fill(tensor, all);
}

/* A matrix over the scene's rows. */
static inline void tensor_open(tensor_t *tensor, const scene_t *scene, starlin_placement_t placement,
                               int64_t cols, const double *all)
{
    *tensor = (tensor_t){.cols = cols, .nrows = scene->m, .ncols = cols};
    if (placement == STARLIN_SHARD_COLS)
        slice(scene->cut, cols, &tensor->first_col, &tensor->ncols);
    if (placement == STARLIN_SHARD_ROWS) {
        tensor->first_row = scene->m * world_rank / world_nranks;
        tensor->nrows = scene->m * (world_rank + 1) / world_nranks - tensor->first_row;
    }
    tensor_make(tensor, scene, scene->rows, placement, all);
}

/* A matrix that is not cut into chunks; the ranks have slices of its rows, or its columns, or all of it. */
typedef enum part { ALL, ROWS, COLS } part_t;

static inline void tensor_open_weight(tensor_t *tensor, const scene_t *scene, part_t part, int64_t rows,
                                      int64_t cols, const double *all)
{
    *tensor = (tensor_t){.cols = cols, .nrows = rows, .ncols = cols};
    if (part == ROWS)
        slice(scene->cut, rows, &tensor->first_row, &tensor->nrows);
    if (part == COLS)
        slice(scene->cut, cols, &tensor->first_col, &tensor->ncols);
    tensor_make(tensor, scene, NULL, STARLIN_REPLICATE, all);
}

static inline void tensor_close(tensor_t *tensor)
{
    starlin_matrix_destroy(tensor->matrix);
    if (tensor->device != NULL)
        tensor->context->device->ops->free(tensor->context->device, tensor->device);
    free(tensor->host);
    *tensor = (tensor_t){.matrix = NULL};
}

/* Of all results as numbers, with one sort of zero: the same whatever computes. */
static uint64_t numbers_hash = STARLIN__HASH_INIT;

/* Elements that differ from the expected values of all ranks; the bytes continue the hash. Waits. `matrix`:
 * the tensor's, or a view of it. */
static inline size_t tensor_wrong(const tensor_t *tensor, starlin_matrix_t *matrix, const double *all,
                                  uint64_t *hash)
{
    size_t count = (size_t)(tensor->nrows * tensor->ncols), wrong = 0;
    size_t nbytes = starlin_dtype_nbytes(tensor->dtype);
    char *result = calloc(count + 1, nbytes);

    CHECK_STATUS(starlin_matrix_read(matrix, result, 0), STARLIN_SUCCESS);
    for (size_t i = 0; i < count; i++) {
        int64_t row = tensor->first_row + (int64_t)i / tensor->ncols;
        int64_t col = tensor->first_col + (int64_t)i % tensor->ncols;
        double actual = element_load(tensor->dtype, result, i) + 0.0,
               expected = all[row * tensor->cols + col];
        if (actual != expected && wrong++ == 0)
            fprintf(stderr, "rank %d: [%lld,%lld] is %g, expected %g\n", world_rank, (long long)row,
                    (long long)col, actual, expected);
        numbers_hash = starlin__hash(numbers_hash, &actual, sizeof actual);
    }
    *hash = starlin__hash(*hash, result, count * nbytes);
    if (tensor->host != NULL && tensor->ld == tensor->ncols)
        CHECK(memcmp(tensor->host, result, count * nbytes) == 0);
    free(result);
    return wrong;
}

/* --- jobs */

static inline double *sum_of_draws(int64_t rows, int64_t cols, uint64_t seed)
{
    double *all = calloc((size_t)(rows * cols) + 1, sizeof *all);
    for (int rank = 0; rank < world_nranks; rank++) {
        double *one = values(rows, cols, seed + 1000u * (unsigned)rank);
        for (int64_t i = 0; i < rows * cols; i++)
            all[i] += one[i];
        free(one);
    }
    return all;
}

static inline void job_open_input(job_t *job, int64_t cols, uint64_t seed)
{
    double *mine = NULL;

    if (job->input != NULL) {
        size_t nbytes = (size_t)(job->scene->m * cols) * sizeof(double);
        job->x_values = malloc(nbytes + 1);
        memcpy(job->x_values, job->input->y_values, nbytes);
        return;
    }
    if (job->from == STARLIN_PARTIAL) {
        job->x_values = sum_of_draws(job->scene->m, cols, seed);
        mine = values(job->scene->m, cols, seed + 1000u * (unsigned)world_rank);
    } else {
        job->x_values = values(job->scene->m, cols, seed);
    }
    tensor_open(&job->x, job->scene, job->from, cols, mine != NULL ? mine : job->x_values);
    free(mine);
}

/* y = activation(y + bias) + residual, and their matrices. */
static inline void job_open_finish(job_t *job, uint64_t seed)
{
    const scene_t *scene = job->scene;
    double *bias = job->bias ? values(1, job->n, seed + 1) : NULL, *rest = NULL;

    if (job->skip != NULL)
        rest = job->skip->x_values;
    else if (job->residual)
        rest = values(scene->m, job->n, seed + 2);
    for (int64_t i = 0; i < scene->m * job->n; i++) {
        double value = job->y_values[i] + (bias != NULL ? bias[i % job->n] : 0);
        if (job->activation == STARLIN_RELU && value < 0)
            value = 0;
        job->y_values[i] = value + (rest != NULL ? rest[i] : 0);
    }
    if (bias != NULL)
        tensor_open_weight(&job->bias_row, scene, job->op == STARLIN_OP_COLUMN_LINEAR ? COLS : ALL, 1, job->n,
                           bias);
    if (rest != NULL && job->skip == NULL) {
        tensor_open(&job->rest, scene, job->to, job->n, rest);
        free(rest);
    }
    free(bias);
}

static inline void job_open_linear(job_t *job, uint64_t seed)
{
    const scene_t *scene = job->scene;
    bool is_row = job->op == STARLIN_OP_ROW_LINEAR;
    double *w = weights(job->n, job->k, seed + 3);
    int64_t first, count;

    job->from = is_row ? STARLIN_SHARD_COLS : job->from;
    job->to = is_row ? job->to : STARLIN_SHARD_COLS;
    job_open_input(job, job->k, seed);
    tensor_open_weight(&job->w, scene, is_row ? COLS : ROWS, job->n, job->k, w);
    tensor_open(&job->y, scene, job->to, job->n, NULL);
    job->y_values = product(job->x_values, w, scene->m, job->n, job->k, 0, job->k);
    slice(scene->cut, job->k, &first, &count);
    if (job->to == STARLIN_PARTIAL)
        job->summand = product(job->x_values, w, scene->m, job->n, job->k, first, count);
    job_open_finish(job, seed);
    free(w);
}

static inline void job_open(job_t *job, const scene_t *scene, uint64_t seed)
{
    job->scene = scene;
    if (job->op != STARLIN_OP_REDISTRIBUTE) {
        job_open_linear(job, seed);
        return;
    }
    job_open_input(job, job->n, seed);
    job->y_values = calloc((size_t)(scene->m * job->n) + 1, sizeof(double));
    memcpy(job->y_values, job->x_values, (size_t)(scene->m * job->n) * sizeof(double));
    if (job->in_place) {
        tensor_t *x = job->input != NULL ? &job->input->y : &job->x;
        CHECK_STATUS(starlin_matrix_view(x->matrix, job->to, &job->view), STARLIN_SUCCESS);
        if (job->input != NULL)
            job->input->is_overwritten = true;
    } else {
        tensor_open(&job->y, scene, job->to, job->n, NULL);
    }
}

static inline starlin_matrix_t *job_x(const job_t *job)
{
    return job->input == NULL         ? job->x.matrix
           : job->input->view != NULL ? job->input->view
                                      : job->input->y.matrix;
}

static inline starlin_status_t job_call(const job_t *job)
{
    starlin_context_t *context = job->scene->context;
    starlin_matrix_t *x = job_x(job), *y = job->view != NULL ? job->view : job->y.matrix;
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;

    options.reduction = job->scene->reduction;
    options.activation = job->activation;
    options.bias = job->bias_row.matrix;
    options.residual = job->skip != NULL ? job_x(job->skip) : job->rest.matrix;
    switch (job->op) {
    case STARLIN_OP_ROW_LINEAR:
        return starlin_row_linear(context, x, job->w.matrix, y, &options);
    case STARLIN_OP_COLUMN_LINEAR:
        return starlin_column_linear(context, x, job->w.matrix, y, &options);
    default:
        return starlin_redistribute(context, x, y);
    }
}

/* What works in place is submitted once only. */
static inline void job_submit(job_t *job)
{
    bool is_undone = job->in_place || job->is_overwritten;

    if (!is_undone || !job->is_submitted)
        CHECK_STATUS(job_call(job), STARLIN_SUCCESS);
    job->is_submitted = true;
}

/* "row_linear shard_cols to replicate, ..." */
static inline const char *job_text(const job_t *job)
{
    static char text[256];
    const scene_t *scene = job->scene;

    snprintf(text, sizeof text,
             "%s %s to %s%s%s%s%s, %s reduction %d, m %lld n %lld k %lld, %zu chunks%s, cut %d, variant %u",
             starlin_operator_name(job->op), starlin_placement_name(job->from),
             starlin_placement_name(job->to), job->bias ? " bias" : "",
             job->residual || job->skip != NULL ? " residual" : "", job->activation != 0 ? " relu" : "",
             job->in_place ? " in place" : "", starlin_dtype_name(scene->dtype), (int)scene->reduction,
             (long long)scene->m, (long long)job->n, (long long)job->k, starlin_chunking_count(scene->rows),
             scene->blocks ? " in blocks" : "", (int)scene->cut, scene->variant);
    return text;
}

/* Waits; the result is the expected one. Its bytes continue the hash. */
static inline void job_check(const job_t *job, uint64_t *hash)
{
    const tensor_t *y = !job->in_place ? &job->y : job->input != NULL ? &job->input->y : &job->x;
    size_t wrong;

    if (job->is_overwritten)
        return;
    wrong = tensor_wrong(y, job->view != NULL ? job->view : y->matrix,
                         job->summand != NULL ? job->summand : job->y_values, hash);
    check_count++;
    if (wrong != 0)
        CHECK_FAIL("rank %d of %d: %s: %zu wrong", world_rank, world_nranks, job_text(job), wrong);
}

/* Jobs that others take their input from are closed after them. */
static inline void job_close(job_t *job)
{
    starlin_matrix_destroy(job->view);
    tensor_close(&job->x);
    tensor_close(&job->w);
    tensor_close(&job->y);
    tensor_close(&job->bias_row);
    tensor_close(&job->rest);
    free(job->x_values);
    free(job->y_values);
    free(job->summand);
}

/* --- every operator */

enum { N = 19, K = 23 };

#define JOB_ROW(...) JOB_ROW_(__VA_ARGS__, .n = N)
#define JOB_ROW_(to_, ...)                                                                                   \
    {                                                                                                        \
        .op = STARLIN_OP_ROW_LINEAR, .to = STARLIN_##to_, .k = K, __VA_ARGS__                                \
    }
#define JOB_COLUMN(...) JOB_COLUMN_(__VA_ARGS__, .n = N)
#define JOB_COLUMN_(from_, ...)                                                                              \
    {                                                                                                        \
        .op = STARLIN_OP_COLUMN_LINEAR, .from = STARLIN_##from_, .k = K, __VA_ARGS__                         \
    }
#define JOB_REDISTRIBUTE(...) JOB_REDISTRIBUTE_(__VA_ARGS__, .n = N)
#define JOB_REDISTRIBUTE_(from_, to_, ...)                                                                   \
    {                                                                                                        \
        .op = STARLIN_OP_REDISTRIBUTE, .from = STARLIN_##from_, .to = STARLIN_##to_, __VA_ARGS__             \
    }
#define JOB_FINISH .bias = true, .residual = true, .activation = STARLIN_RELU

/* Every row of the operators' tables; those from the first with SHARD_ROWS on need a chunking with blocks. */
static const job_t every_job[] = {
    JOB_ROW(REPLICATE),
    JOB_ROW(REPLICATE, JOB_FINISH),
    JOB_ROW(PARTIAL),
    JOB_COLUMN(REPLICATE),
    JOB_COLUMN(REPLICATE, JOB_FINISH),
    JOB_REDISTRIBUTE(PARTIAL, REPLICATE),
    JOB_REDISTRIBUTE(PARTIAL, REPLICATE, .in_place = true),
    JOB_ROW(SHARD_ROWS),
    JOB_ROW(SHARD_ROWS, JOB_FINISH),
    JOB_COLUMN(SHARD_ROWS),
    JOB_COLUMN(SHARD_ROWS, JOB_FINISH),
    JOB_REDISTRIBUTE(PARTIAL, SHARD_ROWS),
    JOB_REDISTRIBUTE(SHARD_ROWS, REPLICATE),
    JOB_REDISTRIBUTE(REPLICATE, SHARD_ROWS),
};
enum { NJOBS = sizeof every_job / sizeof every_job[0], NJOBS_WITHOUT_BLOCKS = 7, NCHAINED = 5 };

/* column_linear, row_linear to SHARD_ROWS with x as residual, column_linear: a sequence-parallel MLP and what
 * comes next; row_linear to PARTIAL, summed in place. Without blocks the rows stay on every rank. */
static inline void chain_of_jobs(job_t *jobs, bool blocks)
{
    starlin_placement_t between = blocks ? STARLIN_SHARD_ROWS : STARLIN_REPLICATE;

    jobs[0] = (job_t)JOB_COLUMN(REPLICATE, .bias = true, .activation = STARLIN_RELU);
    jobs[0].from = between;
    jobs[1] = (job_t)JOB_ROW(REPLICATE, .bias = true, .input = &jobs[0], .skip = &jobs[0]);
    jobs[1].to = between;
    jobs[1].n = K;
    jobs[1].k = N;
    jobs[2] = (job_t)JOB_COLUMN(REPLICATE, .input = &jobs[1]);
    jobs[2].from = between;
    jobs[3] = (job_t)JOB_ROW(PARTIAL, .input = &jobs[2]);
    jobs[3].n = 11;
    jobs[3].k = N;
    jobs[4] = (job_t)JOB_REDISTRIBUTE(PARTIAL, REPLICATE, .in_place = true, .input = &jobs[3]);
    jobs[4].n = 11;
}

/* Opens every job that the scene allows, and the chain behind them; returns how many there are. */
static inline size_t open_every_job(const scene_t *scene, job_t jobs[NJOBS + NCHAINED])
{
    size_t count = scene->blocks ? NJOBS : NJOBS_WITHOUT_BLOCKS;

    memcpy(jobs, every_job, count * sizeof *jobs);
    chain_of_jobs(&jobs[count], scene->blocks);
    for (size_t i = 0; i < count + NCHAINED; i++)
        job_open(&jobs[i], scene, 10 * i);
    return count + NCHAINED;
}

static inline void close_every_job(job_t *jobs, size_t count)
{
    while (count-- > 0)
        job_close(&jobs[count]);
}

/* Gemms take up to LONGEST_US, another time on each rank, for each operator and chunk; arg: a seed. Needs
 * time.h and _POSIX_C_SOURCE. */
#ifdef LONGEST_US
static bool delay(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    uint64_t words[4] = {(uint64_t)(uintptr_t)arg, (uint64_t)rank, sequence, chunk};
    uint64_t hash = starlin__hash(STARLIN__HASH_INIT, words, sizeof words) >> 11;
    long us = hash % 8 == 0 ? (long)((hash >> 3) % LONGEST_US) : (long)((hash >> 3) % (LONGEST_US / 10));

    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
    return true;
}
#endif

#endif
