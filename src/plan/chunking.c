/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunking: from shapes to row counts. Wrong arguments on one rank are an error on every rank, since all
 * compare what they were asked before anybody plans. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "graph/operator.h"
#include "plan/planning.h"
#include "plan/scratch.h"

void starlin__rows_text(const int64_t *rows, size_t nchunks, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < nchunks; i++) {
        char number[24];
        size_t length = (size_t)snprintf(number, sizeof number, "%s%lld", i ? "," : "", (long long)rows[i]);
        if (used + length + 5 > size) {
            snprintf(text + used, size - used, ",...");
            return;
        }
        memcpy(text + used, number, length + 1);
        used += length;
    }
}

starlin_status_t starlin__chunking_create(const int64_t *rows, size_t nchunks, const char *fallback,
                                          starlin_chunking_t **chunking_p)
{
    size_t text_size = fallback != NULL ? strlen(fallback) + 1 : 0;
    starlin_chunking_t *chunking = starlin__alloc(sizeof *chunking + nchunks * sizeof *rows + text_size);

    if (chunking == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "chunking of %zu chunks", nchunks);
    chunking->nchunks = nchunks;
    memcpy(chunking->rows, rows, nchunks * sizeof *rows);
    if (fallback != NULL) {
        chunking->fallback = (char *)&chunking->rows[nchunks];
        memcpy(chunking->fallback, fallback, text_size);
    }
    *chunking_p = chunking;
    return STARLIN_SUCCESS;
}

void starlin_chunking_destroy(starlin_chunking_t *chunking)
{
    if (chunking == NULL)
        return;
    starlin__trial_release(chunking->trial);
    starlin__free(chunking->planning);
    starlin__free(chunking);
}

const starlin__trial_t *starlin__chunking_trial(const starlin_chunking_t *chunking)
{
    return chunking->trial;
}

const starlin__planning_t *starlin__chunking_planning(const starlin_chunking_t *chunking)
{
    return chunking->planning;
}

size_t starlin_chunking_count(const starlin_chunking_t *chunking)
{
    return chunking != NULL ? chunking->nchunks : 0;
}

int64_t starlin_chunking_rows(const starlin_chunking_t *chunking, size_t i)
{
    return chunking != NULL && i < chunking->nchunks ? chunking->rows[i] : 0;
}

int64_t starlin_chunking_total_rows(const starlin_chunking_t *chunking)
{
    int64_t total = 0;
    for (size_t i = 0; i < starlin_chunking_count(chunking); i++)
        total += chunking->rows[i];
    return total;
}

const char *starlin_chunking_fallback(const starlin_chunking_t *chunking)
{
    const char *replaced = NULL;

    if (chunking != NULL && chunking->trial != NULL)
        replaced = starlin__trial_replaced(chunking->trial);
    return replaced != NULL ? replaced : chunking != NULL ? chunking->fallback : NULL;
}

/* More elements than memory can hold? */
static bool product_exceeds(int64_t rows, int64_t cols)
{
    return cols > 0 && rows > (int64_t)(PTRDIFF_MAX / 8) / cols;
}

static starlin_status_t check_shape(const starlin_linear_shape_t *shape, size_t i)
{
    const int64_t limit = (int64_t)1 << 40;

    if (shape->m < 1 || shape->n < 1 || shape->k_local < 0 || shape->m > limit || shape->n > limit ||
        shape->k_local > limit)
        return starlin__error(
            STARLIN_ERR_INVALID,
            "shape %zu: m is %lld, n %lld, k_local %lld; m and n are at least 1, k_local at least 0, all at "
            "most 2^40",
            i, (long long)shape->m, (long long)shape->n, (long long)shape->k_local);
    if (product_exceeds(shape->m, shape->n) || product_exceeds(shape->m, shape->k_local) ||
        product_exceeds(shape->n, shape->k_local))
        return starlin__error(
            STARLIN_ERR_INVALID,
            "shape %zu: m is %lld, n %lld, k_local %lld; a matrix has at most %lld elements", i,
            (long long)shape->m, (long long)shape->n, (long long)shape->k_local,
            (long long)(PTRDIFF_MAX / 8));
    if (starlin_dtype_nbytes(shape->dtype) == 0)
        return starlin__error(STARLIN_ERR_INVALID, "shape %zu: dtype is %d, allowed are 0 (f32) to 3 (bf16)",
                              i, (int)shape->dtype);
    if (shape->reduction != STARLIN_REDUCTION_NATIVE && shape->reduction != STARLIN_REDUCTION_F32)
        return starlin__error(STARLIN_ERR_INVALID,
                              "shape %zu: reduction is %d, allowed are 0 (native) and 1 (f32)", i,
                              (int)shape->reduction);
    return STARLIN_SUCCESS;
}

