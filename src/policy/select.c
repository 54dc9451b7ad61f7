/* SPDX-License-Identifier: BSD-3-Clause */
/* Which policy a context gets. StarPU warns and falls back silently when it does not know a name; here a
 * wrong name is an error before anything starts. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "policy/policy.h"

static bool hidden; /* STARPU_SCHED=starlin has been taken out of the environment */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* "starlin, eager, ..." */
static void list_policies(char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", STARLIN__POLICY_NAME);
    for (struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies();
         *policy != NULL && length < size; policy++)
        if ((*policy)->policy_name != NULL)
            length += (size_t)snprintf(text + length, size - length, ", %s", (*policy)->policy_name);
}

starlin_status_t starlin__policy_check(const char *name)
{
    if (!is_set(name) || strcmp(name, STARLIN__POLICY_NAME) == 0 || strcmp(name, "help") == 0)
        return STARLIN_SUCCESS;
    for (struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies(); *policy != NULL;
         policy++)
        if ((*policy)->policy_name != NULL && strcmp((*policy)->policy_name, name) == 0)
            return STARLIN_SUCCESS;
    if (starlin__policy_in_library(name))
        return STARLIN_SUCCESS;
    char list[2048];
    list_policies(list, sizeof(list));
    return starlin__error(STARLIN_ERR_INVALID, "scheduling policy \"%s\" does not exist; there are: %s", name,
                          list);
}

starlin_status_t starlin__policy_begin(const char *fallback, struct starpu_conf *conf)
{
    const char *asked = getenv("STARPU_SCHED");
    const char *name = is_set(asked) ? asked : fallback;
    STARLIN__FORWARD(starlin__policy_check(name));

    conf->sched_policy_name = NULL;
    conf->sched_policy = NULL;
    if (!is_set(name) || strcmp(name, STARLIN__POLICY_NAME) == 0 || strcmp(name, "help") == 0)
        conf->sched_policy = (struct starpu_sched_policy *)&starlin__policy; /* StarPU copies it */
    else
        conf->sched_policy_name = name;
    if (is_set(asked) && strcmp(asked, STARLIN__POLICY_NAME) == 0)
        hidden = unsetenv("STARPU_SCHED") == 0;
    return STARLIN_SUCCESS;
}

void starlin__policy_end(void)
{
    if (hidden)
        setenv("STARPU_SCHED", STARLIN__POLICY_NAME, 1);
    hidden = false;
}

const char *starlin__policy_running(void)
{
    const struct starpu_sched_policy *policy = starpu_sched_ctx_get_sched_policy(0);
    return policy != NULL && policy->policy_name != NULL ? policy->policy_name : "none";
}
