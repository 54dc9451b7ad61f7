/* SPDX-License-Identifier: BSD-3-Clause */
/* What the GPU tests share: a device, or the reason why there is none. */
#ifndef STARLIN_TESTS_GPU_H
#define STARLIN_TESTS_GPU_H

#include <stdlib.h>

#include "check.h"
#include "machine/device.h"

/* Is there a device? Prints the reason if not. Uses no CUDA context, so StarPU may still be started. */
static inline bool gpu_is_here(void)
{
    if (starlin__device_cuda != NULL && starlin__device_cuda->count() > 0)
        return true;
    printf("skipped: %s\n",
           starlin__device_cuda == NULL ? "this build has no CUDA" : "no CUDA device is visible");
    return false;
}

/* Exits with 77 where there is no device. */
static inline starlin__device_t *gpu_open(void)
{
    starlin__device_t *device = NULL;
    if (!gpu_is_here())
        exit(77);
    CHECK_STATUS(starlin__device_cuda->create(0, &device), STARLIN_SUCCESS);
    if (device == NULL)
        exit(1);
    return device;
}

/* Contiguous copies of nbytes. */
static inline void gpu_upload(starlin__device_t *device, void *dst, const void *src, size_t nbytes)
{
    CHECK_STATUS(device->ops->copy(device, dst, nbytes, src, nbytes, nbytes, 1), STARLIN_SUCCESS);
}

static inline void gpu_download(starlin__device_t *device, void *dst, const void *src, size_t nbytes)
{
    CHECK_STATUS(device->ops->copy(device, dst, nbytes, src, nbytes, nbytes, 1), STARLIN_SUCCESS);
}

#endif
