/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner's pure parts: lists, simulation, fitted speeds, the race. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "plan/plan.h"

/* --- lists */

static void check_lists(const starlin__planning_t *planning, int64_t m, int64_t quantum)
{
    CHECK(planning->nlists > 0);
    for (size_t l = 0; l < planning->nlists; l++) {
        const starlin__candidate_t *list = &planning->lists[l];
        int64_t sum = 0;
        CHECK(list->told.origin != NULL && list->told.nchunks >= 1 && list->told.nchunks <= 64);
        for (size_t i = 0; i < list->told.nchunks; i++) {
            CHECK(list->rows[i] >= 1);
            if (i + 1 < list->told.nchunks)
                CHECK_EQ_INT(list->rows[i] % quantum, 0);
            sum += list->rows[i];
        }
        CHECK_EQ_INT(sum, m);
    }
}

static void check_text(const starlin__candidate_t *list, const char *expected)
{
    char text[200];

    starlin__rows_text(list->rows, list->told.nchunks, text, sizeof text);
    CHECK_EQ_STR(text, expected);
}

static void test_lists(void)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 31, 100, 511, 513, 2048, 8191, 65536, (int64_t)1 << 40};
    starlin__planning_t *planning = calloc(1, sizeof *planning);

    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        planning->nlists = 0;
        starlin__ladder_add(planning, sizes[i / 2], 1, i % 2);
        starlin__family_add(planning, sizes[i / 2], 1, i % 2);
        check_lists(planning, sizes[i / 2], 1);
    }
    planning->nlists = 0;
    starlin__ladder_add(planning, 8192, 1, true);
    check_lists(planning, 8192, 256);
    CHECK_EQ_INT(planning->nlists, 9);
    check_text(&planning->lists[6], "3072,3072,1536,512");
    check_text(&planning->lists[7], "2048,2048,2048,1024,512,512");
    CHECK_EQ_INT(planning->lists[8].rows[17], 256);
    planning->nlists = 0;
    starlin__ladder_add(planning, 5, 1, false); /* 1, 4, 2 */
    CHECK_EQ_INT(planning->nlists, 3);
    planning->nlists = 0;
    starlin__ladder_add(planning, 100, 30, false); /* blocks allow three */
    CHECK_EQ_INT(planning->nlists, 2);
    free(planning);
}

/* --- simulation */

/* A gemm and its collective per chunk. */
static starlin__sketch_t *pipeline(size_t nchunks, double gemm_us, double comm_us)
{
    starlin__sketch_t *sketch = calloc(1, sizeof *sketch + 2 * nchunks * sizeof sketch->tasks[0]);

    sketch->ntasks = 2 * nchunks;
    sketch->nservers = 1;
    for (size_t i = 0; i < nchunks; i++) {
        sketch->tasks[2 * i] =
            (starlin__sketch_task_t){.kind = STARLIN__STAGE_GEMM, .nominal_us = gemm_us / (double)nchunks};
        sketch->tasks[2 * i + 1] = (starlin__sketch_task_t){.kind = STARLIN__STAGE_COLLECTIVE,
                                                            .nominal_us = comm_us / (double)nchunks,
                                                            .npredecessors = 1,
                                                            .predecessors = {(unsigned)(2 * i)}};
    }
    return sketch;
}

static void check_near(double actual, double expected, double tolerance, int line)
{
    check_count++;
    if (!(fabs(actual - expected) <= tolerance))
        CHECK_FAIL("line %d: %g, expected %g", line, actual, expected);
}
#define NEAR(actual, expected, tolerance) check_near(actual, expected, tolerance, __LINE__)

static double simulated(size_t nchunks, double gemm_us, double comm_us, const starlin__prices_t *prices)
{
    starlin__sketch_t *sketch = pipeline(nchunks, gemm_us, comm_us);
    double us = starlin__simulate(sketch, prices);

    free(sketch);
    return us;
}

