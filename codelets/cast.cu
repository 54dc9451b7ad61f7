// SPDX-License-Identifier: BSD-3-Clause
// f32 to f16 or bf16, rounded to nearest even.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "codelets/cast_kernel.h"

namespace
{

const unsigned THREADS = 256;

__device__ __forceinline__ __half round_to(float value, __half)
{
    return __float2half_rn(value);
}

__device__ __forceinline__ __nv_bfloat16 round_to(float value, __nv_bfloat16)
{
    return __float2bfloat16_rn(value);
}

// 4 elements a thread where both pointers are aligned for it; the tail one by one.
template <typename T> __global__ void cast_kernel(const float *src, T *dst, size_t count, size_t nvectors)
{
    struct alignas(8) vector {
        T element[4];
    };
    const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = first; i < nvectors; i += stride) {
        const float4 in = reinterpret_cast<const float4 *>(src)[i];
        vector out;
        out.element[0] = round_to(in.x, T());
        out.element[1] = round_to(in.y, T());
        out.element[2] = round_to(in.z, T());
        out.element[3] = round_to(in.w, T());
        reinterpret_cast<vector *>(dst)[i] = out;
    }
    for (size_t i = 4 * nvectors + first; i < count; i += stride)
        dst[i] = round_to(src[i], T());
}

template <typename T> int launch(const float *src, T *dst, size_t count, cudaStream_t stream)
{
    const bool aligned = (uintptr_t)src % 16 == 0 && (uintptr_t)dst % 8 == 0;
    const size_t nvectors = aligned ? count / 4 : 0;
    const size_t work = nvectors > 0 ? nvectors : count;
    const size_t wanted = (work + THREADS - 1) / THREADS;
    const unsigned blocks = wanted < 4096 ? (unsigned)wanted : 4096;
    cast_kernel<T><<<blocks, THREADS, 0, stream>>>(src, dst, count, nvectors);
    return (int)cudaGetLastError();
}

} // namespace

extern "C" int starlin__cast_launch(const float *src, void *dst, size_t count, bool bf16, void *stream)
{
    if (count == 0)
        return (int)cudaSuccess;
    if (bf16)
        return launch(src, static_cast<__nv_bfloat16 *>(dst), count, static_cast<cudaStream_t>(stream));
    return launch(src, static_cast<__half *>(dst), count, static_cast<cudaStream_t>(stream));
}
