/* SPDX-License-Identifier: BSD-3-Clause */
/* Gemms end in any order, another one on each rank: collectives still start in submission order, and equal
 * chunks are never summed crosswise. Chunk i's sum tells i, the rank count and the repetition. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "check.h"
#include "graph/context.h"
#include "linear.h"
#include "world.h"

enum { NCHUNKS = 8, ROWS = 4, NOUTPUTS = 6, NREPETITIONS = 200, LONGEST_US = 5000 };

/* Each rank's draw differs; hash functions need no lock. One delay in eight is long, so that chunks overtake
 * each other by far and the whole takes seconds. */
static bool delay(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    uint64_t words[4] = {(uint64_t)(uintptr_t)arg, (uint64_t)rank, sequence, chunk};
    uint64_t draw = starlin__hash(STARLIN__HASH_INIT, words, sizeof words) >> 11;
    long us = draw % 8 == 0 ? (long)((draw >> 3) % LONGEST_US) : (long)((draw >> 3) % 200);

    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
    return true;
}

static int chunk_value(int64_t row, int64_t inner)
{
    (void)inner;
    return (int)(row / ROWS) + 1;
}

static int one(int64_t output, int64_t inner)
{
    (void)output;
    (void)inner;
    return 1;
}

/* Launches on the link must rise with (operator, chunk). */
static void check_launches(starlin_context_t *context)
{
    enum { MOST = 1 << 14 };
    static starlin__span_t spans[MOST];
    static double launches[MOST];
    size_t nspans = starlin__timeline_read(context->timeline, spans, MOST), nlaunches = 0, early = 0;

    memset(launches, 0, sizeof launches);
    for (size_t i = 0; i < nspans; i++) {
        size_t place = (size_t)(spans[i].sequence - 1) * NCHUNKS + spans[i].chunk;
        if (spans[i].lane == STARLIN__LANE_LINK && place < MOST) {
            launches[place] = spans[i].launch_us;
            nlaunches++;
        }
    }
    CHECK_EQ_INT(nlaunches, context->sequence * NCHUNKS);
    for (size_t i = 1; i < context->sequence * NCHUNKS; i++)
        early += launches[i] < launches[i - 1];
    CHECK_EQ_INT(early, 0);
}

static void run(const char *policy, const char *nworkers, int nrepetitions)
{
    linear_t linear = {.m = NCHUNKS * ROWS,
                       .n = NOUTPUTS,
                       .k = 2 * world_nranks,
                       .count = NCHUNKS,
                       .x_value = chunk_value,
                       .w_value = one};
    double start_us = starlin__now_us();
    size_t wrong = 0;

    setenv("STARPU_SCHED", policy, 1);
    setenv("STARPU_NCPU", nworkers, 1);
    linear.context = world_context(60000);
    if (linear.context == NULL)
        return;
    CHECK_STATUS(linear_open(&linear), STARLIN_SUCCESS);
    if (linear.y == NULL)
        return;
    CHECK_STATUS(starlin__timeline_enable(linear.context->timeline, true), STARLIN_SUCCESS);
    starlin__gemm_hook_arg = (void *)policy;
    starlin__gemm_hook = delay;
    for (int i = 0; i < nrepetitions; i++) {
        /* two operators in flight: chunks of the second must not overtake either */
        CHECK_STATUS(linear_submit(&linear), STARLIN_SUCCESS);
        if (i % 2 == 0 && i + 1 < nrepetitions)
            continue;
        CHECK_STATUS(starlin_context_wait(linear.context), STARLIN_SUCCESS);
        wrong += linear_wrong(&linear);
        memset(linear.y_data, 0xff, (size_t)(linear.m * linear.n) * sizeof(float));
    }
    starlin__gemm_hook = NULL;
    CHECK_EQ_INT(wrong, 0);
    check_launches(linear.context);
    linear_close(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_SUCCESS);
    if (world_rank == 0)
        printf("%-8s %s workers %6.0f ms\n", policy, nworkers, (starlin__now_us() - start_us) / 1e3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const policies[] = {"lws", "random", "eager", "prio", "starlin"};

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        /* all repetitions with a worker pair, where gemms really overtake each other */
        run(policies[i], "1", NREPETITIONS / 5);
        run(policies[i], "2", i == 0 || i == 4 ? NREPETITIONS : NREPETITIONS / 4);
    }
    return world_end();
}
