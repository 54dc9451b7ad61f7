/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy as a plug-in of a StarPU program that knows nothing of it. The program's own copy is not used:
 * StarPU gets the name alone, from the environment that the test runner sets. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdlib.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "check.h"

static atomic_int bodies_run;

static void count(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
    atomic_fetch_add(&bodies_run, 1);
}

static struct starpu_codelet codelet = {.cpu_funcs = {count}, .name = "count"};

int main(void)
{
    if (getenv("STARPU_SCHED_LIB") == NULL) {
        printf("skipped: StarPU %d.%d loads no policies from libraries\n", STARPU_MAJOR_VERSION,
               STARPU_MINOR_VERSION);
        return 77;
    }
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = 2;
    CHECK_EQ_INT(starpu_init(&conf), 0);
    const struct starpu_sched_policy *policy = starpu_sched_ctx_get_sched_policy(0);
    CHECK(policy != NULL);
    if (policy != NULL)
        CHECK_EQ_STR(policy->policy_name, "starlin");
    for (int i = 0; i < 2000; i++) {
        struct starpu_task *task = starpu_task_create();
        task->cl = &codelet;
        task->priority = i % 7;
        CHECK_EQ_INT(starpu_task_submit(task), 0);
    }
    starpu_task_wait_for_all();
    CHECK_EQ_INT(bodies_run, 2000);
    /* a second context by name makes StarPU load the plug-in again */
    int workers[2] = {0, 1};
    unsigned context =
        starpu_sched_ctx_create(workers, 2, "second", STARPU_SCHED_CTX_POLICY_NAME, "starlin", 0);
    for (int i = 0; i < 200; i++) {
        struct starpu_task *task = starpu_task_create();
        task->cl = &codelet;
        CHECK_EQ_INT(i % 2 ? starpu_task_submit_to_ctx(task, context) : starpu_task_submit(task), 0);
    }
    starpu_task_wait_for_all();
    CHECK_EQ_INT(bodies_run, 2200);
    starpu_sched_ctx_delete(context);
    starpu_shutdown();
    return CHECK_RESULT();
}
