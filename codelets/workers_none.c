/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for workers_cuda.c in a build without CUDA. */
#define _POSIX_C_SOURCE 200809L
#include "graph/operator.h"

void starlin__workers_attach(void)
{
}
