/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies of the library that STARPU_SCHED_LIB names: StarPU 1.4 and later. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdlib.h>

#include "policy/policy.h"

bool starlin__policy_in_library(const char *name)
{
    const char *path = getenv("STARPU_SCHED_LIB");
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL)
        return false;
    struct starpu_sched_policy *(*get)(const char *) = NULL;
    *(void **)&get = dlsym(library, "starpu_get_sched_lib_policy");
    bool found = get != NULL && get(name) != NULL;
    dlclose(library);
    return found;
}
