/* SPDX-License-Identifier: BSD-3-Clause */
/* What the linears are made of. Where partial sums are finished after they crossed the ranks (another dtype,
 * bias, activation, memory that collectives cannot use), they travel in scratch; else in the output itself.
 */
#include "operators/operators.h"

/* --- checks */

static const char *name_of(const starlin__call_t *call, int operand)
{
    return call->kind->names[operand];
}

starlin_status_t starlin__check_dtypes(const starlin__call_t *call)
{
    const starlin_matrix_t *first = call->operands[0];

    for (int i = 1; i < STARLIN__MOST_OPERANDS && call->kind->names[i] != NULL; i++) {
        const starlin_matrix_t *matrix = call->operands[i];
        if (matrix != NULL && matrix->dtype != first->dtype)
            return starlin__error(STARLIN_ERR_INVALID, "dtypes differ: %s is %s, %s %s", name_of(call, 0),
                                  starlin_dtype_name(first->dtype), name_of(call, i),
                                  starlin_dtype_name(matrix->dtype));
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__check_cut(const starlin__call_t *call, int operand, bool is_cut)
{
    const starlin_matrix_t *matrix = call->operands[operand];

    if (matrix == NULL || (matrix->rows != NULL) == is_cut)
        return STARLIN_SUCCESS;
    if (is_cut)
        return starlin__error(STARLIN_ERR_INVALID, "%s is not cut: it was made without a chunking",
                              name_of(call, operand));
    return starlin__error(STARLIN_ERR_INVALID, "%s has %zu chunks: it must not be cut",
                          name_of(call, operand), matrix->nchunks);
}

starlin_status_t starlin__check_cols(const starlin__call_t *call, int operand, int other, bool other_rows,
                                     const char *meaning)
{
    const starlin_matrix_t *a = call->operands[operand], *b = call->operands[other];
    int64_t expected = other_rows ? b->local_rows : b->cols;

    if (a->cols == expected)
        return STARLIN_SUCCESS;
    return starlin__error(STARLIN_ERR_INVALID, "%s has %lld columns and %s %lld%s: both are %s",
                          name_of(call, operand), (long long)a->cols, name_of(call, other),
                          (long long)expected, other_rows ? " rows" : "", meaning);
}

starlin_status_t starlin__check_vector(const starlin__call_t *call, int operand, int output)
{
    const starlin_matrix_t *vector = call->operands[operand], *matrix = call->operands[output];

    if (vector == NULL)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__check_cut(call, operand, false));
    if (vector->local_rows == 1 && vector->cols == matrix->cols)
        return STARLIN_SUCCESS;
    return starlin__error(STARLIN_ERR_INVALID, "%s is [%lld,%lld], expected [1,%lld]", name_of(call, operand),
                          (long long)vector->local_rows, (long long)vector->cols, (long long)matrix->cols);
}

starlin_status_t starlin__check_like(const starlin__call_t *call, int operand, int other)
{
    const starlin_matrix_t *a = call->operands[operand], *b = call->operands[other];

    if (a == NULL)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__check_cut(call, operand, true));
    if (a->cols == b->cols && a->placement == b->placement)
        return STARLIN_SUCCESS;
    return starlin__error(STARLIN_ERR_INVALID, "%s has %lld columns and is %s, %s has %lld and is %s",
                          name_of(call, operand), (long long)a->cols, starlin_placement_name(a->placement),
                          name_of(call, other), (long long)b->cols, starlin_placement_name(b->placement));
}

starlin_status_t starlin__refuse_placements(const starlin__call_t *call, int from, int to)
{
    return starlin__error(STARLIN_ERR_UNSUPPORTED, "%s from %s (%s) to %s (%s)", call->kind->name,
                          starlin_placement_name(call->operands[from]->placement), name_of(call, from),
                          starlin_placement_name(call->operands[to]->placement), name_of(call, to));
}

