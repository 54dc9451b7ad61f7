/* SPDX-License-Identifier: BSD-3-Clause */
/* The scheduling policy: order, completeness, tasks that not every worker may run, contexts. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <starpu.h>
#include <starpu_expert.h>
#include <starpu_scheduler.h>

#include "check.h"
#include "watchdog.h"
#include "policy/policy.h"

#define NTASKS   4000
#define NHANDLES 48
#define NORDERED 500

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

static bool start(int ncpus)
{
    starlin__environment_t environment = {0};
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = ncpus;
    CHECK_STATUS(starlin__policy_select(NULL, &conf, &environment), STARLIN_SUCCESS);
    int ret = starpu_init(&conf);
    starlin__environment_restore(&environment);
    CHECK_EQ_INT(ret, 0);
    CHECK_EQ_STR(starlin__policy_running(), "starlin");
    return ret == 0;
}

/* ------------------------------------------------------------------ dependencies */

static atomic_int wrong_values, bodies_run;

typedef struct expected {
    int before[3];
} expected_t;

static void step(void *buffers[], void *arg)
{
    const expected_t *expected = arg;
    int *written = (int *)STARPU_VARIABLE_GET_PTR(buffers[0]);
    for (int i = 0; i < 3; i++)
        if (*(const int *)STARPU_VARIABLE_GET_PTR(buffers[i]) != expected->before[i])
            atomic_fetch_add(&wrong_values, 1);
    ++*written;
    atomic_fetch_add(&bodies_run, 1);
}

static struct starpu_codelet step_codelet = {
    .cpu_funcs = {step}, .nbuffers = 3, .modes = {STARPU_RW, STARPU_R, STARPU_R}, .name = "step"};

static void test_dependencies(void)
{
    static int values[NHANDLES], written[NHANDLES];
    static expected_t expected[NTASKS];
    starpu_data_handle_t handles[NHANDLES];
    for (int i = 0; i < NHANDLES; i++) {
        values[i] = written[i] = 0;
        starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&values[i], sizeof(int));
    }
    wrong_values = bodies_run = 0;
    for (int i = 0; i < NTASKS; i++) {
        uint32_t a = random_below(NHANDLES), b = (a + 1 + random_below(20)) % NHANDLES,
                 c = (b + 1 + random_below(20)) % NHANDLES;
        expected[i] = (expected_t){{written[a], written[b], written[c]}};
        written[a]++;
        struct starpu_task *task = starpu_task_create();
        task->cl = &step_codelet;
        task->handles[0] = handles[a];
        task->handles[1] = handles[b];
        task->handles[2] = handles[c];
        task->cl_arg = &expected[i];
        task->priority = (int)random_below(2000) - 1000;
        CHECK_EQ_INT(starpu_task_submit(task), 0);
    }
    starpu_task_wait_for_all();
    CHECK_EQ_INT(bodies_run, NTASKS);
    CHECK_EQ_INT(wrong_values, 0);
    for (int i = 0; i < NHANDLES; i++)
        starpu_data_unregister(handles[i]);
}

/* ------------------------------------------------------------------ order */

static atomic_bool gate;
static int order[NORDERED];
static int norder;

static void wait_at_gate(void *buffers[], void *arg)
{
    const struct timespec pause = {.tv_nsec = 100000};
    (void)buffers;
    (void)arg;
    while (!atomic_load(&gate))
        nanosleep(&pause, NULL);
}

static void record(void *buffers[], void *arg)
{
    (void)buffers;
    order[norder++] = (int)(intptr_t)arg;
}

static struct starpu_codelet gate_codelet = {.cpu_funcs = {wait_at_gate}, .name = "gate"};
static struct starpu_codelet record_codelet = {.cpu_funcs = {record}, .name = "record"};

static struct starpu_task *submit(struct starpu_codelet *codelet, void *arg, int priority)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = codelet;
    task->cl_arg = arg;
    task->priority = priority;
    CHECK_EQ_INT(starpu_task_submit(task), 0);
    return task;
}

/* One worker, everything ready before it may begin: by priority, then as submitted. */
static void test_order(void)
{
    int priorities[NORDERED];
    norder = 0;
    gate = false;
    submit(&gate_codelet, NULL, STARPU_MAX_PRIO);
    const struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL); /* the worker has taken the gate */
    for (int i = 0; i < NORDERED; i++) {
        priorities[i] = (int)random_below(20) - 10;
        submit(&record_codelet, (void *)(intptr_t)i, priorities[i]);
    }
    gate = true;
    starpu_task_wait_for_all();
    CHECK_EQ_INT(norder, NORDERED);
    int misplaced = 0;
    for (int i = 1; i < norder; i++) {
        int a = order[i - 1], b = order[i];
        misplaced += !(priorities[a] > priorities[b] || (priorities[a] == priorities[b] && a < b));
    }
    CHECK_EQ_INT(misplaced, 0);
}

