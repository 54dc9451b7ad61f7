/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch operands and agreed figures for planning. */
#include "plan/scratch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN_NBYTES = 1 << 20 };

typedef struct figures {
    double values[STARLIN__MOST_FIGURES];
    int32_t status;
    char text[256]; /* why it is not a success */
} figures_t;

starlin_status_t starlin__agree_max(starlin_context_t *context, starlin_status_t status, double *values,
                                    size_t count)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    figures_t mine = {.status = (int32_t)status}, *all;
    starlin_status_t exchanged;

    if (bootstrap->nranks == 1)
        return status;
    assert(count <= STARLIN__MOST_FIGURES);
    for (size_t i = 0; i < count; i++)
        mine.values[i] = values[i];
    if (status != STARLIN_SUCCESS)
        snprintf(mine.text, sizeof mine.text, "%s", starlin_last_error());
    /* a rank without this memory cannot take part: its peers run into the time limit */
    all = starlin__alloc((size_t)bootstrap->nranks * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "figures of %d ranks", bootstrap->nranks);
    exchanged = bootstrap->ops->allgather(bootstrap, &mine, sizeof mine, all, context->config.timeout_ms);
    for (int rank = 0; exchanged == STARLIN_SUCCESS && rank < bootstrap->nranks; rank++) {
        if (all[rank].status != STARLIN_SUCCESS)
            exchanged =
                starlin__error((starlin_status_t)all[rank].status, "rank %d: %s", rank, all[rank].text);
        for (size_t i = 0; i < count; i++)
            values[i] = all[rank].values[i] > values[i] ? all[rank].values[i] : values[i];
    }
    starlin__free(all);
    return exchanged;
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
        starlin__comm_host_free(context->comm, operand);
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
    bool wide = shape->reduction == STARLIN_REDUCTION_F32 && starlin__dtype_is_half(shape->dtype);
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
