/* SPDX-License-Identifier: BSD-3-Clause */
/* Which policy a context gets. StarPU warns and falls back silently when it does not know a name; here a
 * wrong name is an error before anything starts. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "policy/policy.h"

static bool is_ours(const char *name)
{
    return name == NULL || name[0] == '\0' || strcmp(name, STARLIN__POLICY_NAME) == 0 ||
           strcmp(name, "help") == 0;
}

/* Does the library that STARPU_SCHED_LIB names provide this policy? StarPU before 1.4 loads none. */
static bool in_library(const char *name)
{
    const char *path = starlin__environment_get("STARPU_SCHED_LIB");
    struct starpu_sched_policy *(*get)(const char *) = NULL;
    bool found, loads = STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4;
    void *library = loads && path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (library == NULL)
        return false;
    *(void **)&get = dlsym(library, "starpu_get_sched_lib_policy");
    found = get != NULL && get(name) != NULL;
    dlclose(library);
    return found;
}

starlin_status_t starlin__policy_check(const char *name)
{
    char list[2048];
    size_t length = (size_t)snprintf(list, sizeof(list), "%s", STARLIN__POLICY_NAME);

    if (is_ours(name))
        return STARLIN_SUCCESS;
    for (struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies(); *policy != NULL;
         policy++) {
        const char *known = (*policy)->policy_name;
        if (known != NULL && strcmp(known, name) == 0)
            return STARLIN_SUCCESS;
        if (known != NULL && length < sizeof(list))
            length += (size_t)snprintf(list + length, sizeof(list) - length, ", %s", known);
    }
    return in_library(name)
               ? STARLIN_SUCCESS
               : starlin__error(STARLIN_ERR_INVALID, "scheduling policy \"%s\" does not exist; there are: %s",
                                name, list);
}

starlin_status_t starlin__policy_select(const char *fallback, struct starpu_conf *conf,
                                        starlin__environment_t *environment)
{
    const char *asked = starlin__environment_get("STARPU_SCHED"), *name = asked != NULL ? asked : fallback;

    STARLIN__FORWARD(starlin__policy_check(name));
    conf->sched_policy_name = is_ours(name) ? NULL : name;
    /* StarPU copies it */
    conf->sched_policy = is_ours(name) ? (struct starpu_sched_policy *)&starlin__policy : NULL;
    if (asked != NULL && strcmp(asked, STARLIN__POLICY_NAME) == 0)
        return starlin__environment_set(environment, "STARPU_SCHED", NULL);
    return STARLIN_SUCCESS;
}

const char *starlin__policy_running(void)
{
    const struct starpu_sched_policy *policy = starpu_sched_ctx_get_sched_policy(0);
    return policy != NULL && policy->policy_name != NULL ? policy->policy_name : "none";
}
