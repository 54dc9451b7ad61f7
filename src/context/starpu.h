/* SPDX-License-Identifier: BSD-3-Clause */
/* How a context starts StarPU, or finds its way in the application's. */
#ifndef STARLIN_CONTEXT_STARPU_H
#define STARLIN_CONTEXT_STARPU_H

#include "graph/context.h"

/* The GPU of this rank, near its cores. ERR_NO_DEVICE: there are fewer GPUs than ranks, and sharing was not
 * asked for. */
starlin_status_t starlin__context_choose_gpu(starlin_context_t *context, unsigned *gpu_p);
/* Starts StarPU with workers on this rank's cores, or on its GPU alone. */
starlin_status_t starlin__context_start_starpu(starlin_context_t *context, bool on_device, unsigned gpu);
/* Finds the workers that can run gemms, in a StarPU of ours or of the application. */
starlin_status_t starlin__context_count_workers(starlin_context_t *context, bool on_device);

#endif
