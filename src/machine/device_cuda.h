/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CUDA sources share. Included only by *_cuda.c, *_cublas.c, *_nccl.c and *.cu files. */
#ifndef STARLIN_DEVICE_CUDA_H
#define STARLIN_DEVICE_CUDA_H

#include <cuda_runtime.h>

#include "machine/device.h"

/* The device's stream; non-blocking, so the legacy default stream orders nothing against it. */
cudaStream_t starlin__device_cuda_stream(const starlin__device_t *device, starlin__stream_t which);

/* Makes the device current for the calling thread until the matching leave, which puts the caller's context
 * back, also where the caller had none: going through cudaSetDevice() would give it one. Nests. */
starlin_status_t starlin__device_cuda_enter(const starlin__device_t *device);
void starlin__device_cuda_leave(const starlin__device_t *device);

/* Entries of the device's table, in device_cuda_memory.c. */
starlin_status_t starlin__device_cuda_free_nbytes(starlin__device_t *device, size_t *nbytes_p);
void starlin__device_cuda_free(starlin__device_t *device, void *memory);
starlin_status_t starlin__device_cuda_alloc(starlin__device_t *device, size_t nbytes, void **memory_p);
starlin_status_t starlin__device_cuda_copy(starlin__device_t *device, void *dst, size_t dst_pitch,
                                           const void *src, size_t src_pitch, size_t width_nbytes,
                                           size_t rows);

/* Translates a CUDA error (which is then cleared for the thread, so that nobody else stumbles over it);
 * `doing` completes "while ...". cudaSuccess gives STARLIN_SUCCESS. */
starlin_status_t starlin__device_cuda_status(cudaError_t error, const char *doing);

#endif
