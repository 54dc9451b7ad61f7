/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry of baselines. */
#include "baseline.h"

static const perf_baseline_ops_t *const registry[] = {&perf_baseline_host_ops, &perf_baseline_device_ops,
                                                      NULL};

const perf_baseline_ops_t *perf_baseline_find(const starlin_context_t *context)
{
    for (size_t i = 0; registry[i] != NULL; i++)
        if (registry[i]->fits(context))
            return registry[i];
    return NULL;
}
