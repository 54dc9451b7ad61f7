/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch operands and agreed figures for planning. */
#include "scratch.h"

#include <string.h>

enum { PATTERN_NBYTES = 1 << 20 };

starlin_status_t starlin__agree_max(starlin_context_t *context, double *values, size_t count)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    size_t nranks = (size_t)bootstrap->nranks;
    double *all;
    starlin_status_t status;

    if (nranks == 1)
        return STARLIN_SUCCESS;
    all = starlin__alloc(nranks * count * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "%zu figures of %zu ranks", count, nranks);
    status =
        bootstrap->ops->allgather(bootstrap, values, count * sizeof *values, all, context->config.timeout_ms);
    for (size_t i = 0; status == STARLIN_SUCCESS && i < nranks * count; i++)
        values[i % count] = all[i] > values[i % count] ? all[i] : values[i % count];
    starlin__free(all);
    return status;
}

static starlin_status_t operand_alloc(starlin_context_t *context, size_t nbytes, void **memory_p)
{
    if (context->device != NULL)
        return context->device->ops->alloc(context->device, nbytes + 1, memory_p);
    *memory_p = starlin__alloc(nbytes + 1);
    return *memory_p != NULL
               ? STARLIN_SUCCESS
               : starlin__error(STARLIN_ERR_NO_MEMORY, "planning needs an operand of %zu bytes", nbytes);
}

static void operand_free(starlin_context_t *context, const void *memory)
{
    void *operand = (void *)(uintptr_t)memory;

    if (context->device != NULL && operand != NULL)
        context->device->ops->free(context->device, operand);
    else if (context->device == NULL)
        starlin__free(operand);
}

/* A pattern from the host, then copies of what is there already. */
static starlin_status_t operand_fill(starlin_context_t *context, void *memory, size_t nbytes,
                                     const void *pattern)
{
    size_t done = nbytes < PATTERN_NBYTES ? nbytes : PATTERN_NBYTES;

    if (nbytes == 0)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(context->device->ops->copy(context->device, memory, done, pattern, done, done, 1));
    while (done < nbytes) {
        size_t part = nbytes - done < done ? nbytes - done : done;
        STARLIN__FORWARD(
            context->device->ops->copy(context->device, (char *)memory + done, part, memory, part, part, 1));
        done += part;
    }
    return STARLIN_SUCCESS;
}

/* As bf16: magnitudes between 0.5 and 2, both signs; harmless numbers in the other dtypes too. */
static uint16_t *pattern_create(void)
{
    uint16_t *pattern = starlin__alloc(PATTERN_NBYTES);
    uint64_t state = 88172645463325252ull;

    for (size_t i = 0; pattern != NULL && i < PATTERN_NBYTES / sizeof *pattern; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern[i] = (uint16_t)((state & 0x80ffu) | 0x3f00u);
    }
    return pattern;
}

static starlin_status_t fill(starlin_context_t *context, void *x, size_t x_nbytes, void *w, size_t w_nbytes)
{
    uint16_t *pattern;
    starlin_status_t status;

    if (context->device == NULL)
        return STARLIN_SUCCESS;
    pattern = pattern_create();
    if (pattern == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "planning");
    status = operand_fill(context, x, x_nbytes, pattern);
    if (status == STARLIN_SUCCESS)
        status = operand_fill(context, w, w_nbytes, pattern);
    starlin__free(pattern);
    return status;
}

starlin_status_t starlin__scratch_create(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                         starlin__scratch_t *scratch_p)
{
    bool wide = shape->reduction == STARLIN_REDUCTION_F32 && starlin_dtype_nbytes(shape->dtype) == 2;
    starlin_dtype_t out_dtype = wide ? STARLIN_F32 : shape->dtype;
    size_t nbytes = starlin_dtype_nbytes(shape->dtype);
    size_t x_nbytes = (size_t)(shape->m * shape->k_local) * nbytes;
    size_t w_nbytes = (size_t)(shape->n * shape->k_local) * nbytes;
    size_t y_nbytes = (size_t)(shape->m * shape->n) * starlin_dtype_nbytes(out_dtype);
    void *x = NULL, *w = NULL, *y = NULL;
    starlin_status_t status;

    status = operand_alloc(context, x_nbytes, &x);
    if (status == STARLIN_SUCCESS)
        status = operand_alloc(context, w_nbytes, &w);
    if (status == STARLIN_SUCCESS)
        status = operand_alloc(context, y_nbytes, &y);
    if (status == STARLIN_SUCCESS)
        status = fill(context, x, x_nbytes, w, w_nbytes);
    scratch_p->gemm = (starlin__gemm_t){.m = shape->m,
                                        .n = shape->n,
                                        .k = shape->k_local,
                                        .x = x,
                                        .w = w,
                                        .y = y,
                                        .ldx = shape->k_local,
                                        .ldw = shape->k_local,
                                        .ldy = shape->n,
                                        .dtype = shape->dtype,
                                        .out_dtype = out_dtype};
    if (status != STARLIN_SUCCESS)
        starlin__scratch_release(context, scratch_p);
    return status;
}

void starlin__scratch_release(starlin_context_t *context, starlin__scratch_t *scratch)
{
    operand_free(context, scratch->gemm.x);
    operand_free(context, scratch->gemm.w);
    operand_free(context, scratch->gemm.y);
    memset(scratch, 0, sizeof *scratch);
}
