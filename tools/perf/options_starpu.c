/* SPDX-License-Identifier: BSD-3-Clause */
/* --policies against what StarPU has, before anything starts. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "options.h"
#include "policy/policy.h"

bool perf_options_check_policies(const perf_options_t *options, perf_error_t *error)
{
    for (size_t i = 0; i < options->npolicies; i++) {
        const char *name = options->policies[i];
        if (strcmp(name, "help") == 0 || starlin__policy_check(name) != STARLIN_SUCCESS)
            return perf_error_set(error, "--policies: %s",
                                  strcmp(name, "help") == 0 ? "\"help\" is no policy" : starlin_last_error());
    }
    return true;
}
