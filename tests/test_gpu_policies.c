/* SPDX-License-Identifier: BSD-3-Clause */
/* Every scheduling policy that StarPU lists, with a CUDA worker alone: exact results. Each runs in a process
 * of its own, so that one which cannot work on a GPU does not hide the others, then some of them one after
 * another in one process. usage: test_gpu_policies [POLICY...]  (those, in this process) */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <spawn.h>
#include <starpu.h>
#include <starpu_scheduler.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "gpu.h"
#include "operand.h"
#include "policy/policy.h"

extern char **environ;

enum { M = 96, N = 40, K = 48, LIMIT_S = 60, NREPETITIONS = 3 };

static void run_linear(starlin_context_t *context, starlin_dtype_t dtype, starlin_reduction_t reduction,
                       memory_t memory)
{
    static int32_t expected[M * N];
    starlin_linear_options_t options = STARLIN_LINEAR_OPTIONS_INIT;
    int8_t *x_values = sparse_values(M, 0, K, 1), *w_values = sparse_values(N, 0, K, 2);
    starlin_chunking_t *rows = plan_rows(context, M, 8);
    operand_t x, w, y;

    memset(expected, 0, sizeof expected);
    add_product(expected, x_values, w_values, M, N, K);
    bool is_open = operand_open(&x, context, rows, STARLIN_SHARD_COLS, M, K, 0, dtype, memory, x_values);
    is_open &= operand_open(&w, context, NULL, STARLIN_REPLICATE, N, K, 0, dtype, memory, w_values);
    is_open &= operand_open(&y, context, rows, STARLIN_REPLICATE, M, N, 0, dtype, memory, NULL);
    options.reduction = reduction;
    for (int i = 0; is_open && i < NREPETITIONS; i++)
        CHECK_STATUS(starlin_row_linear(context, x.matrix, w.matrix, y.matrix, &options), STARLIN_SUCCESS);
    if (is_open)
        CHECK_EQ_INT(operand_wrong(&y, expected, NULL, NULL), 0);
    operand_close(&x);
    operand_close(&w);
    operand_close(&y);
    starlin_chunking_destroy(rows);
    free(x_values);
    free(w_values);
}

/* 77: StarPU does not start this policy with a CUDA worker alone. */
static int run_policy(const char *name)
{
    starlin_context_t *context = NULL;
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;
    double start_us = starlin__now_us();

    setenv("STARPU_SCHED", name, 1);
    starlin_status_t status = starlin_context_create(NULL, &context);
    if (status == STARLIN_ERR_RUNTIME) {
        printf("%-28s does not start: %s\n", name, starlin_last_error());
        return 77;
    }
    CHECK_STATUS(status, STARLIN_SUCCESS);
    if (context == NULL)
        return 1;
    CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
    CHECK_EQ_STR(info.policy, name);
    CHECK_EQ_STR(info.compute, "cublas");
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
        run_linear(context, (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, LIBRARY);
    run_linear(context, STARLIN_BF16, STARLIN_REDUCTION_F32, LIBRARY);
    run_linear(context, STARLIN_F32, STARLIN_REDUCTION_NATIVE, HOST);
    run_linear(context, STARLIN_F16, STARLIN_REDUCTION_F32, DEVICE);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    printf("%-28s %s %7.0f ms\n", name, check_failures == 0 ? "exact" : "FAILED",
           (starlin__now_us() - start_us) / 1e3);
    fflush(stdout);
    return CHECK_RESULT();
}

/* This program with those arguments; its exit code, or 128 and more for a signal. */
static int run_child(char *const arguments[])
{
    pid_t child;
    int state = 0;

    fflush(stdout);
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
        return 127;
    while (waitpid(child, &state, 0) != child) {
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static int run_all(char *program)
{
    struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies();
    char ours[] = STARLIN__POLICY_NAME, lws[] = "lws", prio[] = "prio";
    char *const in_one_process[] = {program, ours, lws, prio, ours, NULL};
    int nexact = 0;

    CHECK_EQ_INT(run_child(in_one_process), 0);
    for (; *policy != NULL; policy++) {
        char name[128] = "";
        char *const arguments[] = {program, name, NULL};
        if ((*policy)->policy_name == NULL)
            continue;
        snprintf(name, sizeof name, "%s", (*policy)->policy_name);
        int code = run_child(arguments);
        nexact += code == 0;
        check_count++;
        if (code != 0 && code != 77)
            CHECK_FAIL("policy %s: exit code %d%s", name, code,
                       code == 128 + SIGALRM ? " (it took too long)" : "");
    }
    printf("%d policies are exact\n", nexact);
    CHECK(nexact >= 10);
    return CHECK_RESULT();
}

int main(int argc, char **argv)
{
    setenv("STARPU_SILENT", "1", 0);
    setenv("STARLIN_COMM", "model:gbps=200", 0);
    if (!gpu_is_here())
        return 77;
    if (argc == 1)
        return run_all(argv[0]);
    alarm((unsigned)(LIMIT_S * (argc - 1))); /* a policy that never gives a task out */
    for (int i = 1; i < argc; i++) {
        int code = run_policy(argv[i]);
        if (code != 0)
            return code;
    }
    return 0;
}
