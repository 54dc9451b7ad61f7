/* SPDX-License-Identifier: BSD-3-Clause */
/* The row-parallel linear operator: checks, agrees and prepares once per shape, then has the tasks inserted.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "operators/row_linear_insert.h"

/* Shapes that need no further exchange or workspace. Kept in the context until its end. */
typedef struct starlin__agreed {
    struct starlin__agreed *next;
    bool of_ranks; /* compared over the ranks; else: prepared on this rank */
    uint64_t key;
} agreed_t;

/* `*last`: the key that was known last, so that a shape that is used again needs no search. */
static bool is_known(const starlin_context_t *context, uint64_t key, bool of_ranks, uint64_t *last)
{
    if (*last == key)
        return true;
    for (const agreed_t *known = context->agreed; known != NULL; known = known->next) {
        if (known->key == key && known->of_ranks == of_ranks) {
            *last = key;
            return true;
        }
    }
    return false;
}

static starlin_status_t remember(starlin_context_t *context, uint64_t key, bool of_ranks)
{
    agreed_t *known = starlin__alloc(sizeof *known);
    if (known == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "row_linear");
    *known = (agreed_t){.next = context->agreed, .of_ranks = of_ranks, .key = key};
    context->agreed = known;
    return STARLIN_SUCCESS;
}

/* Takes the last remember() back. */
static void forget_last(starlin_context_t *context)
{
    agreed_t *known = context->agreed;
    context->agreed = known->next;
    starlin__free(known);
}

void starlin__row_linear_forget(starlin_context_t *context)
{
    while (context->agreed != NULL)
        forget_last(context);
}

static bool overlaps(const starlin_matrix_t *a, const starlin_matrix_t *b)
{
    const char *a_data = a->data, *b_data = b->data;
    /* the last row ends with its last column */
    size_t a_nbytes = (size_t)((a->rows - 1) * a->ld + a->cols) * starlin_dtype_nbytes(a->dtype);
    size_t b_nbytes = (size_t)((b->rows - 1) * b->ld + b->cols) * starlin_dtype_nbytes(b->dtype);

    if (a == b)
        return true;
    if (a->cols == 0 || b->cols == 0)
        return false;
    if (a_data == NULL || b_data == NULL) {
        for (size_t i = 0; i < a->nchunks; i++) {
            for (size_t j = 0; j < b->nchunks; j++) {
                if (a->handles[i] == b->handles[j])
                    return true;
            }
        }
        return false;
    }
    return a_data < b_data + b_nbytes && b_data < a_data + a_nbytes;
}

