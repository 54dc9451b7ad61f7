/* SPDX-License-Identifier: BSD-3-Clause */
/* The StarPU scheduling policy `starlin`, and which policy a context gets. */
#ifndef STARLIN_POLICY_H
#define STARLIN_POLICY_H

#include <starpu.h>

#include "base/base.h"

#define STARLIN__POLICY_NAME "starlin"

/* Ready tasks by task->priority (higher first), equal ones in the order of their submission; every worker
 * takes the first task that it may run. Works with any application's tasks. */
extern const struct starpu_sched_policy starlin__policy;

/* ERR_INVALID lists the policies that exist unless `name` is one of them. NULL, "" and "help" are fine. */
starlin_status_t starlin__policy_check(const char *name);

/* Around starpu_init(): sets the policy in `conf` (STARPU_SCHED if it is set, else `fallback` if it is
 * neither NULL nor "", else ours) and hides a STARPU_SCHED=starlin from StarPU, which knows names of its own
 * only. `fallback` must live until the end. A begin that fails needs no end. */
starlin_status_t starlin__policy_begin(const char *fallback, struct starpu_conf *conf);
void starlin__policy_end(void);

/* Name of the policy that runs in StarPU's first scheduling context; "none" where there is none. */
const char *starlin__policy_running(void);

/* Does the library that STARPU_SCHED_LIB names provide this policy? False where StarPU has no plug-ins. */
bool starlin__policy_in_library(const char *name);

#endif
