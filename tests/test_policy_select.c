/* SPDX-License-Identifier: BSD-3-Clause */
/* Which scheduling policy a context gets, and what a wrong name says. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include <starpu.h>

#include "check.h"
#include "policy/policy.h"

static void set_or_unset(const char *sched)
{
    if (sched == NULL)
        unsetenv("STARPU_SCHED");
    else
        setenv("STARPU_SCHED", sched, 1);
}

static void expect(const char *sched, const char *fallback, const char *running)
{
    starlin__environment_t environment = {0};
    struct starpu_conf conf;
    set_or_unset(sched);
    starpu_conf_init(&conf);
    conf.ncpus = 1;
    CHECK_STATUS(starlin__policy_select(fallback, &conf, &environment), STARLIN_SUCCESS);
    if (sched != NULL && strcmp(sched, "starlin") == 0)
        CHECK(getenv("STARPU_SCHED") == NULL); /* StarPU would warn that it does not know the name */
    CHECK_EQ_INT(starpu_init(&conf), 0);
    starlin__environment_restore(&environment);
    CHECK_EQ_STR(starlin__policy_running(), running);
    const char *after = getenv("STARPU_SCHED");
    if (sched == NULL)
        CHECK(after == NULL);
    else
        CHECK_EQ_STR(after, sched);
    starpu_shutdown();
}

int main(void)
{
    setenv("STARPU_WORKERS_NOBIND", "1", 1);
    unsetenv("STARPU_SCHED_LIB");
    expect(NULL, NULL, "starlin");
    expect(NULL, "", "starlin");
    expect("", "", "starlin");
    expect("starlin", NULL, "starlin");
    expect("starlin", "eager", "starlin");
    expect(NULL, "prio", "prio");
    expect("eager", NULL, "eager");
    expect("eager", "prio", "eager");

    starlin__environment_t environment = {0};
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    set_or_unset("no-such-policy");
    CHECK_STATUS(starlin__policy_select("prio", &conf, &environment), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "\"no-such-policy\"");
    CHECK_CONTAINS(starlin_last_error(), "starlin, ");
    CHECK_CONTAINS(starlin_last_error(), "eager");
    set_or_unset(NULL);
    CHECK_STATUS(starlin__policy_select("Prio", &conf, &environment), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin__policy_check(NULL), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__policy_check("starlin"), STARLIN_SUCCESS);
    return CHECK_RESULT();
}
