/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel behind the modelled link on a device. No CUDA header, so that C files can include it. */
#ifndef STARLIN_PACED_H
#define STARLIN_PACED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads every byte of the device buffer and writes it back unchanged, with `ctas` (> 0) thread blocks of 512
 * threads, each of which spreads its share evenly over time_us from its own start and does not end before.
 * `stream` is a cudaStream_t. Asynchronous; returns the launch's cudaError_t. */
int starlin__paced_launch(void *buffer, size_t nbytes, unsigned ctas, double time_us, void *stream);

#ifdef __cplusplus
}
#endif

#endif
