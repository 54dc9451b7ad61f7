/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading of safetensors files: 8 bytes of header length (little endian), a JSON header, the data.
 * A header is believed only where the file bears it out. */
#ifndef PERF_SAFETENSORS_H
#define PERF_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define PERF_TENSOR_MAX_DIMS 8

typedef struct perf_tensor {
    char *name;
    char dtype[16]; /* as in the file: "F32", "BF16", ... */
    size_t itemsize;
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

/* For safetensors.c: fills in the tensors from the header's text, each one checked by itself. */
bool perf_safetensors_parse(perf_safetensors_t *file, const char *header, size_t nbytes, perf_error_t *error);

#endif