static void test_simulate(void)
{
    const starlin__prices_t plain = {.factor = {1, 1, 1}};
    starlin__prices_t slow = {.factor = {1, 2, 1}, .fixed_us = {1, 10, 0}};
    starlin__sketch_t *sketch;

    NEAR(simulated(1, 100, 40, &plain), 140, 1e-9);
    NEAR(simulated(4, 100, 40, &plain), 110, 1e-9); /* the last collective is exposed */
    NEAR(simulated(4, 40, 100, &plain), 110, 1e-9); /* the first gemm is */
    NEAR(simulated(2, 100, 40, &slow), 51 + 51 + 50, 1e-9);
    /* two servers: the gemms of two chunks at once, the link in turn */
    sketch = pipeline(2, 100, 40);
    sketch->nservers = 2;
    NEAR(starlin__simulate(sketch, &plain), 50 + 20 + 20, 1e-9);
    /* what waits for a collective does not hold up the gemm behind it */
    sketch->nservers = 1;
    sketch->ntasks = 3;
    sketch->tasks[2] = sketch->tasks[0];
    sketch->tasks[0].nominal_us = 10;
    sketch->tasks[1].nominal_us = 50;
    NEAR(starlin__simulate(sketch, &plain), 60, 1e-9);
    /* exact costs have no fixed part */
    sketch->tasks[1].is_exact = true;
    NEAR(starlin__simulate(sketch, &slow), 11 + 51, 1e-9);
    free(sketch);
}

/* Speeds from times of three lists tell the time of a fourth. */
static void test_fit(void)
{
    static const size_t counts[] = {1, 4, 16};
    const starlin__prices_t truth = {.factor = {0.35, 6, 1}, .fixed_us = {25, 200, 0}};
    starlin__prices_t fitted = {.factor = {1, 1, 1}, .fixed_us = {10, 60, 10}};
    starlin__sketch_t *sketches[3];
    double measured_us[3];

    for (size_t i = 0; i < 3; i++) {
        sketches[i] = pipeline(counts[i], 30000, 1000);
        measured_us[i] = starlin__simulate(sketches[i], &truth);
    }
    starlin__prices_fit(sketches, measured_us, 3, &fitted);
    for (size_t i = 0; i < 3; i++) {
        NEAR(starlin__simulate(sketches[i], &fitted) / measured_us[i], 1, 0.03);
        free(sketches[i]);
    }
    NEAR(simulated(8, 30000, 1000, &fitted) / simulated(8, 30000, 1000, &truth), 1, 0.05);
}

/* --- race */

typedef struct track {
    starlin__planning_t *planning;
    double true_us[STARLIN__MOST_CANDIDATES]; /* negative: refused */
    double noise, elapsed_us;
    uint64_t state;
    size_t nruns[STARLIN__MOST_CANDIDATES], nrounds, nproposed;
} track_t;

static double chance(track_t *track)
{
    track->state = track->state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(track->state >> 40) / (double)(1 << 24);
}

static starlin_status_t run(void *arg, starlin__round_t *round)
{
    track_t *track = arg;

    track->nrounds++;
    for (size_t i = 0; i < round->count; i++) {
        size_t c = round->candidates[i];
        round->step_us[i] = track->true_us[c] * (1 + track->noise * chance(track));
        track->nruns[c]++;
        if (track->true_us[c] > 0)
            track->elapsed_us += round->step_us[i] * (round->nwarm + round->nsteps);
    }
    round->elapsed_us = track->elapsed_us;
    return STARLIN_SUCCESS;
}

static starlin_status_t propose(void *arg)
{
    track_t *track = arg;
    const int64_t rows[] = {700, 300};

    starlin__list_add(track->planning, "simulation", rows, 2);
    track->planning->told.ncandidates = track->planning->nlists;
    track->nproposed++;
    return STARLIN_SUCCESS;
}

