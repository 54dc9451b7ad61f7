/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded before the CUDA runtime: counts the calls that make or free memory, streams and events, and
 * passes them on. Sees the library and StarPU; NCCL and cuBLAS bring a runtime of their own. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_uint_fast64_t count;
static atomic_bool is_loud;

uint64_t counter_cuda_count(void);
void counter_cuda_loud(int loud);

uint64_t counter_cuda_count(void)
{
    return atomic_load(&count);
}

/* Each counted call is named on stderr. */
void counter_cuda_loud(int loud)
{
    atomic_store(&is_loud, loud != 0);
}

static void *next_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    atomic_fetch_add(&count, 1);
    if (atomic_load(&is_loud))
        fprintf(stderr, "counted: %s\n", name);
    if (function == NULL) {
        fprintf(stderr, "counter_cuda: no %s behind this one\n", name);
        abort();
    }
    return function;
}

#define COUNT(name, parameters, arguments)                                                                   \
    cudaError_t CUDARTAPI name parameters                                                                    \
    {                                                                                                        \
        return ((cudaError_t(*) parameters)next_function(#name))arguments;                                   \
    }

COUNT(cudaMalloc, (void **memory, size_t size), (memory, size))
COUNT(cudaMallocAsync, (void **memory, size_t size, cudaStream_t stream), (memory, size, stream))
COUNT(cudaMallocHost, (void **memory, size_t size), (memory, size))
COUNT(cudaMallocManaged, (void **memory, size_t size, unsigned flags), (memory, size, flags))
COUNT(cudaMallocPitch, (void **memory, size_t *pitch, size_t width, size_t height),
      (memory, pitch, width, height))
COUNT(cudaHostAlloc, (void **memory, size_t size, unsigned flags), (memory, size, flags))
COUNT(cudaHostRegister, (void *memory, size_t size, unsigned flags), (memory, size, flags))
COUNT(cudaHostUnregister, (void *memory), (memory))
COUNT(cudaFree, (void *memory), (memory))
COUNT(cudaFreeAsync, (void *memory, cudaStream_t stream), (memory, stream))
COUNT(cudaFreeHost, (void *memory), (memory))
COUNT(cudaStreamCreate, (cudaStream_t * stream), (stream))
COUNT(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
COUNT(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
      (stream, flags, priority))
COUNT(cudaStreamDestroy, (cudaStream_t stream), (stream))
COUNT(cudaEventCreate, (cudaEvent_t * event), (event))
COUNT(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
COUNT(cudaEventDestroy, (cudaEvent_t event), (event))
