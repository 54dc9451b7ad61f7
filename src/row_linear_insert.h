/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of one row-parallel linear. Nothing here fails once the records are there. */
#ifndef STARLIN_ROW_LINEAR_INSERT_H
#define STARLIN_ROW_LINEAR_INSERT_H

#include "operator.h"

/* One operator that has been checked. */
typedef struct starlin__row_linear {
    starlin_matrix_t *x, *w, *y;
    starlin_matrix_t *sum; /* where the ranks' partial sums travel: y, or its partial matrix */
    starlin_reduction_t reduction;
} starlin__row_linear_t;

/* Shape of the gemm of chunk i. */
starlin__gemm_t starlin__row_linear_gemm(const starlin__row_linear_t *linear, size_t i);

/* The records of all its tasks, linked by `next`, or none. */
starlin_status_t starlin__row_linear_acquire(starlin_context_t *context, const starlin__row_linear_t *linear,
                                             starlin__chunk_op_t **records_p);
/* Gives back records that nothing was inserted for. */
void starlin__row_linear_release(starlin__chunk_op_t *records);

/* Submits the tasks, chunk by chunk, as operator context->sequence. */
void starlin__row_linear_insert(starlin_context_t *context, const starlin__row_linear_t *linear,
                                starlin__chunk_op_t *records);

#endif
