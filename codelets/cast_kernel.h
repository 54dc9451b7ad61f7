/* SPDX-License-Identifier: BSD-3-Clause */
/* Launcher of the rounding kernel. No CUDA header, so that C files can include it. */
#ifndef STARLIN_CAST_KERNEL_H
#define STARLIN_CAST_KERNEL_H

#include <stddef.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst[i] = src[i] rounded to nearest even, to bf16 or f16; both in device memory, not overlapping.
 * `stream` is a cudaStream_t. Asynchronous; returns the launch's cudaError_t. */
int starlin__cast_launch(const float *src, void *dst, size_t count, bool bf16, void *stream);

#ifdef __cplusplus
}
#endif

#endif
