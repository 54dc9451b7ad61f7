/* SPDX-License-Identifier: BSD-3-Clause */
/* A scheduling context that is made when the library gets no memory: it works, and nothing aborts. Linked
 * with
 * --wrap=calloc, so that only the library's own calls fail, not StarPU's. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdlib.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "check.h"
#include "policy/policy.h"

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
static atomic_bool no_memory;
static atomic_int bodies_run;

void *__wrap_calloc(size_t count, size_t size)
{
    return atomic_load(&no_memory) ? NULL : __real_calloc(count, size);
}

static void count(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
    atomic_fetch_add(&bodies_run, 1);
}

static struct starpu_codelet codelet = {.cpu_funcs = {count}, .name = "count"};

int main(void)
{
    starlin__environment_t environment = {0};
    struct starpu_conf conf;
    int worker = 0;

    setenv("STARPU_SILENT", "1", 0);
    setenv("STARPU_WORKERS_NOBIND", "1", 1);
    unsetenv("STARPU_SCHED");
    starpu_conf_init(&conf);
    conf.ncpus = 1;
    CHECK_STATUS(starlin__policy_select(NULL, &conf, &environment), STARLIN_SUCCESS);
    atomic_store(&no_memory, true);
    CHECK_EQ_INT(starpu_init(&conf), 0);
    for (int i = 0; i < 3; i++) { /* StarPU gives the number of a context that is gone to the next */
        unsigned context = starpu_sched_ctx_create(&worker, 1, "second", STARPU_SCHED_CTX_POLICY_STRUCT,
                                                   &starlin__policy, 0);
        for (int j = 0; j < 100; j++) {
            struct starpu_task *task = starpu_task_create();
            task->cl = &codelet;
            CHECK_EQ_INT(j % 2 ? starpu_task_submit_to_ctx(task, context) : starpu_task_submit(task), 0);
        }
        starpu_task_wait_for_all();
        starpu_sched_ctx_delete(context);
    }
    starpu_shutdown();
    CHECK_EQ_INT(bodies_run, 300);
    return CHECK_RESULT();
}
