/* SPDX-License-Identifier: BSD-3-Clause */
/* W from a safetensors file: an nn.Linear weight [N,K], as it stands in the file. */
#ifndef PERF_WEIGHTS_H
#define PERF_WEIGHTS_H

#include "base/base.h"
#include "safetensors.h"

typedef struct perf_weights {
    perf_safetensors_t *file;
    const perf_tensor_t *tensor;
    starlin_dtype_t dtype; /* of the file */
    int64_t n, k;
} perf_weights_t;

bool perf_weights_open(const char *path, const char *name, perf_weights_t **weights_p, perf_error_t *error);
void perf_weights_close(perf_weights_t *weights); /* NULL does nothing */

/* Elements [column, column + count) of row `row`, rounded to `dtype`, as doubles. */
bool perf_weights_row(const perf_weights_t *weights, int64_t row, int64_t column, int64_t count,
                      starlin_dtype_t dtype, double *values, perf_error_t *error);

#endif