/* ------------------------------------------------------------------ restrictions */

static atomic_int misplaced_tasks;

/* arg: the mask of workers that may run the task */
static void check_worker(void *buffers[], void *arg)
{
    (void)buffers;
    if (!((uintptr_t)arg >> starpu_worker_get_id() & 1))
        atomic_fetch_add(&misplaced_tasks, 1);
    atomic_fetch_add(&bodies_run, 1);
}

static int only_odd(unsigned worker, struct starpu_task *task, unsigned implementation)
{
    (void)task;
    (void)implementation;
    return worker % 2 == 1;
}

/* StarPU cannot know that it refuses the first few times it is asked. */
static atomic_int refusals;
static int late(unsigned worker, struct starpu_task *task, unsigned implementation)
{
    (void)worker;
    (void)task;
    (void)implementation;
    return task->scheduled == 0 || atomic_fetch_sub(&refusals, 1) <= 0;
}

static struct starpu_codelet worker_codelet = {.cpu_funcs = {check_worker}, .name = "anywhere"};
static struct starpu_codelet odd_codelet = {
    .cpu_funcs = {check_worker}, .can_execute = only_odd, .name = "odd"};
static struct starpu_codelet late_codelet = {
    .cpu_funcs = {check_worker}, .can_execute = late, .name = "late"};

static void test_restrictions(unsigned nworkers)
{
    static uint32_t masks[NTASKS];
    int submitted = 0;
    misplaced_tasks = bodies_run = 0;
    refusals = 50;
    for (int i = 0; i < NTASKS; i++) {
        uint32_t all = (1u << nworkers) - 1, kind = random_below(nworkers > 1 ? 5 : 4);
        struct starpu_task *task = starpu_task_create();
        task->cl = &worker_codelet;
        task->priority = (int)random_below(5);
        masks[i] = all;
        if (kind == 0) {
            task->execute_on_a_specific_worker = 1;
            task->workerid = random_below(nworkers);
            masks[i] = 1u << task->workerid;
        } else if (kind == 1) {
            masks[i] = 1 + random_below(all);
            task->workerids = &masks[i];
            task->workerids_len = 1;
        } else if (kind == 2) {
            task->cl = &late_codelet;
        } else if (kind == 4) {
            task->cl = &odd_codelet;
            masks[i] = all & 0xaaaaaaaau;
        }
        task->cl_arg = (void *)(uintptr_t)masks[i];
        submitted += starpu_task_submit(task) == 0;
    }
    starpu_task_wait_for_all();
    CHECK_EQ_INT(submitted, NTASKS);
    CHECK_EQ_INT(bodies_run, NTASKS);
    CHECK_EQ_INT(misplaced_tasks, 0);
}

static void open_gate(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
    gate = true;
}

static struct starpu_codelet opener_codelet = {.cpu_funcs = {open_gate}, .name = "opener"};

static unsigned sleep_when_idle(void *arg)
{
    const struct timespec pause = {.tv_nsec = 20000};
    (void)arg;
    nanosleep(&pause, NULL);
    return 1;
}

/* Worker 0 is idle as far as the policy knows, yet blocked by a task pinned to it, which only another task
 * can free: a policy that counts on worker 0 hangs. `settle`: the pinned task has begun before the other
 * comes. Every round is a chain of threads that wait for each other; were the idle ones to keep their cores
 * for as long as the system lets them, a loaded machine would need minutes. */
static void test_busy_worker(bool settle)
{
    const struct timespec pause = {.tv_nsec = 300000};
    int hook = starpu_idle_hook_register(sleep_when_idle, NULL);
    for (int i = 0; i < 200; i++) {
        gate = false;
        nanosleep(&pause, NULL); /* all are idle */
        struct starpu_task *task = starpu_task_create();
        task->cl = &gate_codelet;
        task->execute_on_a_specific_worker = 1;
        CHECK_EQ_INT(starpu_task_submit(task), 0);
        if (settle)
            nanosleep(&pause, NULL);
        submit(&opener_codelet, NULL, 0);
        starpu_task_wait_for_all();
    }
    starpu_idle_hook_deregister(hook);
}

/* ------------------------------------------------------------------ contexts */

static atomic_int nheld, outsider; /* outsider: the worker that has left the context */

