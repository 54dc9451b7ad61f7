/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunkings: from operations to row counts. Wrong arguments on one rank are an error on every rank, since all
 * compare what they were asked before anybody plans. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

enum { MOST_OPERATIONS = 4096, SHOWN_OPERATIONS = 12 };
static const int64_t most_rows = (int64_t)1 << 40;

static const starlin__rows_t *rows_of(const starlin_chunking_t *chunking)
{
    static const starlin__rows_t none;
    return chunking != NULL ? chunking->rows : &none;
}

size_t starlin_chunking_count(const starlin_chunking_t *chunking)
{
    return rows_of(chunking)->nchunks;
}

int64_t starlin_chunking_rows(const starlin_chunking_t *chunking, size_t i)
{
    return i < rows_of(chunking)->nchunks ? chunking->rows->chunk_rows[i] : 0;
}

int64_t starlin_chunking_total_rows(const starlin_chunking_t *chunking)
{
    return rows_of(chunking)->m;
}

size_t starlin_chunking_blocks(const starlin_chunking_t *chunking)
{
    return rows_of(chunking)->nblocks;
}

void starlin_chunking_run(const starlin_chunking_t *chunking, size_t i, size_t block, int64_t *first_p,
                          int64_t *rows_p)
{
    const starlin__rows_t *rows = rows_of(chunking);
    bool is_inside = i < rows->nchunks && block < rows->nblocks;

    *first_p = is_inside ? rows->run_first[i * rows->nblocks + block] : 0;
    *rows_p = is_inside ? rows->run_rows[i * rows->nblocks + block] : 0;
}

const char *starlin_chunking_fallback(const starlin_chunking_t *chunking)
{
    return chunking != NULL ? chunking->fallback : NULL;
}

void starlin_chunking_destroy(starlin_chunking_t *chunking)
{
    if (chunking == NULL)
        return;
    starlin__rows_release(chunking->rows);
    starlin__free(chunking->fallback);
    starlin__free(chunking->planning);
    starlin__free(chunking);
}

/* --- checks */

static starlin_status_t check_options(const starlin_chunking_options_t *options, int64_t m,
                                      size_t noperations)
{
    int64_t total = 0;

    if ((options->rows != NULL) != (options->nrows != 0) || (options->count != 0 && options->rows != NULL))
        return starlin__error(
            STARLIN_ERR_INVALID,
            "options: count is %zu, rows %s, nrows %zu; set count, or rows and nrows, or none",
            options->count, options->rows != NULL ? "set" : "NULL", options->nrows);
    if (options->count > STARLIN__MAX_CHUNKS || options->nrows > STARLIN__MAX_CHUNKS)
        return starlin__error(STARLIN_ERR_INVALID, "options: %s is %zu, at most %d chunks are allowed",
                              options->count != 0 ? "count" : "nrows", options->count + options->nrows,
                              STARLIN__MAX_CHUNKS);
    if (options->effort > STARLIN_EFFORT_MEASURE || (int)options->effort < 0)
        return starlin__error(STARLIN_ERR_INVALID, "options: effort is %d, allowed are 0 to %d",
                              (int)options->effort, STARLIN_EFFORT_MEASURE);
    if (noperations == 0 && options->count == 0 && options->rows == NULL)
        return starlin__error(STARLIN_ERR_INVALID,
                              "noperations is 0: without count or rows there is nothing to plan for");
    for (size_t i = 0; i < options->nrows; i++) {
        if (options->rows[i] < 1 || options->rows[i] > m)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "the chunk list's entry %zu is %lld, allowed are 1 to %lld (m)", i,
                                  (long long)options->rows[i], (long long)m);
        total += options->rows[i];
    }
    if (options->rows != NULL && total != m)
        return starlin__error(STARLIN_ERR_INVALID, "the chunk list's sum is %lld, m is %lld",
                              (long long)total, (long long)m);
    return STARLIN_SUCCESS;
}

static starlin_status_t check_range(size_t i, const char *field, int value, int end)
{
    if (value >= 0 && value < end)
        return STARLIN_SUCCESS;
    return starlin__error(STARLIN_ERR_INVALID, "operation %zu: %s is %d, allowed are 0 to %d", i, field,
                          value, end - 1);
}

