/* SPDX-License-Identifier: BSD-3-Clause */
/* For task-based applications: the chunks of a matrix as StarPU data handles, in both directions.
 * A context adopts a StarPU that the application has started before starlin_context_create, keeps its
 * policy, and does not stop it. */
#ifndef STARLIN_STARLIN_STARPU_H
#define STARLIN_STARLIN_STARPU_H

#include <starpu.h>

#include "starlin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The handle of chunk i (a StarPU matrix interface: nx = cols, ny = rows of the chunk), for tasks of the
 * application; NULL outside. It belongs to the matrix. A task that is submitted after an operator and reads
 * the handle starts when that chunk is complete, whatever the other chunks do. Local.
 * On a device the first call for a matrix waits for the operators that use it; from then on the matrix's
 * tasks end when the device has really finished them. So ask for handles before submitting operators. */
STARLIN_API starpu_data_handle_t starlin_matrix_chunk_handle(starlin_matrix_t *matrix, size_t i);

/* A matrix over handles that the application registered, one per chunk of `chunking` (one in all without
 * a chunking), with StarPU's matrix, vector or variable interface. Each must hold rows(i) x cols elements
 * contiguously (a matrix interface may have ld > cols for an input). The handles stay the application's and
 * must be unregistered after starlin_matrix_destroy.
 *   layout   rows, cols and dtype of the whole; ld is ignored
 * Local. Errors: ERR_INVALID names the chunk and the sizes. */
STARLIN_API starlin_status_t starlin_matrix_from_handles(starlin_context_t *context,
                                                         const starlin_chunking_t *chunking,
                                                         const starpu_data_handle_t *handles,
                                                         const starlin_matrix_layout_t *layout,
                                                         starlin_matrix_t **matrix_p);

#ifdef __cplusplus
}
#endif

#endif
