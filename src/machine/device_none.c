/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for device_cuda.c in a build without CUDA. */
#include "machine/device.h"

const starlin__device_ops_t *const starlin__device_cuda = NULL;
