/* SPDX-License-Identifier: BSD-3-Clause */
/* column_linear: y = activation(x w^T + bias) + residual. Stages of a chunk: (redistribution,) gemm with its
 * finish. */
#include "operators/operators.h"

static starlin_status_t check(const starlin__call_t *call)
{
    const starlin_matrix_t *x = call->operands[STARLIN__OPERAND_X], *y = call->operands[STARLIN__OPERAND_Y];

    STARLIN__FORWARD(starlin__check_linear(call));
    if ((x->placement != STARLIN_REPLICATE && x->placement != STARLIN_SHARD_ROWS) ||
        y->placement != STARLIN_SHARD_COLS)
        return starlin__refuse_placements(call, STARLIN__OPERAND_X, STARLIN__OPERAND_Y);
    return STARLIN_SUCCESS;
}

static void scratch(const starlin__call_t *call, starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH])
{
    starlin__gathered_scratch(call, true, layouts);
}

static size_t stages(const starlin__call_t *call, size_t chunk, starlin__stage_t *list)
{
    (void)chunk;
    return starlin__gathered_stages(call, true, list);
}

static starlin_status_t operands(const starlin_operation_t *operation,
                                 starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS])
{
    STARLIN__FORWARD(starlin__linear_operands(operation, layouts));
    layouts[STARLIN__OPERAND_X].placement = operation->from;
    layouts[STARLIN__OPERAND_Y].placement = STARLIN_SHARD_COLS;
    layouts[STARLIN__OPERAND_RESIDUAL].placement = STARLIN_SHARD_COLS;
    return STARLIN_SUCCESS;
}

const starlin__operator_kind_t starlin__column_linear_kind = {
    .name = "column_linear",
    .names = {"x", "w", "y", "bias", "residual"},
    .required = 1u << STARLIN__OPERAND_X | 1u << STARLIN__OPERAND_W | 1u << STARLIN__OPERAND_Y,
    .output = STARLIN__OPERAND_Y,
    .n_differs = true,
    .check = check,
    .describe = starlin__describe_linear,
    .scratch = scratch,
    .stages = stages,
    .operands = operands,
};

starlin_status_t starlin_column_linear(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *w,
                                       starlin_matrix_t *y, const starlin_linear_options_t *options)
{
    starlin__call_t call;

    STARLIN__FORWARD(starlin__linear_call(&starlin__column_linear_kind, context, x, w, y, options, &call));
    return starlin__graph_submit(&call);
}
