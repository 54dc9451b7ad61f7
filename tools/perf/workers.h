/* SPDX-License-Identifier: BSD-3-Clause */
/* StarPU's workers and policies. */
#ifndef PERF_WORKERS_H
#define PERF_WORKERS_H

#include "options.h"

/* Idle workers spin: they rest while a program by hand runs on their cores. No task is in flight. */
void perf_workers_pause(void);
void perf_workers_resume(void);

/* Does StarPU, or the library, have all of --policies? Starts nothing. */
bool perf_policies_check(const perf_options_t *options, perf_error_t *error);

#endif