static starlin_status_t check_operation(const starlin_operation_t *operation, size_t i, int64_t m)
{
    starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS] = {{.cols = 0}};

    STARLIN__FORWARD(check_range(i, "op", (int)operation->op, STARLIN_NOPERATORS));
    STARLIN__FORWARD(check_range(i, "dtype", (int)operation->dtype, STARLIN_BF16 + 1));
    STARLIN__FORWARD(check_range(i, "reduction", (int)operation->reduction, STARLIN_REDUCTION_F32 + 1));
    STARLIN__FORWARD(check_range(i, "from", (int)operation->from, STARLIN_PARTIAL + 1));
    STARLIN__FORWARD(check_range(i, "to", (int)operation->to, STARLIN_PARTIAL + 1));
    STARLIN__FORWARD(check_range(i, "activation", (int)operation->activation, STARLIN_SWIGLU + 1));
    STARLIN__FORWARD(starlin__operators[operation->op]->operands(operation, layouts));
    for (size_t l = 0; l < STARLIN__MOST_OPERANDS; l++) {
        int64_t rows = layouts[l].rows > 0 ? layouts[l].rows : m;
        if (layouts[l].cols > 0 && rows > (int64_t)(PTRDIFF_MAX / 8) / layouts[l].cols)
            return starlin__error(STARLIN_ERR_INVALID,
                                  "operation %zu: %lld rows of %lld columns; a matrix has at most %lld "
                                  "elements",
                                  i, (long long)rows, (long long)layouts[l].cols,
                                  (long long)(PTRDIFF_MAX / 8));
    }
    return STARLIN_SUCCESS;
}

/* Copies what the caller gave into this version's structs, and looks at all of it. */
static starlin_status_t take(starlin__job_t *job, const starlin_operation_t *given,
                             const starlin_chunking_options_t *given_options, starlin_operation_t *operations,
                             starlin_chunking_options_t *options)
{
    size_t stride = given != NULL && given->struct_size != 0 ? given->struct_size : sizeof *given;
    starlin__operands_t operands;
    starlin_status_t status = STARLIN_SUCCESS;

    if (job->m < 1 || job->m > most_rows)
        return starlin__error(STARLIN_ERR_INVALID, "m is %lld, allowed are 1 to 2^40", (long long)job->m);
    STARLIN__FORWARD(starlin__struct_copy(options, sizeof *options, given_options, "options"));
    STARLIN__FORWARD(check_options(options, job->m, job->noperations));
    if (job->noperations > 0 && (given == NULL || operations == NULL))
        return starlin__error(given == NULL ? STARLIN_ERR_INVALID : STARLIN_ERR_NO_MEMORY,
                              "operations is NULL, noperations %zu", job->noperations);
    for (size_t i = 0; i < job->noperations; i++) {
        const void *at = (const char *)given + i * stride;
        STARLIN__FORWARD(starlin__struct_copy(&operations[i], sizeof *operations, at, "an operation"));
        operations[i].struct_size = sizeof *operations;
        STARLIN__FORWARD(check_operation(&operations[i], i, job->m));
        if (operations[i].from == STARLIN_SHARD_ROWS || operations[i].to == STARLIN_SHARD_ROWS)
            options->blocks = true;
    }
    job->nblocks = options->blocks ? (unsigned)job->context->bootstrap->nranks : 1;
    if (job->noperations == 0)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__operands_create(job, &job->m, 1, false, &operands));
    for (size_t i = 0; i < operands.ncalls && status == STARLIN_SUCCESS; i++)
        status = operands.calls[i].kind->check(&operands.calls[i]);
    starlin__operands_destroy(&operands);
    return status;
}

/* --- agreement */

void starlin__operation_text(const starlin_operation_t *operation, bool is_local, char *text, size_t size)
{
    const starlin__operator_kind_t *kind = starlin__operators[operation->op];
    int64_t n = kind->n_differs && !is_local ? -1 : operation->n;
    int64_t k = kind->k_differs && !is_local ? -1 : operation->k;

    snprintf(text, size, "%s,n%lld,k%lld,%s%s,%s-%s,%s%s%s", starlin_operator_name(operation->op),
             (long long)n, (long long)k, starlin_dtype_name(operation->dtype),
             operation->reduction == STARLIN_REDUCTION_F32 ? ",f32-sums" : "",
             starlin_placement_name(operation->from), starlin_placement_name(operation->to),
             starlin_activation_name(operation->activation), operation->bias ? ",bias" : "",
             operation->residual ? ",residual" : "");
}

/* Everything that must be the same on all ranks, the validity of the arguments first. */
static starlin_status_t agree(const starlin__job_t *job, const starlin_chunking_options_t *options,
                              starlin_status_t validity)
{
    starlin__fields_t fields;
    uint64_t others = STARLIN__HASH_INIT;
    char text[200] = "auto";
    bool valid = validity == STARLIN_SUCCESS;

    starlin__fields_open(&fields, "starlin_chunking_plan");
    if (!valid)
        starlin__fields_add(&fields, "m", "refused (%.190s)", starlin_last_error());
    else
        starlin__fields_add(&fields, "m", "%lld", (long long)job->m);
    if (valid && options->rows != NULL)
        starlin__rows_text(options->rows, options->nrows, text, sizeof text);
    else if (valid && options->count != 0)
        snprintf(text, sizeof text, "%zu chunks", options->count);
    for (size_t i = 0; valid && i < options->nrows; i++)
        others = starlin__hash(others, &options->rows[i], sizeof options->rows[i]);
    starlin__fields_add(&fields, "the chunk list", "%s", text);
    starlin__fields_add(&fields, "the number of blocks", "%u", valid ? job->nblocks : 0);
    starlin__fields_add(&fields, "the effort", "%d, %u ms", valid ? (int)options->effort : 0,
                        valid ? options->limit_ms : 0);
    starlin__fields_add(&fields, "the number of operations", "%zu", job->noperations);
    for (size_t i = 0; valid && i < job->noperations; i++) {
        char name[32];
        snprintf(name, sizeof name, "operation %zu", i);
        starlin__operation_text(&job->operations[i], false, text, sizeof text);
        if (i < SHOWN_OPERATIONS)
            starlin__fields_add(&fields, name, "%s", text);
        others = starlin__hash(others, text, strlen(text));
    }
    starlin__fields_add(&fields, "the rest", "%016llx", (unsigned long long)others);
    return starlin__agree(job->context->bootstrap, &fields, job->context->config.timeout_ms);
}

