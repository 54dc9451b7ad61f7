/* SPDX-License-Identifier: BSD-3-Clause */
/* Gemms are launched after random delays, by one or two workers of the device and another order on each rank:
 * collectives still start in submission order, and equal chunks are never summed crosswise. Chunk i's sum
 * tells i.
 * usage: test_gpu_order [REPETITIONS] */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "check.h"
#include "gpu.h"
#include "operand.h"
#include "starlin/starlin_report.h"
#include "world.h"

enum { NCHUNKS = 8, ROWS = 4, NOUTPUTS = 6, INNER = 2, LONGEST_US = 5000 };

/* Each rank's draw differs; hash functions need no lock. One delay in eight is long. */
static bool delay(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    uint64_t words[4] = {(uint64_t)(uintptr_t)arg, (uint64_t)rank, sequence, chunk};
    uint64_t draw = starlin__hash(STARLIN__HASH_INIT, words, sizeof words) >> 11;
    long us = draw % 8 == 0 ? (long)((draw >> 3) % LONGEST_US) : (long)((draw >> 3) % 200);

    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
    return true;
}

/* Launches on the link must rise with (operator, chunk). */
static void check_launches(starlin_context_t *context)
{
    enum { MOST = 1 << 14 };
    static starlin__span_t spans[2 * MOST];
    static double launches[MOST];
    size_t nspans, nlaunches = 0, early = 0;

    starlin__context_collect(context);
    nspans = starlin__timeline_read(context->timeline, spans, 2 * MOST);
    memset(launches, 0, sizeof launches);
    for (size_t i = 0; i < nspans; i++) {
        size_t place = (size_t)(spans[i].sequence - 1) * NCHUNKS + spans[i].chunk;
        if (spans[i].lane == STARLIN__LANE_LINK && place < MOST) {
            launches[place] = spans[i].launch_us;
            nlaunches++;
        }
    }
    if (nlaunches == 0 && world_nranks == 1 && strcmp(context->comm->ops->name, "nccl") == 0) {
        printf("skipped: NCCL launches nothing for one rank, so there is no order to check\n");
        return;
    }
    CHECK_EQ_INT(nlaunches, context->sequence * NCHUNKS);
    for (size_t i = 1; i < context->sequence * NCHUNKS; i++)
        early += launches[i] < launches[i - 1];
    CHECK_EQ_INT(early, 0);
}

static void run_steps(starlin_context_t *context, operand_t matrices[3], const int32_t *expected,
                      int nrepetitions)
{
    size_t wrong = 0;

    for (int i = 0; i < nrepetitions; i++) {
        /* two operators in flight: chunks of the second must not overtake either */
        CHECK_STATUS(
            starlin_row_linear(context, matrices[0].matrix, matrices[1].matrix, matrices[2].matrix, NULL),
            STARLIN_SUCCESS);
        if (i % 2 == 0 && i + 1 < nrepetitions)
            continue;
        CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
        wrong += operand_wrong(&matrices[2], expected, NULL, NULL);
        operand_fill(&matrices[2], NULL);
    }
    CHECK_EQ_INT(wrong, 0);
}

static void run(const char *policy, const char *nworkers, memory_t memory, int nrepetitions)
{
    static int8_t x_values[NCHUNKS * ROWS * INNER], w_values[NOUTPUTS * INNER];
    static int32_t expected[NCHUNKS * ROWS * NOUTPUTS];
    double start_us = starlin__now_us();
    operand_t matrices[3];

    for (int i = 0; i < NCHUNKS * ROWS * INNER; i++)
        x_values[i] = (int8_t)(i / (ROWS * INNER) + 1);
    memset(w_values, 1, sizeof w_values);
    for (int i = 0; i < NCHUNKS * ROWS * NOUTPUTS; i++)
        expected[i] = (i / (ROWS * NOUTPUTS) + 1) * INNER * world_nranks;
    setenv("STARPU_SCHED", policy, 1);
    setenv("STARPU_NWORKER_PER_CUDA", nworkers, 1);
    setenv("STARPU_CUDA_THREAD_PER_WORKER", "1", 1);
    starlin_context_t *context = world_context(60000);
    if (context == NULL)
        return;
    starlin_chunking_t *rows = plan_rows(context, NCHUNKS * ROWS, NCHUNKS);
    bool is_open = operand_open(&matrices[0], context, rows, STARLIN_SHARD_COLS, NCHUNKS * ROWS, INNER, 0,
                                STARLIN_F32, memory, x_values);
    is_open &= operand_open(&matrices[1], context, NULL, STARLIN_REPLICATE, NOUTPUTS, INNER, 0, STARLIN_F32,
                            memory, w_values);
    is_open &= operand_open(&matrices[2], context, rows, STARLIN_REPLICATE, NCHUNKS * ROWS, NOUTPUTS, 0,
                            STARLIN_F32, memory, NULL);
    /* a device's spans come from what watches the device */
    CHECK_STATUS(starlin_report_enable(context, true), STARLIN_SUCCESS);
    starlin__gemm_hook_arg = (void *)(uintptr_t)nworkers[0];
    starlin__gemm_hook = delay;
    if (is_open)
        run_steps(context, matrices, expected, nrepetitions);
    starlin__gemm_hook = NULL;
    check_launches(context);
    for (int i = 0; i < 3; i++)
        operand_close(&matrices[i]);
    starlin_chunking_destroy(rows);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    if (world_rank == 0)
        printf("%-8s %s workers %-8s x %3d %6.0f ms\n", policy, nworkers, memory_names[memory], nrepetitions,
               (starlin__now_us() - start_us) / 1e3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int nrepetitions = argc > 1 ? atoi(argv[1]) : 200;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    if (!gpu_is_here()) {
        MPI_Finalize();
        return 77;
    }
    CHECK(nrepetitions > 0);
    run("starlin", "1", LIBRARY, nrepetitions);
    run("starlin", "2", LIBRARY, nrepetitions);
    run("lws", "2", LIBRARY, nrepetitions / 4 + 1);
    run("random", "2", LIBRARY, nrepetitions / 4 + 1);
    run("prio", "2", DEVICE, nrepetitions / 4 + 1);
    run("eager", "2", HOST, nrepetitions / 4 + 1);
    return world_end();
}