starlin_status_t starlin__check_operation(const starlin_operation_t *operation, int64_t least_k)
{
    static const int64_t limit = (int64_t)1 << 40;

    if (operation->n < 0 || operation->k < least_k || operation->n > limit || operation->k > limit)
        return starlin__error(STARLIN_ERR_INVALID, "%s: n is %lld and k %lld; allowed are 0 and %lld to 2^40",
                              starlin_operator_name(operation->op), (long long)operation->n,
                              (long long)operation->k, (long long)least_k);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__check_linear(const starlin__call_t *call)
{
    STARLIN__FORWARD(starlin__check_dtypes(call));
    STARLIN__FORWARD(starlin__check_cut(call, STARLIN__OPERAND_W, false));
    STARLIN__FORWARD(starlin__check_cut(call, STARLIN__OPERAND_Y, true));
    STARLIN__FORWARD(starlin__check_cols(call, STARLIN__OPERAND_X, STARLIN__OPERAND_W, false, "the local k"));
    STARLIN__FORWARD(starlin__check_cols(call, STARLIN__OPERAND_Y, STARLIN__OPERAND_W, true, "n"));
    STARLIN__FORWARD(starlin__check_vector(call, STARLIN__OPERAND_BIAS, STARLIN__OPERAND_Y));
    return starlin__check_like(call, STARLIN__OPERAND_RESIDUAL, STARLIN__OPERAND_Y);
}

void starlin__describe_linear(const starlin__call_t *call, starlin__fields_t *fields)
{
    starlin__fields_add(fields, "the reduction", "%s",
                        call->reduction == STARLIN_REDUCTION_F32 ? "f32" : "native");
    starlin__fields_add(fields, "the activation", "%s", starlin_activation_name(call->activation));
}

starlin_status_t starlin__linear_operands(const starlin_operation_t *operation,
                                          starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS])
{
    starlin_dtype_t dtype = operation->dtype;
    int64_t n = operation->n, k = operation->k;

    STARLIN__FORWARD(starlin__check_operation(operation, 0));
    layouts[STARLIN__OPERAND_X] = (starlin_matrix_layout_t){.cols = k, .dtype = dtype};
    layouts[STARLIN__OPERAND_W] = (starlin_matrix_layout_t){.rows = n, .cols = k, .dtype = dtype};
    layouts[STARLIN__OPERAND_Y] = (starlin_matrix_layout_t){.cols = n, .dtype = dtype};
    if (operation->bias)
        layouts[STARLIN__OPERAND_BIAS] = (starlin_matrix_layout_t){.rows = 1, .cols = n, .dtype = dtype};
    if (operation->residual)
        layouts[STARLIN__OPERAND_RESIDUAL] = (starlin_matrix_layout_t){.cols = n, .dtype = dtype};
    return STARLIN_SUCCESS;
}

/* --- stages */

starlin_dtype_t starlin__partial_dtype(const starlin__call_t *call, const starlin_matrix_t *output)
{
    bool is_wide = call->reduction == STARLIN_REDUCTION_F32 && starlin__dtype_is_half(output->dtype);
    return is_wide ? STARLIN_F32 : output->dtype;
}

starlin__stage_t starlin__product(const starlin__call_t *call, starlin_matrix_t *a, starlin_matrix_t *c,
                                  bool transpose_b)
{
    return (starlin__stage_t){.kind = STARLIN__STAGE_GEMM,
                              .name = "gemm",
                              .naccesses = 3,
                              .accesses = {STARLIN__ACCESS(a, STARLIN__READ),
                                           STARLIN__ACCESS(call->operands[STARLIN__OPERAND_W], STARLIN__READ),
                                           STARLIN__ACCESS(c, STARLIN__WRITE)},
                              .as.gemm.transpose_b = transpose_b};
}

starlin__stage_t starlin__collective(starlin__collective_kind_t kind, starlin_matrix_t *send,
                                     starlin_matrix_t *recv)
{
    bool in_place = send == recv;

    return (starlin__stage_t){.kind = STARLIN__STAGE_COLLECTIVE,
                              .name = starlin__collective_name(kind),
                              .naccesses = in_place ? 1 : 2,
                              .accesses = {STARLIN__ACCESS(send, in_place ? STARLIN__UPDATE : STARLIN__READ),
                                           STARLIN__ACCESS(in_place ? NULL : recv, STARLIN__WRITE)},
                              .as.collective = kind};
}

starlin__stage_t starlin__finish_stage(const starlin__call_t *call, starlin_matrix_t *src,
                                       starlin_matrix_t *dst)
{
    return (starlin__stage_t){
        .kind = STARLIN__STAGE_ROWWISE,
        .name = "finish",
        .naccesses = 4,
        .accesses = {STARLIN__ACCESS(dst, src == dst ? STARLIN__UPDATE : STARLIN__WRITE),
                     STARLIN__ACCESS(src, STARLIN__READ),
                     STARLIN__ACCESS(call->operands[STARLIN__OPERAND_BIAS], STARLIN__READ),
                     STARLIN__ACCESS(call->operands[STARLIN__OPERAND_RESIDUAL], STARLIN__READ)},
        .as.rowwise = {.kind = &starlin__finish, .activation = call->activation}};
}