static starlin_status_t check_rows(const starlin_chunking_options_t *options, int64_t m)
{
    int64_t total = 0;

    if (options->nrows > STARLIN__MAX_CHUNKS)
        return starlin__error(STARLIN_ERR_INVALID, "the chunk list has %zu entries, at most %d are allowed",
                              options->nrows, STARLIN__MAX_CHUNKS);
    for (size_t i = 0; i < options->nrows; i++) {
        if (options->rows[i] < 1 || options->rows[i] > m)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "the chunk list's entry %zu is %lld, allowed are 1 to %lld (M)", i,
                                  (long long)options->rows[i], (long long)m);
        total += options->rows[i];
    }
    if (total != m)
        return starlin__error(STARLIN_ERR_INVALID, "the chunk list's sum is %lld, M is %lld",
                              (long long)total, (long long)m);
    return STARLIN_SUCCESS;
}

static starlin_status_t check_arguments(const starlin_linear_shape_t *shapes, size_t nshapes,
                                        const starlin_chunking_options_t *options)
{
    if (shapes == NULL || nshapes == 0)
        return starlin__error(STARLIN_ERR_INVALID, "there is no shape");
    for (size_t i = 0; i < nshapes; i++) {
        STARLIN__FORWARD(check_shape(&shapes[i], i));
        if (shapes[i].m != shapes[0].m)
            return starlin__error(
                STARLIN_ERR_INVALID,
                "shape %zu has m %lld, shape 0 has %lld: layers of one chain have the same rows", i,
                (long long)shapes[i].m, (long long)shapes[0].m);
    }
    if (options == NULL)
        return STARLIN_SUCCESS;
    if (options->struct_size != sizeof *options)
        return starlin__error(STARLIN_ERR_INVALID, "options: struct_size is %zu, this version knows %zu",
                              options->struct_size, sizeof *options);
    if ((options->rows != NULL) != (options->nrows != 0) || (options->count != 0 && options->rows != NULL))
        return starlin__error(
            STARLIN_ERR_INVALID,
            "options: count is %zu, rows %s, nrows %zu; set count, or rows and nrows, or none",
            options->count, options->rows != NULL ? "set" : "NULL", options->nrows);
    if (options->count > STARLIN__MAX_CHUNKS)
        return starlin__error(STARLIN_ERR_INVALID, "options: count is %zu, at most %d chunks are allowed",
                              options->count, STARLIN__MAX_CHUNKS);
    return options->rows != NULL ? check_rows(options, shapes[0].m) : STARLIN_SUCCESS;
}

/* Everything that must be the same on all ranks, the validity of the arguments first. */
static starlin_status_t agree(starlin_context_t *context, const starlin_linear_shape_t *shapes,
                              size_t nshapes, const starlin_chunking_options_t *options,
                              starlin_status_t validity)
{
    starlin__field_t fields[8];
    uint64_t others = STARLIN__HASH_INIT;
    char request[200] = "auto";
    bool valid = validity == STARLIN_SUCCESS;

    if (valid && options != NULL && options->rows != NULL)
        starlin__rows_text(options->rows, options->nrows, request, sizeof request);
    else if (valid && options != NULL && options->count != 0)
        snprintf(request, sizeof request, "%zu chunks", options->count);
    for (size_t i = 1; valid && i < nshapes; i++) {
        int64_t shape[3] = {shapes[i].n, (int64_t)shapes[i].dtype, (int64_t)shapes[i].reduction};
        others = starlin__hash(others, shape, sizeof shape);
    }
    starlin__field_set(&fields[0], "the call", "starlin_chunking_plan");
    starlin__field_set(&fields[1], "M", "%lld", valid ? (long long)shapes[0].m : -1LL);
    starlin__field_set(&fields[2], "N", "%lld", valid ? (long long)shapes[0].n : -1LL);
    starlin__field_set(&fields[3], "the dtype", "%s", valid ? starlin_dtype_name(shapes[0].dtype) : "");
    starlin__field_set(&fields[4], "the reduction", "%s",
                       valid && shapes[0].reduction == STARLIN_REDUCTION_F32 ? "f32" : "native");
    starlin__field_set(&fields[5], "the chunk list", "%s", request);
    starlin__field_set(&fields[6], "the number of layers", "%zu", nshapes);
    starlin__field_set(&fields[7], "the other layers", "%016llx", (unsigned long long)others);
    if (!valid)
        starlin__field_set(&fields[1], "M", "refused (%.200s)", starlin_last_error());
    return starlin__agree(context, fields, 8);
}

