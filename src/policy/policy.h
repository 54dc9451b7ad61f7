/* SPDX-License-Identifier: BSD-3-Clause */
/* The StarPU scheduling policy `starlin`, and which policy a context gets. */
#ifndef STARLIN_POLICY_H
#define STARLIN_POLICY_H

#include <starpu.h>

#include "base/config.h"

#define STARLIN__POLICY_NAME "starlin"

/* Ready tasks by task->priority (higher first), equal ones in the order of their submission; every worker
 * takes the first task that it may run. Works with any application's tasks. */
extern const struct starpu_sched_policy starlin__policy;

/* ERR_INVALID lists the policies that exist unless `name` is one of them. NULL, "" and "help" are fine. */
starlin_status_t starlin__policy_check(const char *name);

/* Before starpu_init(): sets the policy in `conf` (STARPU_SCHED if it is set, else `fallback` if it is
 * neither NULL nor "", else ours) and hides a STARPU_SCHED=starlin from StarPU, which knows names of its own
 * only, until the environment is restored. `fallback` must live until StarPU has started. */
starlin_status_t starlin__policy_select(const char *fallback, struct starpu_conf *conf,
                                        starlin__environment_t *environment);

/* Name of the policy that runs in StarPU's first scheduling context; "none" where there is none. */
const char *starlin__policy_running(void);

#endif
