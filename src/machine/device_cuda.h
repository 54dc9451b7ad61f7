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

/* Translates a CUDA error (which is then cleared for the thread, so that nobody else stumbles over it);
 * `doing` completes "while ...". cudaSuccess gives STARLIN_SUCCESS. */
starlin_status_t starlin__device_cuda_status(cudaError_t error, const char *doing);

#endif
