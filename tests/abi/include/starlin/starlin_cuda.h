/* SPDX-License-Identifier: BSD-3-Clause */
/* For callers with device pointers and CUDA streams. Needs no CUDA header: a cudaStream_t is a
 * struct CUstream_st *. Every function leaves the caller's current device as it was. */
#ifndef STARLIN_STARLIN_CUDA_H
#define STARLIN_STARLIN_CUDA_H

#include "starlin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* A matrix over the caller's device memory, on the context's device; otherwise as starlin_matrix_wrap().
 * Local. Errors: ERR_UNSUPPORTED when the context computes on the host, ERR_INVALID. */
STARLIN_API starlin_status_t starlin_matrix_wrap_device(starlin_context_t *context,
                                                        const starlin_chunking_t *chunking, void *device_data,
                                                        const starlin_matrix_layout_t *layout,
                                                        starlin_matrix_t **matrix_p);

/* Operators submitted from now on start after everything that is in the caller's stream now (their inputs
 * are being written there, or their outputs read). NULL is the default stream. Local; waits for nothing. For
 * an event, make a stream wait for it with cudaStreamWaitEvent() and pass that stream. */
STARLIN_API starlin_status_t starlin_cuda_operators_wait_stream(starlin_context_t *context,
                                                                struct CUstream_st *stream);

/* What the caller puts into its stream from now on starts after the operators submitted so far that use
 * the matrix. Returns when those are launched, not when they are finished: the host does not wait for
 * the device. Local. Returns the first error known so far, as starlin_matrix_wait() does. ERR_UNSUPPORTED for
 * a matrix whose memory is not on the device. */
STARLIN_API starlin_status_t starlin_cuda_stream_wait_matrix(struct CUstream_st *stream,
                                                             starlin_matrix_t *matrix);

/* The modelled link's stand-in for a collective, for programs that compare themselves with it: a kernel that
 * reads every byte of the device buffer and writes it back unchanged, with `ctas` (> 0) thread blocks of 512
 * threads, each of which spreads its share evenly over time_us from its own start and does not end before.
 * Its place is a stream of the buffer's device, which is current. Asynchronous. Returns the launch's
 * cudaError_t; 801 (cudaErrorNotSupported) in builds without CUDA. */
STARLIN_API int starlin_cuda_paced_copy(void *buffer, size_t nbytes, unsigned ctas, double time_us,
                                        struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
