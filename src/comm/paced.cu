// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for a collective's kernel: it holds as many thread blocks and moves as many bytes as a real one,
// for a given time, so that it competes with gemms for SMs and memory. The data does not change.
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>

extern "C" {
#include "machine/device_cuda.h"

#include "comm/comm.h"
}

namespace
{

const unsigned THREADS = 512;
// 16-byte words that a thread has in flight: enough for 4 blocks to keep up with a 200 GB/s link
const unsigned DEPTH = 8;
const size_t SLICE = (size_t)THREADS * DEPTH;

__device__ __forceinline__ uint64_t now_ns()
{
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

// volatile in the assembly: the compiler may neither drop nor merge an access
__device__ __forceinline__ uint4 load(const uint4 *address)
{
    uint4 value;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
    return value;
}

__device__ __forceinline__ void store(uint4 *address, uint4 value)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

__device__ __forceinline__ void touch_slice(uint4 *words, size_t begin, size_t end)
{
    uint4 value[DEPTH];
#pragma unroll
    for (unsigned i = 0; i < DEPTH; i++) {
        const size_t at = begin + i * THREADS + threadIdx.x;
        if (at < end)
            value[i] = load(words + at);
    }
#pragma unroll
    for (unsigned i = 0; i < DEPTH; i++) {
        const size_t at = begin + i * THREADS + threadIdx.x;
        if (at < end)
            store(words + at, value[i]);
    }
}

__device__ __forceinline__ void touch_bytes(unsigned char *bytes, size_t count)
{
    volatile unsigned char *at = bytes;
    if (threadIdx.x < count)
        at[threadIdx.x] = at[threadIdx.x];
}

// head: bytes before the first 16-byte word; tail: bytes behind the last one; both below 16
__global__ void __launch_bounds__(THREADS)
    paced_kernel(unsigned char *buffer, size_t head, size_t nwords, size_t tail, uint64_t time_ns)
{
    const uint64_t start = now_ns();
    uint4 *words = reinterpret_cast<uint4 *>(buffer + head);
    const size_t share = nwords / gridDim.x, rest = nwords % gridDim.x;
    const size_t begin = blockIdx.x * share + (blockIdx.x < rest ? blockIdx.x : rest);
    const size_t end = begin + share + (blockIdx.x < rest ? 1 : 0);
    const size_t nslices = (end - begin + SLICE - 1) / SLICE;

    if (blockIdx.x == 0) {
        touch_bytes(buffer, head);
        touch_bytes(buffer + head + nwords * sizeof(uint4), tail);
    }
    for (size_t i = 0; i < nslices; i++) {
        touch_slice(words, begin + i * SLICE, begin + (i + 1) * SLICE < end ? begin + (i + 1) * SLICE : end);
        // the others wait at the barrier: one thread that spins takes no issue slots worth mentioning
        if (threadIdx.x == 0) {
            const uint64_t due = (uint64_t)((double)time_ns * (double)(i + 1) / (double)nslices);
            while (now_ns() - start < due) {
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        while (now_ns() - start < time_ns) {
        }
    }
}

cudaError_t run(unsigned char *buffer, size_t nbytes, unsigned ctas, double time_us, cudaStream_t stream)
{
    const size_t unaligned = (16 - (uintptr_t)buffer % 16) % 16;
    const size_t head = unaligned < nbytes ? unaligned : nbytes;
    const size_t nwords = (nbytes - head) / sizeof(uint4), tail = (nbytes - head) % sizeof(uint4);
    // rounded up: never faster than the link
    const uint64_t time_ns = time_us > 0 ? (uint64_t)(time_us * 1e3) + 1 : 0;
    paced_kernel<<<ctas, THREADS, 0, stream>>>(buffer, head, nwords, tail, time_ns);
    return cudaGetLastError();
}

starlin_status_t launch(starlin__device_t *device, const starlin__collective_t *collective, unsigned ctas,
                        double time_us)
{
    if (collective->after != NULL)
        STARLIN__FORWARD(device->ops->event_wait(device, collective->after, STARLIN__STREAM_COMM));
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error =
        run(static_cast<unsigned char *>(collective->recv), starlin__collective_nbytes(collective), ctas,
            time_us, starlin__device_cuda_stream(device, STARLIN__STREAM_COMM));
    starlin__device_cuda_leave(device);
    STARLIN__FORWARD(starlin__device_cuda_status(error, "launching the modelled collective"));
    return device->ops->event_record(device, collective->done, STARLIN__STREAM_COMM);
}

int paced_copy(void *buffer, size_t nbytes, unsigned ctas, double time_us, cudaStream_t stream)
{
    return (int)run(static_cast<unsigned char *>(buffer), nbytes, ctas, time_us, stream);
}

} // namespace

extern "C" starlin__paced_copy_fn_t *const starlin__paced_copy = paced_copy;
extern "C" starlin__model_launch_fn_t *const starlin__model_launch = launch;
