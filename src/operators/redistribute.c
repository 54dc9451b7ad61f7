/* SPDX-License-Identifier: BSD-3-Clause */
/* redistribute: y = x in another placement. Stages of a chunk: a collective, with copies where it cannot use
 * the matrices as they lie. */
#include "operators/operators.h"

enum { X, Y };

static starlin_status_t check(const starlin__call_t *call)
{
    const starlin_matrix_t *x = call->operands[X], *y = call->operands[Y];
    starlin_placement_t from = x->placement, to = y->placement;

    STARLIN__FORWARD(starlin__check_dtypes(call));
    STARLIN__FORWARD(starlin__check_cut(call, Y, true));
    STARLIN__FORWARD(starlin__check_cols(call, X, Y, false, "n"));
    if ((from == STARLIN_PARTIAL && (to == STARLIN_REPLICATE || to == STARLIN_SHARD_ROWS)) ||
        (from == STARLIN_SHARD_ROWS && to == STARLIN_REPLICATE) ||
        (from == STARLIN_REPLICATE && to == STARLIN_SHARD_ROWS))
        return STARLIN_SUCCESS;
    return starlin__refuse_placements(call, X, Y);
}

/* The collective's buffers: the matrices, or scratch like them. One buffer for both with one rank and for a
 * sum that stays on every rank. */
static bool is_in_place(const starlin__call_t *call)
{
    return starlin__call_is_alone(call) || call->operands[X]->root == call->operands[Y]->root;
}

static starlin_matrix_layout_t like(const starlin_matrix_t *matrix)
{
    return (starlin_matrix_layout_t){
        .cols = matrix->cols, .dtype = matrix->dtype, .placement = matrix->placement};
}

static void scratch(const starlin__call_t *call, starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH])
{
    const starlin_matrix_t *x = call->operands[X], *y = call->operands[Y];

    if (x->placement == STARLIN_REPLICATE)
        return;
    if (!is_in_place(call) && !starlin__matrix_is_collectable(x))
        layouts[X] = like(x);
    if (!starlin__matrix_is_collectable(y))
        layouts[Y] = like(y);
}

static starlin__collective_kind_t kind_of(const starlin__call_t *call)
{
    if (call->operands[X]->placement == STARLIN_SHARD_ROWS)
        return STARLIN__ALLGATHER;
    return call->operands[Y]->placement == STARLIN_SHARD_ROWS ? STARLIN__REDUCE_SCATTER : STARLIN__ALLREDUCE;
}

static size_t stages(const starlin__call_t *call, size_t chunk, starlin__stage_t *list)
{
    starlin_matrix_t *x = call->operands[X], *y = call->operands[Y];
    starlin_matrix_t *recv = call->scratch[Y] != NULL ? call->scratch[Y] : y, *send = recv;
    size_t count = 0;

    (void)chunk;
    if (x->placement == STARLIN_REPLICATE) {
        list[count++] = starlin__copy_stage(x, y, !starlin__call_is_alone(call));
        return count;
    }
    if (!is_in_place(call))
        send = call->scratch[X] != NULL ? call->scratch[X] : x;
    if (send != x && send->root != x->root)
        list[count++] = starlin__copy_stage(x, send, false);
    list[count++] = starlin__collective(kind_of(call), send, recv);
    if (recv != y)
        list[count++] = starlin__copy_stage(recv, y, false);
    return count;
}

static starlin_status_t operands(const starlin_operation_t *operation,
                                 starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS])
{
    STARLIN__FORWARD(starlin__check_operation(operation, 0));
    layouts[X] = (starlin_matrix_layout_t){
        .cols = operation->n, .dtype = operation->dtype, .placement = operation->from};
    layouts[Y] = layouts[X];
    layouts[Y].placement = operation->to;
    return STARLIN_SUCCESS;
}

const starlin__operator_kind_t starlin__redistribute_kind = {
    .name = "redistribute",
    .names = {"x", "y"},
    .required = 1u << X | 1u << Y,
    .output = Y,
    .in_place = true,
    .check = check,
    .scratch = scratch,
    .stages = stages,
    .operands = operands,
};

starlin_status_t starlin_redistribute(starlin_context_t *context, starlin_matrix_t *x, starlin_matrix_t *y)
{
    starlin__call_t call = {
        .kind = &starlin__redistribute_kind, .context = context, .operands = {[X] = x, [Y] = y}};
    return starlin__graph_submit(&call);
}
