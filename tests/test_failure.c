/* SPDX-License-Identifier: BSD-3-Clause */
/* A gemm that fails on some rank comes back from every rank's waits, earlier operators are unharmed, and the
 * next context works. Delays differ from round to round and rank to rank.
 * usage: test_failure [ROUNDS [CHUNKS]] */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "check.h"
#include "graph/context.h"
#include "gpu.h"
#include "linear.h"
#include "watchdog.h"
#include "world.h"

enum { NOPERATORS = 4, TIMEOUT_MS = 20000 };

static size_t nchunks = 4;

typedef struct fault {
    uint64_t sequence; /* operator that fails */
    unsigned chunk;
    unsigned ranks; /* bit set of those that fail */
    uint64_t seed;
} fault_t;

static bool hook(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    const fault_t *fault = arg;
    uint64_t words[4] = {fault->seed, (uint64_t)rank, sequence, chunk};
    uint64_t draw = starlin__hash(STARLIN__HASH_INIT, words, sizeof words) >> 11;

    nanosleep(&(struct timespec){.tv_nsec = (long)(draw % 1000) * 1000}, NULL);
    return sequence != fault->sequence || chunk != fault->chunk || (fault->ranks >> rank & 1) == 0;
}

static void open_linears(starlin_context_t *context, linear_t *linears)
{
    for (int i = 0; i < NOPERATORS; i++) {
        linears[i] = (linear_t){.context = context, .m = 12, .n = 5, .k = 9, .count = nchunks};
        CHECK_STATUS(linear_open(&linears[i]), STARLIN_SUCCESS);
    }
}

/* Every rank reports the same failure, and it is one of those that were injected. */
static void check_text(const fault_t *fault)
{
    char mine[256], first[256], expected[80];
    bool found = false;

    snprintf(mine, sizeof mine, "%s", starlin_last_error());
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ_STR(mine, first);
    for (int rank = 0; rank < world_nranks; rank++) {
        snprintf(expected, sizeof expected, "rank %d, operator %llu: gemm of chunk %u", rank,
                 (unsigned long long)fault->sequence, fault->chunk);
        found |= (fault->ranks >> rank & 1) != 0 && strstr(mine, expected) == mine;
    }
    CHECK(found);
}

static void run(const fault_t *fault)
{
    starlin_context_t *context = world_context(TIMEOUT_MS);
    linear_t linears[NOPERATORS] = {0};

    if (context == NULL)
        return;
    open_linears(context, linears);
    starlin__gemm_hook_arg = (void *)(uintptr_t)fault;
    starlin__gemm_hook = hook;
    for (int i = 0; i < NOPERATORS; i++)
        CHECK_STATUS(linear_submit(&linears[i]), STARLIN_SUCCESS);
    for (uint64_t i = 0; i < NOPERATORS; i++) {
        starlin_status_t expected = i + 1 < fault->sequence ? STARLIN_SUCCESS : STARLIN_ERR_COMPUTE;
        CHECK_STATUS(starlin_matrix_wait(linears[i].y), expected);
        if (expected == STARLIN_SUCCESS)
            CHECK_EQ_INT(linear_wrong(&linears[i]), 0);
        else
            check_text(fault);
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_ERR_COMPUTE);
    check_text(fault);
    CHECK_STATUS(linear_submit(&linears[0]), STARLIN_ERR_COMPUTE);
    check_text(fault);
    starlin__gemm_hook = NULL;
    for (int i = 0; i < NOPERATORS; i++)
        linear_close(&linears[i]);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_ERR_COMPUTE);
}

static void run_sound(void)
{
    linear_t linear = {.m = 12, .n = 5, .k = 9, .count = nchunks};

    linear.context = world_context(TIMEOUT_MS);
    if (linear.context == NULL)
        return;
    linear_check(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_SUCCESS);
}

int main(int argc, char **argv)
{
    const char *comm = getenv("STARLIN_COMM");
    int nrounds = argc > 1 ? atoi(argv[1]) : 20;
    nchunks = argc > 2 ? (size_t)atoi(argv[2]) : nchunks;

    setenv("STARPU_SILENT", "1", 0);
    setenv("STARPU_NCPU", "2", 0);
    world_begin(&argc, &argv);
    if (comm != NULL && strcmp(comm, "nccl") == 0 && !gpu_is_here()) {
        MPI_Finalize();
        return 77;
    }
    step_limit(world_nranks > 2 ? 290 : 110);
    for (int round = 0; round < nrounds; round++) {
        unsigned all = (1u << world_nranks) - 1, some[3] = {all & 1, 1u << (world_nranks - 1), all};
        fault_t fault = {.sequence = (uint64_t)(round % NOPERATORS) + 1,
                         .chunk = (unsigned)((size_t)(round / NOPERATORS) % nchunks),
                         .ranks = some[round % 3],
                         .seed = (uint64_t)round};
        step_begin("round", round);
        run(&fault);
        if (round % 5 == 0)
            run_sound();
    }
    run_sound();
    return world_end();
}
