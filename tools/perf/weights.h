/* SPDX-License-Identifier: BSD-3-Clause */
/* W from a safetensors file (8 bytes of header length, little endian; a JSON header; the data): an nn.Linear
 * weight [N,K], as it stands in the file. A header is believed only where the file bears it out. Tensors that
 * nobody asked for may be of a dtype or rank that is not known here. */
#ifndef PERF_WEIGHTS_H
#define PERF_WEIGHTS_H

#include "text.h"

#define PERF_TENSOR_MAX_DIMS 8 /* whose sizes are kept */

typedef struct perf_tensor {
    char *name;
    char dtype[16];  /* as in the file: "F32", "BF16", ... */
    size_t itemsize; /* 0: of a dtype that is not known here, with a size that cannot be checked */
    size_t ndims;
    uint64_t shape[PERF_TENSOR_MAX_DIMS];
    uint64_t begin, end; /* bytes within the data */
} perf_tensor_t;

typedef struct perf_safetensors {
    char *path;
    int fd;
    uint64_t data_start; /* byte in the file */
    uint64_t data_nbytes;
    size_t ntensors;
    perf_tensor_t *tensors; /* by rising begin */
} perf_safetensors_t;

/* Opens and checks the whole header. On false nothing stays open. */
bool perf_safetensors_open(const char *path, perf_safetensors_t **file_p, perf_error_t *error);
void perf_safetensors_close(perf_safetensors_t *file); /* NULL does nothing */

/* The tensor of that name; the error shows near names. */
bool perf_safetensors_find(const perf_safetensors_t *file, const char *name, const perf_tensor_t **tensor_p,
                           perf_error_t *error);

/* Copies `nbytes` bytes from byte `offset` of the tensor. */
bool perf_safetensors_read(const perf_safetensors_t *file, const perf_tensor_t *tensor, uint64_t offset,
                           void *dst, size_t nbytes, perf_error_t *error);

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
