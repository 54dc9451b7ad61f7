/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tool says to StarPU itself. */
#define _GNU_SOURCE /* StarPU's headers want it */
#include <starpu.h>
#include <starpu_scheduler.h>
#include <stdlib.h>
#include <string.h>

#include "workers.h"

void perf_workers_pause(void)
{
    starpu_pause();
}

void perf_workers_resume(void)
{
    starpu_resume();
}

bool perf_policies_check(const perf_options_t *options, perf_error_t *error)
{
    char names[1024] = "starlin";
    for (struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies(); *policy != NULL;
         policy++) {
        size_t used = strlen(names);
        if ((*policy)->policy_name != NULL)
            snprintf(names + used, sizeof(names) - used, ", %s", (*policy)->policy_name);
    }
    for (size_t i = 0; i < options->npolicies; i++) {
        const char *name = options->policies[i], *found = names;
        size_t length = strlen(name);
        if (strcmp(name, "starlin") == 0 || getenv("STARPU_SCHED_LIB") != NULL)
            continue; /* a library of policies is StarPU's to open */
        do
            found = strstr(found + 1, name);
        while (found != NULL && (found[-1] != ' ' || (found[length] != ',' && found[length] != '\0')));
        if (found == NULL)
            return perf_error_set(error, "--policies: \"%s\" is no scheduling policy here; there are: %.600s",
                                  name, names);
    }
    return true;
}
