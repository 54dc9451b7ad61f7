/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the CUDA device, and copies from and to it, in the order of the compute stream. */
#include "machine/device_cuda.h"

/* Forwards a failure of a CUDA call. */
#define TRY(call, doing) STARLIN__FORWARD(starlin__device_cuda_status((call), (doing)))

starlin_status_t starlin__device_cuda_free_nbytes(starlin__device_t *device, size_t *nbytes_p)
{
    size_t total;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error = cudaMemGetInfo(nbytes_p, &total);
    starlin__device_cuda_leave(device);
    return starlin__device_cuda_status(error, "asking for the free memory");
}

void starlin__device_cuda_free(starlin__device_t *device, void *memory)
{
    if (memory == NULL || starlin__device_cuda_enter(device) != STARLIN_SUCCESS)
        return;
    if (cudaFree(memory) != cudaSuccess)
        (void)cudaGetLastError();
    starlin__device_cuda_leave(device);
}

starlin_status_t starlin__device_cuda_alloc(starlin__device_t *device, size_t nbytes, void **memory_p)
{
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMPUTE);
    void *memory = NULL;
    if (nbytes == 0)
        nbytes = 1; /* an address of its own, as for malloc */
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error = cudaMalloc(&memory, nbytes);
    if (error == cudaSuccess) {
        error = cudaMemsetAsync(memory, 0, nbytes, stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    starlin__device_cuda_leave(device);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory on device %u for %zu bytes", device->index,
                              nbytes);
    }
    TRY(error, "allocating device memory");
    *memory_p = memory;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__device_cuda_copy(starlin__device_t *device, void *dst, size_t dst_pitch,
                                           const void *src, size_t src_pitch, size_t width_nbytes,
                                           size_t rows)
{
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMPUTE);
    cudaError_t error;
    if (width_nbytes == 0 || rows == 0)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    if (rows == 1 || (dst_pitch == width_nbytes && src_pitch == width_nbytes))
        error = cudaMemcpyAsync(dst, src, width_nbytes * rows, cudaMemcpyDefault, stream);
    else
        error =
            cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width_nbytes, rows, cudaMemcpyDefault, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    starlin__device_cuda_leave(device);
    return starlin__device_cuda_status(error, "copying between host and device");
}
