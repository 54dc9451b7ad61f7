/* SPDX-License-Identifier: BSD-3-Clause */
/* row_linear: y = activation(sum over ranks of x w^T + bias) + residual. Stages of a chunk: gemm,
 * redistribution, finish. */
#include "operators/operators.h"

static starlin_status_t check(const starlin__call_t *call)
{
    const starlin_matrix_t *x = call->operands[STARLIN__OPERAND_X], *y = call->operands[STARLIN__OPERAND_Y];

    STARLIN__FORWARD(starlin__check_linear(call));
    if (x->placement != STARLIN_SHARD_COLS || y->placement == STARLIN_SHARD_COLS)
        return starlin__refuse_placements(call, STARLIN__OPERAND_X, STARLIN__OPERAND_Y);
    if (y->placement == STARLIN_PARTIAL && starlin__has_epilogue(call))
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "y is partial: bias, activation and residual belong "
                                                       "behind the sum over the ranks");
    return STARLIN_SUCCESS;
}

static size_t stages(const starlin__call_t *call, size_t chunk, starlin__stage_t *list)
{
    (void)chunk;
    return starlin__summed_stages(call, true, list);
}

static starlin_status_t operands(const starlin_operation_t *operation,
                                 starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS])
{
    STARLIN__FORWARD(starlin__linear_operands(operation, layouts));
    layouts[STARLIN__OPERAND_X].placement = STARLIN_SHARD_COLS;
    layouts[STARLIN__OPERAND_Y].placement = operation->to;
    layouts[STARLIN__OPERAND_RESIDUAL].placement = operation->to;
    return STARLIN_SUCCESS;
}

const starlin__operator_kind_t starlin__row_linear_kind = {
    .name = "row_linear",
    .names = {"x", "w", "y", "bias", "residual"},
    .required = 1u << STARLIN__OPERAND_X | 1u << STARLIN__OPERAND_W | 1u << STARLIN__OPERAND_Y,
    .output = STARLIN__OPERAND_Y,
    .k_differs = true,
    .check = check,
    .describe = starlin__describe_linear,
    .scratch = starlin__summed_scratch,
    .stages = stages,
    .operands = operands,
};

starlin_status_t starlin_row_linear(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *w,
                                    starlin_matrix_t *y, const starlin_linear_options_t *options)
{
    starlin__call_t call;

    STARLIN__FORWARD(starlin__linear_call(&starlin__row_linear_kind, context, x, w, y, options, &call));
    return starlin__graph_submit(&call);
}
