/* SPDX-License-Identifier: BSD-3-Clause */
/* What operators share: checks with their texts, and the stages that several of them are made of. */
#ifndef STARLIN_OPERATORS_H
#define STARLIN_OPERATORS_H

#include "graph/graph.h"

/* Operands of the linears and of their gradients by the same numbers. */
enum {
    STARLIN__OPERAND_X,
    STARLIN__OPERAND_W,
    STARLIN__OPERAND_Y,
    STARLIN__OPERAND_BIAS,
    STARLIN__OPERAND_RESIDUAL
};

/* Are both of one dtype? Is the matrix cut (over rows), or not (a weight)? Has it these columns? Messages
 * name the operands by the call's names. */
starlin_status_t starlin__check_dtypes(const starlin__call_t *call);
starlin_status_t starlin__check_cut(const starlin__call_t *call, int operand, bool is_cut);
starlin_status_t starlin__check_cols(const starlin__call_t *call, int operand, int other, bool other_rows,
                                     const char *meaning);
/* A [1,N] matrix beside an output of N columns. NULL is fine. */
starlin_status_t starlin__check_vector(const starlin__call_t *call, int operand, int output);
/* Like the other one, in shape, placement and cut. NULL is fine. */
starlin_status_t starlin__check_like(const starlin__call_t *call, int operand, int other);
/* ERR_UNSUPPORTED that names both placements. */
starlin_status_t starlin__refuse_placements(const starlin__call_t *call, int from, int to);

/* Where sums of products go before they are finished: wide where they are rounded later. */
starlin_dtype_t starlin__partial_dtype(const starlin__call_t *call, const starlin_matrix_t *output);

/* Has the call a bias, a residual or an activation? */
bool starlin__has_epilogue(const starlin__call_t *call);

/* The product `c` of a matrix over rows with a weight: the output itself, or what is finished behind it. */
starlin__stage_t starlin__product(const starlin__call_t *call, starlin_matrix_t *a, starlin_matrix_t *c,
                                  bool transpose_b);
starlin__stage_t starlin__collective(starlin__collective_kind_t kind, starlin_matrix_t *send,
                                     starlin_matrix_t *recv);
/* dst = activation(src + bias) + residual, of the call. */
starlin__stage_t starlin__finish_stage(const starlin__call_t *call, starlin_matrix_t *src,
                                       starlin_matrix_t *dst);

/* A product whose sum over the ranks goes to `output`, which may be PARTIAL: gemm, redistribution, finish.
 * Uses scratch 0 for the partial sums and 1 for the received ones. */
void starlin__summed_scratch(const starlin__call_t *call,
                             starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH]);
size_t starlin__summed_stages(const starlin__call_t *call, bool transpose_b, starlin__stage_t *stages);

/* A copy; of the run of this rank's block alone. */
starlin__stage_t starlin__copy_stage(starlin_matrix_t *src, starlin_matrix_t *dst, bool own_run);

/* Operand 0 on every rank: itself, or gathered into scratch 0, through scratch 2 where collectives cannot use
 * it. */
void starlin__gather_scratch(const starlin__call_t *call,
                             starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH]);
starlin_matrix_t *starlin__gather_stages(const starlin__call_t *call, starlin__stage_t *stages,
                                         size_t *count_p);

/* A product of an input that may be SHARD_ROWS: (redistribution,) gemm (, finish). Uses scratch 1 for a wide
 * product.
 */
void starlin__gathered_scratch(const starlin__call_t *call, bool transpose_b,
                               starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH]);
size_t starlin__gathered_stages(const starlin__call_t *call, bool transpose_b, starlin__stage_t *stages);

/* Of both linears: shapes, bias, residual; what ranks compare; the layouts of a planned operation without
 * placements. */
starlin_status_t starlin__check_linear(const starlin__call_t *call);
void starlin__describe_linear(const starlin__call_t *call, starlin__fields_t *fields);
starlin_status_t starlin__linear_operands(const starlin_operation_t *operation,
                                          starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS]);

/* The options of a call, checked: of the linears. Fills operands, reduction, activation. */
starlin_status_t starlin__linear_call(const starlin__operator_kind_t *kind, starlin_context_t *context,
                                      starlin_matrix_t *x, starlin_matrix_t *w, starlin_matrix_t *y,
                                      const starlin_linear_options_t *options, starlin__call_t *call_p);
/* ERR_INVALID for sizes of a planned operation that cannot be. */
starlin_status_t starlin__check_operation(const starlin_operation_t *operation, int64_t least_k);

#endif
