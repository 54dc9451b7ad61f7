/* SPDX-License-Identifier: BSD-3-Clause */
/* activation: y = f(x), or silu(x) * up, element by element. One row-wise stage per chunk, no communication.
 */
#include "operators/operators.h"

enum { X, Y, UP };

static starlin_status_t check(const starlin__call_t *call)
{
    const starlin_matrix_t *x = call->operands[X], *y = call->operands[Y], *up = call->operands[UP];

    STARLIN__FORWARD(starlin__check_dtypes(call));
    STARLIN__FORWARD(starlin__check_cut(call, Y, true));
    STARLIN__FORWARD(starlin__check_cols(call, X, Y, false, "n"));
    if (x->placement == STARLIN_PARTIAL || x->placement != y->placement)
        return starlin__refuse_placements(call, X, Y);
    STARLIN__FORWARD(starlin__check_like(call, UP, Y));
    if ((up != NULL) != (call->activation == STARLIN_SWIGLU))
        return starlin__error(STARLIN_ERR_INVALID, "up is %s and the activation %s: only swiglu has an up",
                              up != NULL ? "set" : "NULL", starlin_activation_name(call->activation));
    return STARLIN_SUCCESS;
}

static void describe(const starlin__call_t *call, starlin__fields_t *fields)
{
    starlin__fields_add(fields, "the activation", "%s", starlin_activation_name(call->activation));
}

static size_t stages(const starlin__call_t *call, size_t chunk, starlin__stage_t *list)
{
    bool is_swiglu = call->activation == STARLIN_SWIGLU;

    (void)chunk;
    list[0] = (starlin__stage_t){
        .kind = STARLIN__STAGE_ROWWISE,
        .name = starlin_activation_name(call->activation),
        .naccesses = 5,
        .accesses = {STARLIN__ACCESS(call->operands[Y], STARLIN__WRITE),
                     STARLIN__ACCESS(call->operands[X], STARLIN__READ), STARLIN__ACCESS(NULL, STARLIN__READ),
                     STARLIN__ACCESS(NULL, STARLIN__READ),
                     STARLIN__ACCESS(call->operands[UP], STARLIN__READ)},
        .as.rowwise = {.kind = &starlin__finish, .activation = is_swiglu ? STARLIN_SILU : call->activation}};
    return 1;
}

static starlin_status_t operands(const starlin_operation_t *operation,
                                 starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS])
{
    STARLIN__FORWARD(starlin__check_operation(operation, 0));
    layouts[X] = (starlin_matrix_layout_t){
        .cols = operation->n, .dtype = operation->dtype, .placement = operation->from};
    layouts[Y] = layouts[X];
    if (operation->activation == STARLIN_SWIGLU)
        layouts[UP] = layouts[X];
    return STARLIN_SUCCESS;
}

const starlin__operator_kind_t starlin__activation_kind = {
    .name = "activation",
    .names = {"x", "y", "up"},
    .required = 1u << X | 1u << Y,
    .output = Y,
    .check = check,
    .describe = describe,
    .stages = stages,
    .operands = operands,
};

starlin_status_t starlin_activation(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *y,
                                    const starlin_activation_options_t *options)
{
    starlin__call_t call = {
        .kind = &starlin__activation_kind, .context = context, .operands = {[X] = x, [Y] = y}};
    starlin_activation_options_t known = STARLIN_ACTIVATION_OPTIONS_INIT;
    starlin_status_t status = starlin__struct_copy(&known, sizeof known, options, "options");

    if (status == STARLIN_SUCCESS && starlin_activation_name(known.activation) == NULL)
        status = starlin__error(STARLIN_ERR_INVALID,
                                "options: activation is %d, allowed are 0 (identity) to 5 (swiglu)",
                                (int)known.activation);
    if (status != STARLIN_SUCCESS)
        return starlin__graph_refuse(&call, status);
    call.operands[UP] = known.up;
    call.activation = known.activation;
    return starlin__graph_submit(&call);
}
