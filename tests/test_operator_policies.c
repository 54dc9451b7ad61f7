/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator under every scheduling policy that StarPU lists, and ours, while gemms take random times:
 * exact results, and the same bits under all of them. One context after another in one process. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>
#include <starpu_scheduler.h>
#include <time.h>

#include "check.h"
#include "world.h"

#define LONGEST_US 2000
#include "graph/context.h"
#include "operators.h"
#include "policy/policy.h"
#include "watchdog.h"

/* All operators over three sets of rows in flight together, twice; the hash of all results. */
static uint64_t run_all(starlin_context_t *context)
{
    enum { NSCENES = 3 };
    scene_t scenes[NSCENES] = {
        {.m = 37, .dtype = STARLIN_BF16, .reduction = STARLIN_REDUCTION_F32, .count = 5, .blocks = true},
        {.m = 37, .dtype = STARLIN_F32, .cut = SKEWED, .variant = 3, .count = 3, .blocks = true},
        {.m = 23, .dtype = STARLIN_F16, .cut = HOLLOW, .variant = 6, .count = 4}};
    static job_t jobs[NSCENES][NJOBS + NCHAINED];
    size_t counts[NSCENES];
    uint64_t hash = STARLIN__HASH_INIT;

    for (int i = 0; i < NSCENES; i++) {
        scenes[i].context = context;
        scene_open(&scenes[i]);
        if (scenes[i].rows == NULL)
            return 0;
        counts[i] = open_every_job(&scenes[i], jobs[i]);
    }
    for (int i = 0; i < 2 * NSCENES; i++) {
        for (size_t j = 0; j < counts[i % NSCENES]; j++)
            job_submit(&jobs[i % NSCENES][j]);
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    for (int i = 0; i < NSCENES; i++) {
        for (size_t j = 0; j < counts[i]; j++)
            job_check(&jobs[i][j], &hash);
        close_every_job(jobs[i], counts[i]);
        scene_close(&scenes[i]);
    }
    return hash;
}

static void run_policy(const char *name, uint64_t *first_hash)
{
    double start_us = starlin__now_us();
    starlin_context_t *context;
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;
    uint64_t hash;

    if (world_has_failed()) /* one report is enough */
        return;
    step_begin(name, world_nranks);
    setenv("STARPU_SCHED", name, 1);
    context = world_context(200000);
    if (context == NULL)
        return;
    CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
    CHECK_EQ_STR(info.policy, name);
    starlin__gemm_hook_arg = (void *)(uintptr_t)name[0];
    starlin__gemm_hook = delay;
    hash = run_all(context);
    starlin__gemm_hook = NULL;
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    if (*first_hash == 0)
        *first_hash = hash;
    CHECK_EQ_INT(hash, *first_hash);
    if (world_rank == 0)
        printf("%-28s %016llx %7.0f ms\n", name, (unsigned long long)hash,
               (starlin__now_us() - start_us) / 1e3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies();
    uint64_t first_hash = 0;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    step_limit(280);
    for (int i = 1; i < argc; i++)
        run_policy(argv[i], &first_hash);
    if (argc > 1)
        return world_end();
    run_policy(STARLIN__POLICY_NAME, &first_hash);
    for (; *policy != NULL; policy++)
        if ((*policy)->policy_name != NULL)
            run_policy((*policy)->policy_name, &first_hash);
    return world_end();
}
