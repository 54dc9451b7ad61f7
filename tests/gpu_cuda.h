/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller's own CUDA: streams that are busy for a while, and memory. Include check.h first. */
#ifndef STARLIN_TESTS_GPU_CUDA_H
#define STARLIN_TESTS_GPU_CUDA_H

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <time.h>

#define CHECK_CUDA(call)                                                                                     \
    do {                                                                                                     \
        cudaError_t error__ = (call);                                                                        \
        check_count++;                                                                                       \
        if (error__ != cudaSuccess)                                                                          \
            CHECK_FAIL("%s: %s", #call, cudaGetErrorString(error__));                                        \
    } while (0)

static void CUDART_CB nap(void *us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(uintptr_t)us * 1000}, NULL);
}

/* What is put into the stream from now on starts at least so much later. */
static inline void stream_delay(cudaStream_t stream, unsigned us)
{
    CHECK_CUDA(cudaLaunchHostFunc(stream, nap, (void *)(uintptr_t)us));
}

#endif