/* --- lists */

static starlin_status_t fixed(const starlin__job_t *job, const starlin_chunking_options_t *options,
                              starlin_chunking_t *chunking)
{
    int64_t rows[STARLIN__MAX_CHUNKS], most = job->m / job->nblocks;
    unsigned block = job->nblocks > 1 ? (unsigned)job->context->bootstrap->rank : 0;
    size_t nchunks, count = most < 1 ? 1 : (int64_t)options->count > most ? (size_t)most : options->count;
    char text[128];

    if (options->rows != NULL)
        return starlin__rows_create(options->rows, options->nrows, job->nblocks, block, &chunking->rows);
    nchunks = starlin__rows_equal_cut(job->m, count, rows);
    STARLIN__FORWARD(starlin__rows_create(rows, nchunks, job->nblocks, block, &chunking->rows));
    if (nchunks == options->count)
        return STARLIN_SUCCESS;
    snprintf(text, sizeof text, "%zu chunk%s instead of %zu: %s only %lld row%s", nchunks,
             nchunks == 1 ? "" : "s", options->count,
             job->nblocks > 1 ? "a rank's block has"
             : job->m == 1    ? "there is"
                              : "there are",
             (long long)most, most == 1 ? "" : "s");
    chunking->fallback = starlin__alloc(sizeof text);
    if (chunking->fallback == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "chunking");
    memcpy(chunking->fallback, text, sizeof text);
    return STARLIN_SUCCESS;
}

static starlin_status_t automatic(starlin__job_t *job, const starlin_chunking_options_t *options,
                                  starlin_chunking_t *chunking)
{
    unsigned block = job->nblocks > 1 ? (unsigned)job->context->bootstrap->rank : 0;
    const starlin__candidate_t *chosen;

    STARLIN__FORWARD(starlin__plan(job, options->effort, &chunking->planning));
    chosen = &chunking->planning->lists[chunking->planning->chosen];
    return starlin__rows_create(chosen->rows, chosen->told.nchunks, job->nblocks, block, &chunking->rows);
}

starlin_status_t starlin_chunking_plan(starlin_context_t *context, int64_t m,
                                       const starlin_operation_t *operations, size_t noperations,
                                       const starlin_chunking_options_t *options,
                                       starlin_chunking_t **chunking_p)
{
    starlin__job_t job = {.context = context, .m = m, .noperations = noperations};
    starlin_chunking_options_t known = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_chunking_t *chunking;
    starlin_operation_t *copies;
    starlin_status_t status, agreement;
    char text[512];

    if (context == NULL || chunking_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", context == NULL ? "context" : "chunking_p");
    chunking = starlin__alloc(sizeof *chunking);
    copies = noperations <= MOST_OPERATIONS ? starlin__alloc((noperations + 1) * sizeof *copies) : NULL;
    job.operations = copies;
    if (noperations > MOST_OPERATIONS)
        status = starlin__error(STARLIN_ERR_INVALID, "noperations is %zu, at most %d are allowed",
                                noperations, MOST_OPERATIONS);
    else if (chunking == NULL || copies == NULL)
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "chunking");
    else
        status = take(&job, operations, options, copies, &known);
    snprintf(text, sizeof text, "%s", status != STARLIN_SUCCESS ? starlin_last_error() : "");
    agreement = agree(&job, &known, status);
    if (agreement != STARLIN_SUCCESS)
        status = agreement;
    else if (status != STARLIN_SUCCESS)
        starlin__error(status, "%s", text); /* every rank refuses the same */
    else if (known.rows != NULL || known.count != 0)
        status = fixed(&job, &known, chunking);
    else {
        job.limit_us = 1e3 * (known.limit_ms != 0 ? known.limit_ms : context->config.plan_ms);
        status = automatic(&job, &known, chunking);
    }
    if (agreement == STARLIN_SUCCESS && text[0] == '\0') /* a rank without a list submits nothing */
        status = starlin__agree_most(context, status, NULL, 0);
    starlin__free(copies);
    if (status != STARLIN_SUCCESS)
        starlin_chunking_destroy(chunking);
    else
        *chunking_p = chunking;
    return status;
}
