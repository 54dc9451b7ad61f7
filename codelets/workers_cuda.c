/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CUDA workers need before their first task. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "graph/operator.h"

/* Bodies launch on streams of the library. Asking for the worker's own stream once tells StarPU that its
 * streams are known about; otherwise it warns at every worker's first task. */
static void attach(void *arg)
{
    (void)arg;
    (void)starpu_cuda_get_local_stream();
}

void starlin__workers_attach(void)
{
    starpu_execute_on_each_worker(attach, NULL, STARPU_CUDA);
}