starlin__stage_t starlin__copy_stage(starlin_matrix_t *src, starlin_matrix_t *dst, bool own_run)
{
    starlin__stage_t stage = {
        .kind = STARLIN__STAGE_ROWWISE,
        .name = "copy",
        .naccesses = 2,
        .accesses = {STARLIN__ACCESS(dst, STARLIN__WRITE), STARLIN__ACCESS(src, STARLIN__READ)},
        .as.rowwise.kind = &starlin__finish};

    stage.accesses[1].own_run = own_run;
    return stage;
}

bool starlin__has_epilogue(const starlin__call_t *call)
{
    return call->operands[STARLIN__OPERAND_BIAS] != NULL ||
           call->operands[STARLIN__OPERAND_RESIDUAL] != NULL || call->activation != STARLIN_IDENTITY;
}

/* --- a product that is summed over the ranks
 *
 * The sum of f16 and bf16 with an epilogue is finished from what crossed the ranks; f32 and f64 sums could be
 * finished in place, but only where the collective can use the output. */

static bool is_scattered(const starlin__call_t *call)
{
    return call->operands[STARLIN__OPERAND_Y]->placement == STARLIN_SHARD_ROWS &&
           !starlin__call_is_alone(call);
}

/* Can the collective's result be the output itself, as far as dtype and memory go? */
static bool is_direct(const starlin__call_t *call)
{
    const starlin_matrix_t *y = call->operands[STARLIN__OPERAND_Y];
    return starlin__partial_dtype(call, y) == y->dtype && starlin__matrix_is_collectable(y);
}

void starlin__summed_scratch(const starlin__call_t *call,
                             starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH])
{
    const starlin_matrix_t *y = call->operands[STARLIN__OPERAND_Y];
    starlin_dtype_t dtype = starlin__partial_dtype(call, y);

    if (y->placement == STARLIN_PARTIAL)
        return;
    if (is_scattered(call) || !is_direct(call))
        layouts[0] = (starlin_matrix_layout_t){.cols = y->cols, .dtype = dtype, .placement = STARLIN_PARTIAL};
    if (is_scattered(call) && !is_direct(call))
        layouts[1] =
            (starlin_matrix_layout_t){.cols = y->cols, .dtype = dtype, .placement = STARLIN_SHARD_ROWS};
}

size_t starlin__summed_stages(const starlin__call_t *call, bool transpose_b, starlin__stage_t *stages)
{
    starlin_matrix_t *y = call->operands[STARLIN__OPERAND_Y];
    starlin_matrix_t *partial = call->scratch[0] != NULL ? call->scratch[0] : y;
    starlin_matrix_t *sum = call->scratch[1] != NULL ? call->scratch[1] : is_scattered(call) ? y : partial;
    size_t count = 0;

    stages[count++] = starlin__product(call, call->operands[0], partial, transpose_b);
    if (y->placement == STARLIN_PARTIAL)
        return count;
    stages[count++] = starlin__collective(
        y->placement == STARLIN_SHARD_ROWS ? STARLIN__REDUCE_SCATTER : STARLIN__ALLREDUCE, partial, sum);
    if (sum != y || starlin__has_epilogue(call))
        stages[count++] = starlin__finish_stage(call, sum, y);
    return count;
}

/* --- a product of an input that may have to be gathered */

/* The gemm with the epilogue in it, if the backend can do that. */
static starlin__stage_t fused(const starlin__call_t *call, starlin_matrix_t *x, bool transpose_b)
{
    starlin__stage_t stage = starlin__product(call, x, call->operands[STARLIN__OPERAND_Y], transpose_b);

    stage.accesses[3] = STARLIN__ACCESS(call->operands[STARLIN__OPERAND_BIAS], STARLIN__READ);
    stage.accesses[4] = STARLIN__ACCESS(call->operands[STARLIN__OPERAND_RESIDUAL], STARLIN__READ);
    stage.naccesses = 5;
    stage.as.gemm.activation = call->activation;
    return stage;
}

