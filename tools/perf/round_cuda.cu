// SPDX-License-Identifier: BSD-3-Clause
// Rounds f32 to f16 or bf16, to nearest even.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "round_cuda.h"

namespace
{

const unsigned THREADS = 256;
const unsigned MOST_BLOCKS = 4096; // 16 and more for each SM: enough to keep the memory busy

template <typename T> __global__ void round_kernel(const float *src, T *dst, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += gridDim.x * (size_t)THREADS)
        dst[i] = T(src[i]);
}

} // namespace

extern "C" int perf_round_launch(const float *src, void *dst, size_t count, bool bf16,
                                 struct CUstream_st *stream)
{
    const size_t wanted = (count + THREADS - 1) / THREADS;
    const unsigned blocks = wanted < MOST_BLOCKS ? (unsigned)wanted : MOST_BLOCKS;
    if (count == 0)
        return 0;
    if (bf16)
        round_kernel<<<blocks, THREADS, 0, stream>>>(src, static_cast<__nv_bfloat16 *>(dst), count);
    else
        round_kernel<<<blocks, THREADS, 0, stream>>>(src, static_cast<__half *>(dst), count);
    return (int)cudaGetLastError();
}