static starlin_status_t check_shapes(const starlin_matrix_t *x, const starlin_matrix_t *w,
                                     const starlin_matrix_t *y)
{
    if (x->dtype != w->dtype || x->dtype != y->dtype)
        return starlin__error(STARLIN_ERR_INVALID, "dtypes differ: x is %s, w %s, y %s",
                              starlin_dtype_name(x->dtype), starlin_dtype_name(w->dtype),
                              starlin_dtype_name(y->dtype));
    if (x->cols != w->cols)
        return starlin__error(STARLIN_ERR_INVALID, "x has %lld columns and w %lld: both are the local k",
                              (long long)x->cols, (long long)w->cols);
    if (y->cols != w->rows)
        return starlin__error(STARLIN_ERR_INVALID, "y has %lld columns and w %lld rows: both are n",
                              (long long)y->cols, (long long)w->rows);
    if (w->nchunks != 1)
        return starlin__error(STARLIN_ERR_INVALID, "w has %zu chunks: a weight is not chunked", w->nchunks);
    if (x->nchunks != y->nchunks ||
        memcmp(x->chunk_rows, y->chunk_rows, x->nchunks * sizeof *x->chunk_rows) != 0)
        return starlin__error(STARLIN_ERR_INVALID,
                              "x (%zu chunks, %lld rows) and y (%zu chunks, %lld rows) are not cut alike",
                              x->nchunks, (long long)x->rows, y->nchunks, (long long)y->rows);
    if (y->ld != y->cols)
        return starlin__error(STARLIN_ERR_INVALID, "y has ld %lld and %lld columns: an output is contiguous",
                              (long long)y->ld, (long long)y->cols);
    if (overlaps(y, x) || overlaps(y, w))
        return starlin__error(STARLIN_ERR_INVALID, "the memory of y overlaps that of %s",
                              overlaps(y, x) ? "x" : "w");
    for (size_t i = 0; i < y->nchunks; i++) {
        if (y->chunk_rows[i] > INT_MAX / y->cols)
            return starlin__error(
                STARLIN_ERR_INVALID,
                "chunk %zu sums %lld rows of %lld elements: at most %d elements, use more chunks", i,
                (long long)y->chunk_rows[i], (long long)y->cols, INT_MAX);
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t check_arguments(starlin_context_t *context, const starlin_matrix_t *x,
                                        const starlin_matrix_t *w, const starlin_matrix_t *y,
                                        const starlin_row_linear_options_t *options)
{
    if (context == NULL || x == NULL || w == NULL || y == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL",
                              context == NULL ? "context"
                              : x == NULL     ? "x"
                              : w == NULL     ? "w"
                                              : "y");
    if (options != NULL && options->struct_size != sizeof *options)
        return starlin__error(STARLIN_ERR_INVALID, "options: struct_size is %zu, this version knows %zu",
                              options->struct_size, sizeof *options);
    if (options != NULL && options->reduction != STARLIN_REDUCTION_NATIVE &&
        options->reduction != STARLIN_REDUCTION_F32)
        return starlin__error(STARLIN_ERR_INVALID,
                              "options: reduction is %d, allowed are 0 (native) and 1 (f32)",
                              (int)options->reduction);
    if (x->context != context || w->context != context || y->context != context)
        return starlin__error(STARLIN_ERR_INVALID, "%s belongs to another context",
                              x->context != context   ? "x"
                              : w->context != context ? "w"
                                                      : "y");
    if (context->failed)
        return starlin__context_failure(context, UINT64_MAX);
    return check_shapes(x, w, y);
}

/* Where the partial sums travel: in y itself, unless they need another dtype or another memory. */
static starlin_status_t choose_sum(const starlin_context_t *context, starlin_matrix_t *y,
                                   starlin_reduction_t reduction, starlin_matrix_t **sum_p)
{
    bool wide = reduction == STARLIN_REDUCTION_F32 && starlin__dtype_is_half(y->dtype);
    bool elsewhere = context->comm->space == STARLIN__DEVICE && y->space != STARLIN__DEVICE;
    starlin_dtype_t dtype = wide ? STARLIN_F32 : y->dtype;

    if (!wide && !elsewhere) {
        *sum_p = y;
        return STARLIN_SUCCESS;
    }
    if (y->partial != NULL && y->partial->dtype != dtype) {
        (void)starlin__matrix_wait_launched(y); /* it has no count of operators of its own */
        starlin_matrix_destroy(y->partial);
        y->partial = NULL;
    }
    if (y->partial == NULL)
        STARLIN__FORWARD(starlin__matrix_create_like(y, dtype, &y->partial));
    *sum_p = y->partial;
    return STARLIN_SUCCESS;
}

/* `manner`: in one piece or not, and whether that is what all ranks do. */
static uint64_t shape_key(const starlin_matrix_t *y, starlin_reduction_t reduction, int64_t manner)
{
    int64_t shape[6] = {y->rows, y->cols, (int64_t)y->dtype, (int64_t)reduction, (int64_t)y->ctas, manner};
    uint64_t key = starlin__hash(STARLIN__HASH_INIT, shape, sizeof shape);
    return starlin__hash(key, y->chunk_rows, y->nchunks * sizeof *y->chunk_rows);
}

static uint64_t ranks_key(const starlin__row_linear_t *linear)
{
    /* matrices that do not lie in one piece, once the others are computed in one, are compared anew: on one
     * rank alone they are an error, at the latest after the time limit, and never a sum of different chunks
     */
    return shape_key(linear->y, linear->reduction, linear->whole | linear->is_apart << 1);
}

/* The first operator of a shape is compared over the ranks, with all that came before it. */
static starlin_status_t agree(starlin_context_t *context, const starlin__row_linear_t *linear)
{
    const starlin_matrix_t *y = linear->y;
    starlin__field_t fields[8];
    char rows[160], ctas[40];

    starlin__rows_text(y->chunk_rows, y->nchunks, rows, sizeof rows);
    starlin__field_set(&fields[0], "the call", "starlin_row_linear");
    starlin__field_set(&fields[1], "M", "%lld", (long long)y->rows);
    starlin__field_set(&fields[2], "N", "%lld", (long long)y->cols);
    starlin__field_set(&fields[3], "the dtype", "%s", starlin_dtype_name(y->dtype));
    starlin__field_set(&fields[4], "the reduction", "%s",
                       linear->reduction == STARLIN_REDUCTION_F32 ? "f32" : "native");
    snprintf(ctas, sizeof ctas, " with collectives of %u CTAs", y->ctas);
    starlin__field_set(&fields[5], "the chunk list", "%s%s%s", rows, y->ctas != 0 ? ctas : "",
                       linear->whole      ? " in one piece"
                       : linear->is_apart ? " that cannot be one piece"
                                          : "");
    starlin__field_set(&fields[6], "the number of operators before", "%llu",
                       (unsigned long long)context->sequence);
    starlin__field_set(&fields[7], "the history of operators", "%016llx",
                       (unsigned long long)context->history);
    return starlin__agree(context, fields, 8);
}

/* Not every rank may have come so far (out of memory): if one has not, none goes on. */
static starlin_status_t agree_ready(starlin_context_t *context, uint64_t key, starlin_status_t status)
{
    starlin__field_t field;
    char text[200];

    if (status == STARLIN_SUCCESS)
        status = remember(context, key, true);
    snprintf(text, sizeof text, "%s", status != STARLIN_SUCCESS ? starlin_last_error() : "");
    starlin__field_set(&field, "row_linear", status == STARLIN_SUCCESS ? "ready" : "refused (%s)", text);
    if (status == STARLIN_SUCCESS) {
        status = starlin__agree(context, &field, 1);
        if (status != STARLIN_SUCCESS)
            forget_last(context);
        return status;
    }
    (void)starlin__agree(context, &field, 1);
    return starlin__error(status, "%s", text);
}

/* Wrong arguments on this rank. The others compare a new shape or what a trial's steps took, and must hear
 * why this rank does not take part; of a known one they would not hear, so their collective times out. */
static starlin_status_t refuse(starlin_context_t *context, starlin__row_linear_t *linear,
                               starlin_status_t status)
{
    const starlin_matrix_t *y = linear->y;
    bool is_ours = context != NULL && y != NULL && y->context == context;
    uint64_t last = 0;
    starlin__field_t fields[8];
    starlin_status_t agreement;
    char text[200];

    if (context == NULL || context->failed)
        return status;
    snprintf(text, sizeof text, "%s", starlin_last_error());
    if (is_ours && y->trial != NULL && starlin__step_refuse(context, y->trial, status))
        return starlin__error(status, "%s", text);
    linear->whole = is_ours && y->trial != NULL && starlin__trial_is_whole(y->trial);
    if (is_ours ? is_known(context, ranks_key(linear), true, &last) : context->sequence > 0)
        return status;
    for (int i = 0; i < 8; i++)
        starlin__field_set(&fields[i], "the call", "starlin_row_linear refused (%s)", text);
    agreement = starlin__agree(context, fields, 8);
    return agreement == STARLIN_SUCCESS ? starlin__error(status, "%s", text) : agreement;
}

static starlin_status_t prepare_pieces(starlin__compute_t *compute, int64_t piece_rows, starlin__gemm_t gemm)
{
    int64_t rest = gemm.m % piece_rows;

    gemm.m = piece_rows;
    STARLIN__FORWARD(compute->ops->prepare(compute, &gemm));
    gemm.m = rest;
    return rest > 0 ? compute->ops->prepare(compute, &gemm) : STARLIN_SUCCESS;
}

/* Workspaces and algorithms, once per shape; workspaces may move, so no gemm may run meanwhile. */
static starlin_status_t prepare(starlin_context_t *context, const starlin__row_linear_t *linear)
{
    const starlin_matrix_t *x = linear->x, *w = linear->w, *sum = linear->sum;
    int64_t shape[6] = {x->cols, x->ld, w->ld, w->rows, (int64_t)sum->dtype, linear->y->piece_rows};
    uint64_t key =
        starlin__hash(shape_key(sum, STARLIN_REDUCTION_NATIVE, linear->whole), shape, sizeof shape);

    key = starlin__hash(key, &x->dtype, sizeof x->dtype);
    if (is_known(context, key, false, &linear->y->prepared_key))
        return STARLIN_SUCCESS;
    starlin__context_drain(context);
    for (size_t i = 0; i < starlin__row_linear_npieces(linear); i++) {
        starlin__gemm_t gemm = starlin__row_linear_gemm(linear, i);
        int64_t piece = linear->whole ? 0 : linear->y->piece_rows;
        if (piece > 0 && piece < gemm.m)
            STARLIN__FORWARD(prepare_pieces(context->compute, piece, gemm));
        else
            STARLIN__FORWARD(context->compute->ops->prepare(context->compute, &gemm));
    }
    return remember(context, key, false);
}

/* Everything that can fail, before the first task. A new shape is compared before and after. */
static starlin_status_t set_up(starlin_context_t *context, starlin__row_linear_t *linear,
                               starlin__chunk_op_t **records_p)
{
    starlin_matrix_t *matrices[3] = {linear->x, linear->w, linear->y};
    uint64_t key = ranks_key(linear);
    bool is_new = !is_known(context, key, true, &linear->y->agreed_key);
    starlin_status_t status;

    if (is_new)
        STARLIN__FORWARD(agree(context, linear));
    status = choose_sum(context, linear->y, linear->reduction, &linear->sum);
    if (status == STARLIN_SUCCESS)
        status = starlin__matrix_check_room(matrices);
    if (status == STARLIN_SUCCESS)
        status = prepare(context, linear);
    if (status == STARLIN_SUCCESS)
        status = starlin__row_linear_acquire(context, linear, records_p);
    if (is_new)
        status = agree_ready(context, key, status);
    if (is_new && status == STARLIN_SUCCESS) /* every rank is here now */
        status = starlin__matrix_register(linear->sum);
    if (status != STARLIN_SUCCESS)
        starlin__row_linear_release(*records_p);
    return status;
}

starlin_status_t starlin__row_linear_submit(starlin_context_t *context, starlin__row_linear_t *linear)
{
    starlin_matrix_t *x = linear->x, *w = linear->w, *y = linear->y;
    uint64_t key = ranks_key(linear);
    starlin__chunk_op_t *records = NULL;

    STARLIN__FORWARD(set_up(context, linear, &records));
    if (context->device != NULL && context->comm->space == STARLIN__HOST)
        y->exposed = linear->sum->exposed = true;
    context->sequence++;
    context->history = starlin__hash(context->history, &key, sizeof key);
    x->is_read = w->is_read = true;
    x->last_sequence = w->last_sequence = y->last_sequence = context->sequence;
    starlin__row_linear_insert(context, linear, records);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_row_linear(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *w,
                                    starlin_matrix_t *y, const starlin_row_linear_options_t *options)
{
    starlin__row_linear_t linear = {.x = x, .w = w, .y = y};
    starlin_status_t status;
    bool joins;

    linear.reduction = options != NULL ? options->reduction : STARLIN_REDUCTION_NATIVE;
    status = check_arguments(context, x, w, y, options);
    if (status != STARLIN_SUCCESS)
        return refuse(context, &linear, status);
    joins = y->trial != NULL && starlin__row_linear_joins(&linear);
    status = starlin__step_begin(context, y->trial, &linear.whole);
    if (linear.whole && !joins) {
        linear.whole = false;
        linear.is_apart = true;
    }
    if (status == STARLIN_SUCCESS)
        status = starlin__row_linear_submit(context, &linear);
    if (status != STARLIN_SUCCESS) {
        starlin__step_close(context); /* its time would be no step's */
        return status;
    }
    if (y->trial != NULL)
        starlin__trial_count(y->trial, joins);
    return STARLIN_SUCCESS;
}