static bool fuses(const starlin__call_t *call, bool transpose_b)
{
    const starlin__compute_t *compute = call->context->compute;
    starlin__stage_t stage;
    starlin__gemm_t gemm;

    if (!starlin__has_epilogue(call))
        return true;
    stage = fused(call, call->operands[0], transpose_b);
    gemm = starlin__stage_gemm(&stage, 0);
    /* present, wherever they will lie */
    gemm.epilogue.bias = call->operands[STARLIN__OPERAND_BIAS];
    gemm.epilogue.residual = call->operands[STARLIN__OPERAND_RESIDUAL];
    return compute->ops->fuses(compute, &gemm);
}

void starlin__gather_scratch(const starlin__call_t *call,
                             starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH])
{
    const starlin_matrix_t *x = call->operands[0];

    if (x->placement != STARLIN_SHARD_ROWS)
        return;
    if (!starlin__call_is_alone(call))
        layouts[0] = (starlin_matrix_layout_t){.cols = x->cols, .dtype = x->dtype};
    if (!starlin__matrix_is_collectable(x))
        layouts[2] =
            (starlin_matrix_layout_t){.cols = x->cols, .dtype = x->dtype, .placement = STARLIN_SHARD_ROWS};
}

starlin_matrix_t *starlin__gather_stages(const starlin__call_t *call, starlin__stage_t *stages,
                                         size_t *count_p)
{
    starlin_matrix_t *x = call->operands[0], *gathered;

    if (x->placement != STARLIN_SHARD_ROWS)
        return x;
    if (call->scratch[2] != NULL) {
        stages[(*count_p)++] = starlin__copy_stage(x, call->scratch[2], false);
        x = call->scratch[2];
    }
    gathered = call->scratch[0] != NULL ? call->scratch[0] : x;
    stages[(*count_p)++] = starlin__collective(STARLIN__ALLGATHER, x, gathered);
    return gathered;
}

void starlin__gathered_scratch(const starlin__call_t *call, bool transpose_b,
                               starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH])
{
    const starlin_matrix_t *y = call->operands[STARLIN__OPERAND_Y];

    starlin__gather_scratch(call, layouts);
    if (!fuses(call, transpose_b))
        layouts[1] =
            (starlin_matrix_layout_t){.cols = y->cols,
                                      .dtype = starlin__dtype_is_half(y->dtype) ? STARLIN_F32 : y->dtype,
                                      .placement = STARLIN_SHARD_COLS};
}

size_t starlin__gathered_stages(const starlin__call_t *call, bool transpose_b, starlin__stage_t *stages)
{
    size_t count = 0;
    starlin_matrix_t *x = starlin__gather_stages(call, stages, &count);

    if (call->scratch[1] == NULL) {
        stages[count++] = fused(call, x, transpose_b);
        return count;
    }
    stages[count++] = starlin__product(call, x, call->scratch[1], transpose_b);
    stages[count++] = starlin__finish_stage(call, call->scratch[1], call->operands[STARLIN__OPERAND_Y]);
    return count;
}

/* --- calls */

static starlin_status_t check_options(const starlin_linear_options_t *options)
{
    if (options->reduction != STARLIN_REDUCTION_NATIVE && options->reduction != STARLIN_REDUCTION_F32)
        return starlin__error(STARLIN_ERR_INVALID,
                              "options: reduction is %d, allowed are 0 (native) and 1 (f32)",
                              (int)options->reduction);
    if (starlin_activation_name(options->activation) == NULL || options->activation == STARLIN_SWIGLU)
        return starlin__error(STARLIN_ERR_INVALID,
                              "options: activation is %d, allowed are 0 (identity) to 4 (silu)",
                              (int)options->activation);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__linear_call(const starlin__operator_kind_t *kind, starlin_context_t *context,
                                      starlin_matrix_t *x, starlin_matrix_t *w, starlin_matrix_t *y,
                                      const starlin_linear_options_t *options, starlin__call_t *call_p)
{
    starlin_linear_options_t known = STARLIN_LINEAR_OPTIONS_INIT;
    starlin_status_t status;

    *call_p = (starlin__call_t){.kind = kind, .context = context, .operands = {x, w, y}};
    status = starlin__struct_copy(&known, sizeof known, options, "options");
    if (status == STARLIN_SUCCESS)
        status = check_options(&known);
    if (status != STARLIN_SUCCESS)
        return starlin__graph_refuse(call_p, status);
    call_p->operands[STARLIN__OPERAND_BIAS] = known.bias;
    call_p->operands[STARLIN__OPERAND_RESIDUAL] = known.residual;
    call_p->reduction = known.reduction;
    call_p->activation = known.activation;
    return STARLIN_SUCCESS;
}
