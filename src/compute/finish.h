/* SPDX-License-Identifier: BSD-3-Clause */
/* The row-wise function `finish`, as the compute backends use it for what rides along with a gemm. */
#ifndef STARLIN_FINISH_H
#define STARLIN_FINISH_H

#include "compute/compute.h"

#ifdef __cplusplus
extern "C" {
#endif

bool starlin__epilogue_empty(const starlin__epilogue_t *epilogue);

/* Arguments of `finish` that turn the product of the gemm, or a block of it that begins at (row, column),
 * into that part of c. The product is f32 or of c's dtype; NULL: c itself, all of it. */
starlin__rowwise_args_t starlin__epilogue_args(const starlin__gemm_t *gemm, int64_t row, int64_t column,
                                               const starlin__view_t *product);

/* starlin__finish.cuda. Only in a build with CUDA. */
int starlin__finish_launch(const starlin__rowwise_args_t *args, void *stream);

#ifdef __cplusplus
}
#endif

#endif