/* 1, 4, 16, 8, 32, 2 chunks and the favourite. */
static size_t race(track_t *track, const double *true_us, double noise, double limit_us, uint64_t seed)
{
    starlin__planning_t *planning = track->planning;

    memset(track, 0, sizeof *track);
    memset(planning, 0, sizeof *planning);
    *track = (track_t){.planning = planning, .noise = noise, .state = seed};
    memcpy(track->true_us, true_us, 7 * sizeof *true_us);
    starlin__ladder_add(planning, 1000, 1, false);
    planning->told.ncandidates = planning->nlists;
    CHECK_STATUS(starlin__race(planning, limit_us, run, propose, track), STARLIN_SUCCESS);
    return planning->chosen;
}

static void test_race(void)
{
    track_t track = {.planning = malloc(sizeof *track.planning)};
    size_t nlucky = 0, nluckier = 0;
    const double clear[] = {20e3, 15e3, 12e3, 13e3, 14e3, 17e3, 16e3};
    const double flat[] = {10e3, 10e3, 10e3, 10e3, 10e3, 10e3, 10e3};
    const double favourite[] = {20e3, 15e3, 12e3, 13e3, 14e3, 17e3, 9e3};
    const double slower[] = {10e3, 11e3, 12e3, 13e3, 15e3, 14e3, 16e3};
    const double refused[] = {-1, 15e3, 12e3, 13e3, 14e3, -1, 16e3};
    const double barely[] = {10e3, 9.95e3, 10e3, 10e3, 10e3, 10e3, 10e3};
    const double alike[] = {20e3, 12.05e3, 12e3, 12.1e3, 14e3, 17e3, 16e3};
    const double heavy[] = {420e3, 361e3, 260e3, 324e3, 265e3, 390e3, 300e3};

    for (uint64_t seed = 1; seed <= 100; seed++) {
        size_t chosen;
        CHECK_EQ_INT(race(&track, clear, 0.05, 4e6, seed), 2);
        CHECK(track.nruns[5] < STARLIN__MOST_ROUNDS / 2); /* clearly slower: out early */
        CHECK_EQ_INT(track.nproposed, 1);
        nlucky += race(&track, flat, 0.03, 4e6, seed) != 0;
        nluckier += race(&track, flat, 0.1, 4e6, seed) != 0;
        CHECK_EQ_INT(race(&track, favourite, 0.05, 4e6, seed), 6);
        CHECK_EQ_INT(race(&track, slower, 0.1, 4e6, seed), 0);
        CHECK_EQ_INT(race(&track, refused, 0.05, 4e6, seed), 2);
        CHECK_EQ_INT(track.planning->reference, 6); /* the shortest that can be run */
        CHECK(track.planning->lists[0].told.refused && track.planning->lists[5].told.refused);
        nlucky += race(&track, barely, 0.02, 4e6, seed) != 0;
        chosen = race(&track, alike, 0.02, 4e6, seed); /* any that is within 3% of the best */
        CHECK(track.true_us[chosen] <= 1.03 * 12e3);
        CHECK(race(&track, heavy, 0.02, 4e6, seed) == 2 || track.planning->chosen == 4);
        CHECK(track.elapsed_us < 4.2e6);
    }
    fprintf(stderr, "of 200 and 100 races of equals, luck won %zu and %zu\n", nlucky, nluckier);
    CHECK(nlucky <= 6 && nluckier <= 30);
    CHECK_EQ_INT(race(&track, alike, 0, 4e6, 1), 1); /* the shortest within 1% */
    CHECK_EQ_INT(race(&track, heavy, 0, 1.0, 1), 0); /* no time: one chunk is all that is known */
    CHECK_EQ_INT(track.nrounds, 1);
    memcpy(track.true_us, (double[]){-1, -1, -1, -1, -1, -1, -1}, 7 * sizeof(double));
    track.planning->nlists = 0;
    starlin__ladder_add(track.planning, 1000, 1, false);
    track.planning->told.ncandidates = track.planning->nlists;
    CHECK_STATUS(starlin__race(track.planning, 4e6, run, propose, &track), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "refuses all 6 lists");
    free(track.planning);
}

int main(void)
{
    test_lists();
    test_simulate();
    test_fit();
    test_race();
    return CHECK_RESULT();
}
