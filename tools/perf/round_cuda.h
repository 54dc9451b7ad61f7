/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hand on a GPU consists of, besides its gemms: the rounding kernel, and NCCL's collectives. */
#ifndef PERF_ROUND_CUDA_H
#define PERF_ROUND_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif
#include <stdbool.h>
#include <stddef.h>

struct CUstream_st;

/* Rounds f32 to f16 or bf16 on the stream; returns the launch's cudaError_t. */
int perf_round_launch(const float *src, void *dst, size_t count, bool bf16, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
