/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy for any StarPU program: STARPU_SCHED_LIB=libstarlin_sched.so STARPU_SCHED=starlin.
 * StarPU looks both functions up by name and copies what the pointers point to. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "policy/policy.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct starpu_sched_policy *starpu_get_sched_lib_policy(const char *name)
{
    return strcmp(name, STARLIN__POLICY_NAME) == 0 ? (struct starpu_sched_policy *)&starlin__policy : NULL;
}

EXPORTED struct starpu_sched_policy **starpu_get_sched_lib_policies(void)
{
    static struct starpu_sched_policy *policies[] = {(struct starpu_sched_policy *)&starlin__policy, NULL};
    return policies;
}
