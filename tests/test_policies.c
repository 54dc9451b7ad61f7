/* SPDX-License-Identifier: BSD-3-Clause */
/* Every scheduling policy that StarPU lists, and ours: exact results, and the same bits under all of them.
 * One context after another in one process. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>
#include <starpu_scheduler.h>

#include "check.h"
#include "linear.h"
#include "policy/policy.h"
#include "world.h"

/* All dtypes under the policy that runs, natively reduced and in f32, all in flight together; the hash of all
 * results. */
static uint64_t run_all(starlin_context_t *context)
{
    enum { NCASES = 6 };
    static const struct {
        starlin_dtype_t dtype;
        starlin_reduction_t reduction;
    } cases[NCASES] = {{STARLIN_F32, STARLIN_REDUCTION_NATIVE}, {STARLIN_F64, STARLIN_REDUCTION_NATIVE},
                       {STARLIN_F16, STARLIN_REDUCTION_NATIVE}, {STARLIN_BF16, STARLIN_REDUCTION_NATIVE},
                       {STARLIN_F16, STARLIN_REDUCTION_F32},    {STARLIN_BF16, STARLIN_REDUCTION_F32}};
    linear_t linears[NCASES];
    uint64_t hash = STARLIN__HASH_INIT;

    for (int i = 0; i < NCASES; i++) {
        linears[i] = (linear_t){.context = context,
                                .m = 37,
                                .n = 19,
                                .k = 23,
                                .dtype = cases[i].dtype,
                                .reduction = cases[i].reduction,
                                .count = 5};
        CHECK_STATUS(linear_open(&linears[i]), STARLIN_SUCCESS);
        CHECK_EQ_INT(starlin_chunking_count(linears[i].rows), 5);
    }
    for (int i = 0; i < 2 * NCASES; i++)
        CHECK_STATUS(linear_submit(&linears[i % NCASES]), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    for (int i = 0; i < NCASES; i++) {
        size_t nbytes = (size_t)(linears[i].m * linears[i].n) * starlin_dtype_nbytes(linears[i].dtype);
        CHECK_EQ_INT(linear_wrong(&linears[i]), 0);
        hash = starlin__hash(hash, linears[i].y_data, nbytes);
        linear_close(&linears[i]);
    }
    return hash;
}

static void run_policy(const char *name, uint64_t *first_hash)
{
    double start_us = starlin__now_us();
    starlin_context_t *context;
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;
    uint64_t hash;

    setenv("STARPU_SCHED", name, 1);
    context = world_context(60000);
    if (context == NULL)
        return;
    CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
    CHECK_EQ_STR(info.policy, name);
    hash = run_all(context);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    if (*first_hash == 0)
        *first_hash = hash;
    CHECK(hash == *first_hash);
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
    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            run_policy(argv[i], &first_hash);
        return world_end();
    }
    run_policy(STARLIN__POLICY_NAME, &first_hash);
    for (; *policy != NULL; policy++)
        if ((*policy)->policy_name != NULL)
            run_policy((*policy)->policy_name, &first_hash);
    return world_end();
}