static void hold(void *buffers[], void *arg)
{
    atomic_fetch_add(&nheld, 1);
    wait_at_gate(buffers, arg);
    atomic_fetch_sub(&nheld, 1);
}

static void check_member(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
    if (starpu_worker_get_id() == atomic_load(&outsider))
        atomic_fetch_add(&misplaced_tasks, 1);
    atomic_fetch_add(&bodies_run, 1);
}

static struct starpu_codelet hold_codelet = {.cpu_funcs = {hold}, .name = "hold"};
static struct starpu_codelet member_codelet = {.cpu_funcs = {check_member}, .name = "member"};

static void wait_until_held(int nworkers)
{
    const struct timespec pause = {.tv_nsec = 100000};
    while (atomic_load(&nheld) != nworkers)
        nanosleep(&pause, NULL);
}

/* Returns when every worker is inside a task that lasts until the gate opens. StarPU (1.3.10, 1.4.10) changes
 * a worker's list of contexts without the lock under which the worker reads it when it starts or ends a task,
 * and then crashes now and then: workers may join and leave contexts at such a point only. */
static void hold_workers(unsigned nworkers)
{
    gate = false;
    for (unsigned worker = 0; worker < nworkers; worker++) {
        struct starpu_task *task = starpu_task_create();
        task->cl = &hold_codelet;
        task->execute_on_a_specific_worker = 1;
        task->workerid = worker;
        CHECK_EQ_INT(starpu_task_submit(task), 0);
    }
    wait_until_held((int)nworkers);
}

static void release_workers(void)
{
    gate = true;
    wait_until_held(0);
}

/* Two tasks to the context for each one elsewhere. */
static int submit_some(unsigned context)
{
    int ntasks = NTASKS / 16, submitted = 0;
    for (int i = 0; i < ntasks; i++) {
        struct starpu_task *task = starpu_task_create();
        task->cl = i % 3 ? &member_codelet : &worker_codelet;
        task->cl_arg = (void *)UINTPTR_MAX;
        task->priority = (int)random_below(5);
        submitted += (i % 3 ? starpu_task_submit_to_ctx(task, context) : starpu_task_submit(task)) == 0;
    }
    return submitted;
}

/* A context of its own with the same policy, which loses a worker and gets it back while tasks wait in it. */
static void test_contexts(unsigned nworkers)
{
    int workers[4] = {0, 1, 2, 3}, last = (int)nworkers - 1, submitted = 0;
    unsigned context = starpu_sched_ctx_create(workers, (int)nworkers, "second",
                                               STARPU_SCHED_CTX_POLICY_STRUCT, &starlin__policy, 0);
    bodies_run = misplaced_tasks = 0;
    outsider = -1;
    for (int i = 0; i < 8; i++) {
        bool leaves = i % 2 == 0;
        submitted += submit_some(context);
        hold_workers(nworkers);
        submitted += submit_some(context);
        if (leaves) {
            starpu_sched_ctx_remove_workers(&last, 1, context);
            outsider = last;
        } else {
            outsider = -1;
            starpu_sched_ctx_add_workers(&last, 1, context);
        }
        release_workers();
    }
    starpu_task_wait_for_all_in_ctx(context);
    starpu_task_wait_for_all();
    starpu_sched_ctx_delete(context);
    CHECK_EQ_INT(submitted, NTASKS);
    CHECK_EQ_INT(bodies_run, submitted);
    CHECK_EQ_INT(misplaced_tasks, 0);
}

int main(void)
{
    setenv("STARPU_SILENT", "1", 1);
    setenv("STARPU_WORKERS_NOBIND", "1", 1);
    unsetenv("STARPU_SCHED");
    step_limit(110);
    for (int ncpus = 1; ncpus <= 4; ncpus *= 2) {
        step_begin("start", ncpus);
        if (!start(ncpus))
            return CHECK_RESULT();
        CHECK_EQ_INT(starpu_worker_get_count(), ncpus);
        step_begin("dependencies", ncpus);
        test_dependencies();
        if (ncpus == 1) {
            step_begin("order", ncpus);
            test_order();
        }
        step_begin("restrictions", ncpus);
        test_restrictions((unsigned)ncpus);
        if (ncpus > 1) {
            step_begin("busy worker, settled", ncpus);
            test_busy_worker(true);
            step_begin("busy worker, at once", ncpus);
            test_busy_worker(false);
            step_begin("contexts", ncpus);
            test_contexts((unsigned)ncpus);
        }
        step_begin("shutdown", ncpus);
        starpu_shutdown();
    }
    return CHECK_RESULT();
}
