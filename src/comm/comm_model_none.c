/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for comm_model_cuda.c in a build without CUDA. */
#include "comm/comm_model.h"

const starlin__model_device_t *const starlin__model_device = NULL;
