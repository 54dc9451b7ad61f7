/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of one row-parallel linear: chunk by chunk, or all chunks in one piece. */
#ifndef STARLIN_ROW_LINEAR_INSERT_H
#define STARLIN_ROW_LINEAR_INSERT_H

#include "graph/operator.h"

/* One operator that has been checked. */
typedef struct starlin__row_linear {
    starlin_matrix_t *x, *w, *y;
    starlin_matrix_t *sum; /* where the ranks' partial sums travel: y, or its partial matrix */
    starlin_reduction_t reduction;
    bool whole;    /* one gemm and one collective over all chunks, which remain chunks for everybody else */
    bool is_apart; /* it was to be, but this rank's matrices do not allow it */
} starlin__row_linear_t;

/* Can it be computed in one piece: do the chunks of x and y lie in one piece where they are computed and
 * summed? Local. */
bool starlin__row_linear_joins(const starlin__row_linear_t *linear);

/* An operator whose arguments have been checked, all but `sum` set: as starlin_row_linear(). */
starlin_status_t starlin__row_linear_submit(starlin_context_t *context, starlin__row_linear_t *linear);

/* How many pieces it is computed in, and the shape of the gemm of piece i. */
size_t starlin__row_linear_npieces(const starlin__row_linear_t *linear);
starlin__gemm_t starlin__row_linear_gemm(const starlin__row_linear_t *linear, size_t i);

/* The records of all its tasks, linked by `next`, or none. */
starlin_status_t starlin__row_linear_acquire(starlin_context_t *context, const starlin__row_linear_t *linear,
                                             starlin__chunk_op_t **records_p);
/* Gives back records that nothing was inserted for. */
void starlin__row_linear_release(starlin__chunk_op_t *records);

/* Submits the tasks, piece by piece, as operator context->sequence. */
void starlin__row_linear_insert(starlin_context_t *context, const starlin__row_linear_t *linear,
                                starlin__chunk_op_t *records);

#endif
