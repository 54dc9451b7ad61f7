/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a job's operations with matrices of their own: shapes to look at, or memory to run on. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "plan/plan.h"

enum { PATTERN_NBYTES = 1 << 20 };

/* Fills the library's memory behind a new matrix, so that none of it is touched for the first time in a step.
 * On a device products of zeros would draw less power and run faster: random signs and mantissas, in every
 * dtype; weights are small, so that a chain's numbers stay finite. */
static starlin_status_t fill(const starlin_matrix_t *matrix)
{
    starlin__device_t *device = matrix->context->device;
    size_t nbytes = (size_t)(matrix->local_rows * matrix->ld) * starlin_dtype_nbytes(matrix->dtype);
    uint16_t *pattern = starlin__alloc(PATTERN_NBYTES);
    unsigned exponent = matrix->rows != NULL ? 0x3f00 : matrix->dtype == STARLIN_F16 ? 0x1c00 : 0x3c00;
    starlin_status_t status = STARLIN_SUCCESS;
    uint64_t state = 88172645463325252ull;

    if (pattern == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "operands to plan with");
    for (size_t i = 0; i < PATTERN_NBYTES / sizeof *pattern; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        pattern[i] = (uint16_t)((state >> 40 & 0x80ff) | exponent);
    }
    for (size_t at = 0; at < nbytes && status == STARLIN_SUCCESS; at += PATTERN_NBYTES) {
        size_t part = nbytes - at < PATTERN_NBYTES ? nbytes - at : PATTERN_NBYTES;
        if (matrix->space == STARLIN__DEVICE)
            status = device->ops->copy(device, (char *)matrix->data + at, part, pattern, part, part, 1);
        else
            memcpy((char *)matrix->data + at, pattern, part);
    }
    starlin__free(pattern);
    return status;
}

static starlin_status_t make(starlin__operands_t *operands, const starlin__call_t *call,
                             starlin__rows_t *rows, const starlin_matrix_layout_t *layout,
                             starlin_matrix_t **matrix_p)
{
    starlin_context_t *context = call->context;
    starlin_matrix_t **matrix = &operands->matrices[operands->nmatrices];

    if (operands->is_real)
        STARLIN__FORWARD(
            starlin__matrix_make(context, rows, NULL, layout, context->compute->ops->space, matrix));
    else
        STARLIN__FORWARD(starlin__matrix_shape(context, rows, layout, matrix));
    operands->nmatrices++;
    *matrix_p = *matrix;
    return operands->is_real ? fill(*matrix) : STARLIN_SUCCESS;
}

static bool is_alike(const starlin_matrix_t *matrix, const starlin_matrix_layout_t *layout)
{
    return matrix->cols == layout->cols && matrix->dtype == layout->dtype &&
           matrix->placement == layout->placement;
}

static starlin_status_t make_call(starlin__operands_t *operands, const starlin_operation_t *operation,
                                  starlin__rows_t *rows, starlin__call_t *call)
{
    const starlin__operator_kind_t *kind = call->kind;
    starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS] = {{.cols = 0}};
    starlin_matrix_layout_t scratch[STARLIN__MOST_SCRATCH] = {{.cols = 0}};
    const starlin__call_t *earlier = call > operands->calls ? call - 1 : NULL;

    STARLIN__FORWARD(kind->operands(operation, layouts));
    for (unsigned i = 0; i < STARLIN__MOST_OPERANDS && kind->names[i] != NULL; i++) {
        starlin_matrix_t *before =
            i == 0 && earlier != NULL ? earlier->operands[earlier->kind->output] : NULL;
        if (layouts[i].rows == 0 && layouts[i].cols == 0 && !(kind->required >> i & 1))
            continue;
        if (before != NULL && is_alike(before, &layouts[i]))
            call->operands[i] = before;
        else
            STARLIN__FORWARD(
                make(operands, call, layouts[i].rows == 0 ? rows : NULL, &layouts[i], &call->operands[i]));
    }
    if (!operands->is_real && kind->scratch != NULL)
        kind->scratch(call, scratch);
    for (unsigned i = 0; i < STARLIN__MOST_SCRATCH; i++)
        if (scratch[i].cols > 0)
            STARLIN__FORWARD(make(operands, call, rows, &scratch[i], &call->scratch[i]));
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__operands_create(const starlin__job_t *job, const int64_t *rows, size_t nchunks,
                                          bool is_real, starlin__operands_t *operands)
{
    size_t most = job->noperations * (STARLIN__MOST_OPERANDS + STARLIN__MOST_SCRATCH);
    unsigned block = job->nblocks > 1 ? (unsigned)job->context->bootstrap->rank : 0;
    starlin__rows_t *cut = NULL;
    starlin_status_t status = STARLIN_SUCCESS;

    *operands = (starlin__operands_t){.is_real = is_real};
    operands->calls = starlin__alloc(job->noperations * sizeof *operands->calls);
    operands->matrices = starlin__alloc(most * sizeof *operands->matrices);
    if (operands->calls == NULL || operands->matrices == NULL)
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "operands to plan with");
    else
        status = starlin__rows_create(rows, nchunks, job->nblocks, block, &cut);
    for (size_t i = 0; i < job->noperations && status == STARLIN_SUCCESS; i++) {
        starlin__call_t *call = &operands->calls[operands->ncalls++];
        const starlin_operation_t *operation = &job->operations[i];
        call->kind = starlin__operators[operation->op];
        call->context = job->context;
        call->reduction = operation->reduction;
        call->activation = operation->activation;
        status = make_call(operands, operation, cut, call);
    }
    starlin__rows_release(cut);
    if (status != STARLIN_SUCCESS)
        starlin__operands_destroy(operands);
    return status;
}

/* The text of the last error outlives it. */
void starlin__operands_destroy(starlin__operands_t *operands)
{
    while (operands->nmatrices-- > 0)
        (operands->is_real ? starlin_matrix_destroy
                           : starlin__matrix_free)(operands->matrices[operands->nmatrices]);
    starlin__free(operands->matrices);
    starlin__free(operands->calls);
    memset(operands, 0, sizeof *operands);
}