static starlin_status_t fixed(int64_t m, const starlin_chunking_options_t *options,
                              starlin_chunking_t **chunking_p)
{
    int64_t rows[STARLIN__MAX_CHUNKS];
    char fallback[96];
    size_t nchunks;

    if (options->rows != NULL)
        return starlin__chunking_create(options->rows, options->nrows, NULL, chunking_p);
    nchunks = starlin__plan_equal(m, options->count, rows);
    snprintf(fallback, sizeof fallback, "%zu chunk%s instead of %zu: there %s only %lld row%s", nchunks,
             nchunks == 1 ? "" : "s", options->count, m == 1 ? "is" : "are", (long long)m, m == 1 ? "" : "s");
    return starlin__chunking_create(rows, nchunks, nchunks < options->count ? fallback : NULL, chunking_p);
}

/* A plan with more than one chunk is on trial in the first steps. */
static starlin_status_t put_on_trial(const starlin_context_t *context, starlin_chunking_t *chunking)
{
    const starlin__planning_t *planning = chunking->planning;
    bool is_staged = context->device != NULL && context->comm->space == STARLIN__HOST;
    const char *why_not = !context->config.trial ? "STARLIN_TRIAL is off"
                          : is_staged            ? "chunks are summed in copies of their own in main memory"
                                                 : NULL;

    if (chunking->nchunks == 1)
        return STARLIN_SUCCESS;
    chunking->trial =
        starlin__trial_create(chunking->nchunks, planning->plan.serial_us / planning->nsummed, why_not);
    return chunking->trial != NULL ? STARLIN_SUCCESS : starlin__error(STARLIN_ERR_NO_MEMORY, "chunking");
}

static starlin_status_t automatic(starlin_context_t *context, const starlin_linear_shape_t *shapes,
                                  size_t nshapes, starlin_chunking_t **chunking_p)
{
    starlin__planning_t *planning = NULL;
    starlin_chunking_t *chunking = NULL;
    const starlin__plan_t *plan;
    starlin_status_t status;

    STARLIN__FORWARD(starlin__planning_create(context, shapes, nshapes, &planning));
    plan = &planning->plan;
    starlin__log(
        "planned %zu chunks: %.1f us predicted, serial %.1f us, gemm %.1f us, collective %.1f us%s%s",
        plan->nchunks, plan->predicted_us, plan->serial_us, plan->gemm_us, plan->comm_us,
        plan->reason[0] ? "; " : "", plan->reason);
    status =
        starlin__chunking_create(plan->rows, plan->nchunks, plan->reason[0] ? plan->reason : NULL, &chunking);
    if (status == STARLIN_SUCCESS) {
        chunking->planning = planning;
        chunking->ctas = plan->ctas;
        chunking->piece_rows = plan->piece_rows;
        status = put_on_trial(context, chunking);
    } else {
        starlin__free(planning);
    }
    /* a rank without a list submits nothing: the others must not wait for it then */
    status = starlin__agree_max(context, status, NULL, 0);
    if (status == STARLIN_SUCCESS)
        *chunking_p = chunking;
    else
        starlin_chunking_destroy(chunking);
    return status;
}

starlin_status_t starlin_chunking_plan(starlin_context_t *context, const starlin_linear_shape_t *shapes,
                                       size_t nshapes, const starlin_chunking_options_t *options,
                                       starlin_chunking_t **chunking_p)
{
    starlin_status_t validity, agreement;

    if (context == NULL || chunking_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", context == NULL ? "context" : "chunking_p");
    validity = check_arguments(shapes, nshapes, options);
    agreement = agree(context, shapes, nshapes, options, validity);
    if (validity != STARLIN_SUCCESS && agreement == STARLIN_SUCCESS)
        return check_arguments(shapes, nshapes, options); /* every rank refuses the same */
    STARLIN__FORWARD(agreement);
    if (options != NULL && (options->rows != NULL || options->count != 0))
        return fixed(shapes[0].m, options, chunking_p);
    return automatic(context, shapes, nshapes, chunking_p);
}
