/* SPDX-License-Identifier: BSD-3-Clause */
/* The trial of a plan, on simulated ranks: whatever each of them measures and wherever it waits, all ask for
 * figures and compute in one piece at the same operators, and what comes of it is right. */
#include "check.h"
#include "plan/trial.h"

enum { MOST_RANKS = 3 };

typedef struct world {
    int nranks;
    starlin__trial_t *trials[MOST_RANKS];
    uint64_t steps_first[MOST_RANKS];                 /* of the step that is open */
    double plan_us[MOST_RANKS], whole_us[MOST_RANKS]; /* of an operator */
    uint64_t noperators, nexchanges, nwhole;
    bool split; /* ranks did not go the same way */
} world_t;

static world_t world_create(int nranks, size_t nchunks, double serial_us)
{
    world_t world = {.nranks = nranks};
    for (int rank = 0; rank < nranks; rank++) {
        world.trials[rank] = starlin__trial_create(nchunks, serial_us, NULL);
        world.plan_us[rank] = world.whole_us[rank] = serial_us;
    }
    return world;
}

static void world_destroy(world_t *world)
{
    for (int rank = 0; rank < world->nranks; rank++)
        starlin__trial_release(world->trials[rank]);
}

static void exchange(world_t *world)
{
    double all[STARLIN__TRIAL_FIGURES], mine[STARLIN__TRIAL_FIGURES];

    for (int rank = 0; rank < world->nranks; rank++) {
        starlin__trial_figures(world->trials[rank], mine);
        for (int i = 0; i < STARLIN__TRIAL_FIGURES; i++)
            all[i] = rank == 0 || mine[i] > all[i] ? mine[i] : all[i];
    }
    for (int rank = 0; rank < world->nranks; rank++)
        starlin__trial_decide(world->trials[rank], all, world->noperators + 1);
    world->nexchanges++;
}

/* One operator on all ranks. Returns whether it was computed in one piece. */
static bool submit(world_t *world, bool joins)
{
    bool due = starlin__trial_is_due(world->trials[0]), whole;

    for (int rank = 1; rank < world->nranks; rank++)
        world->split |= starlin__trial_is_due(world->trials[rank]) != due;
    if (due)
        exchange(world);
    whole = starlin__trial_is_whole(world->trials[0]);
    for (int rank = 0; rank < world->nranks; rank++) {
        world->split |= starlin__trial_is_whole(world->trials[rank]) != whole;
        starlin__trial_count(world->trials[rank], joins);
    }
    world->noperators++;
    world->nwhole += whole;
    return whole;
}

/* Rank's wait, after operators of which the last was (as all are in a regular step) in one piece or not. */
static void wait_on(world_t *world, int rank, bool whole)
{
    uint64_t first = world->steps_first[rank], count = world->noperators - first;
    double time_us = whole ? world->whole_us[rank] : world->plan_us[rank];

    starlin__trial_step(world->trials[rank], first, count, time_us * (double)count);
    world->steps_first[rank] = world->noperators;
}

static bool run_step(world_t *world, unsigned noperators)
{
    bool whole = false;
    for (unsigned i = 0; i < noperators; i++)
        whole = submit(world, true);
    for (int rank = 0; rank < world->nranks; rank++)
        wait_on(world, rank, whole);
    return whole;
}

static void check_end(const world_t *world, const char *text, bool replaced)
{
    CHECK(!world->split);
    for (int rank = 0; rank < world->nranks; rank++) {
        const starlin__trial_t *trial = world->trials[rank];
        CHECK(starlin__trial_is_over(trial));
        CHECK_EQ_STR(starlin__trial_text(trial), text);
        CHECK((starlin__trial_replaced(trial) != NULL) == replaced);
        CHECK(starlin__trial_is_whole(trial) == replaced);
        CHECK(!starlin__trial_is_due(trial));
    }
}

/* Fast enough, to the percent: one look, and no operator ever changes. */
static void test_kept(void)
{
    world_t world = world_create(2, 4, 100.0);

    world.plan_us[0] = 80.0;
    world.plan_us[1] = 101.0;
    for (int i = 0; i < 8; i++) {
        CHECK(!run_step(&world, 1));
        CHECK(starlin__trial_text(world.trials[0]) == NULL);
    }
    for (int i = 0; i < 100; i++)
        run_step(&world, 1);
    CHECK_EQ_INT(world.nwhole, 0);
    CHECK_EQ_INT(world.nexchanges, 1);
    check_end(
        &world,
        "4 chunks took 101 us per layer in the first steps, one chunk was expected to take 100 us: kept",
        false);
    world_destroy(&world);
}

/* One rank is enough. Operators 9 to 22 go both ways in turn; what comes behind is in one piece. */
static void test_replaced(void)
{
    static const char order[] = "wppwwppwwppwwp";
    world_t world = world_create(3, 4, 100.0);

    world.plan_us[2] = 150.0;
    for (int i = 0; i < 8; i++)
        CHECK(!run_step(&world, 1));
    for (int i = 0; i < 14; i++) {
        CHECK(run_step(&world, 1) == (order[i] == 'w'));
        CHECK(!starlin__trial_is_over(world.trials[0]));
    }
    for (int i = 0; i < 100; i++)
        CHECK(run_step(&world, 1));
    CHECK_EQ_INT(world.nexchanges, 2);
    check_end(
        &world,
        "4 chunks took 150 us per layer in the first steps, one chunk 100 us: replaced from operator 23 "
        "on",
        true);
    world_destroy(&world);
}

/* Slower than expected, but one chunk is no better: within the noise, or on another rank. */
static void test_no_better(void)
{
    world_t world = world_create(2, 4, 100.0);

    world.plan_us[0] = world.plan_us[1] = 150.0;
    world.whole_us[0] = 100.0;
    world.whole_us[1] = 149.0;
    for (int i = 0; i < 100; i++)
        run_step(&world, 1);
    CHECK_EQ_INT(world.nwhole, 7);
    check_end(&world, "4 chunks took 150 us per layer in the first steps, one chunk 149 us: kept", false);
    world_destroy(&world);
}

/* Layers submitted back to back: looks come in the middle of steps, changes only between them. */
static void test_layers(void)
{
    for (unsigned layers = 2; layers <= 200; layers = layers < 8 ? layers + 1 : layers * 3 + 1) {
        world_t world = world_create(2, 7, 100.0);
        uint64_t nsteps = 0;
        char text[160];

        world.plan_us[1] = 200.0;
        while (!starlin__trial_is_over(world.trials[0]) && nsteps < 100) {
            uint64_t before = world.nwhole;
            run_step(&world, layers);
            CHECK(world.nwhole == before || world.nwhole == before + layers);
            nsteps++;
        }
        CHECK(nsteps < 34); /* 7 steps are known after at most 15, 14 follow */
        snprintf(
            text, sizeof text,
            "7 chunks took 200 us per layer in the first steps, one chunk 100 us: replaced from operator "
            "%llu on",
            (unsigned long long)((nsteps - 1) * layers + 1));
        check_end(&world, text, true);
        world_destroy(&world);
    }
}

/* The first steps differ from the later ones. */
static void test_warm_up(void)
{
    world_t world = world_create(2, 4, 100.0);

    world.plan_us[0] = world.plan_us[1] = 300.0;
    for (int i = 0; i < 3; i++)
        run_step(&world, 5);
    for (int i = 0; i < 2; i++)
        run_step(&world, 2);
    world.plan_us[0] = world.plan_us[1] = 90.0;
    for (int i = 0; i < 100; i++)
        run_step(&world, 2);
    CHECK_EQ_INT(world.nwhole, 0);
    check_end(&world,
              "4 chunks took 90 us per layer in the first steps, one chunk was expected to take 100 us: kept",
              false);
    world_destroy(&world);
}

/* Ranks wait in different places, or never: there is nothing to compare, and an end to it. */
static void test_different_waits(void)
{
    static const unsigned every[][2] = {{1, 2}, {3, 3}, {1, 5000}};
    for (int i = 0; i < 3; i++) {
        world_t world = world_create(2, 4, 10.0);
        world.plan_us[0] = world.plan_us[1] = 100.0;
        for (uint64_t n = 0; n < 3000; n++) {
            bool whole = submit(&world, true);
            for (int rank = 0; rank < 2; rank++)
                if ((n + (i == 1 ? (uint64_t)rank : 0)) % every[i][rank] == 0)
                    wait_on(&world, rank, whole);
        }
        CHECK_EQ_INT(world.nwhole, 0);
        CHECK_EQ_INT(world.nexchanges, 9);
        check_end(&world, "not tried in the first steps: no 7 steps of the same operators in a row", false);
        world_destroy(&world);
    }
}

static void test_irregular(void)
{
    world_t world = world_create(2, 4, 100.0);

    world.plan_us[0] = 200.0;
    for (int i = 0; i < 18; i++)
        run_step(&world, 1);
    run_step(&world, 2); /* while both are compared */
    for (int i = 0; i < 10; i++)
        run_step(&world, 1);
    check_end(&world, "4 chunks kept: the steps became irregular while one chunk was tried", false);
    world_destroy(&world);
}

/* A matrix that has to stay in chunks, before or after the first look. */
static void test_not_joined(void)
{
    for (int at = 0; at < 20; at += 10) {
        world_t world = world_create(2, 4, 100.0);
        world.plan_us[0] = 200.0;
        for (int i = 0; i < 100; i++) {
            bool whole = submit(&world, i != at);
            wait_on(&world, 0, whole);
            wait_on(&world, 1, whole);
        }
        check_end(
            &world,
            "not tried in the first steps: some matrices do not lie in one piece where they are computed",
            false);
        world_destroy(&world);
    }
}

/* Steps that were disturbed have no time, and do not count. */
static void test_disturbed(void)
{
    starlin__trial_t *trial = starlin__trial_create(2, 100.0, NULL);
    double figures[STARLIN__TRIAL_FIGURES];

    for (uint64_t i = 0; i < 8; i++) {
        starlin__trial_count(trial, true);
        starlin__trial_step(trial, i, 1, i == 4 || i == 5 ? 0.0 : 90.0);
    }
    CHECK(starlin__trial_is_due(trial));
    starlin__trial_figures(trial, figures);
    starlin__trial_decide(trial, figures, 9);
    CHECK(!starlin__trial_is_over(trial)); /* four times are not enough */
    for (uint64_t i = 8; i < 16; i++) {
        starlin__trial_count(trial, true);
        starlin__trial_step(trial, i, 1, 90.0);
    }
    CHECK(starlin__trial_is_due(trial));
    starlin__trial_figures(trial, figures);
    starlin__trial_decide(trial, figures, 17);
    CHECK(starlin__trial_is_over(trial));
    starlin__trial_release(trial);
}

static uint64_t draw(uint64_t *state, uint64_t limit)
{
    *state = starlin__hash(*state, "", 1);
    return (*state >> 20) % limit;
}

/* Any waits, any times: the ranks stay together, and it ends. */
static void test_random(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t state = seed, length = 1 + draw(&state, 6), oddity = draw(&state, 3);
        world_t world = world_create(1 + (int)draw(&state, MOST_RANKS), 4, 100.0);
        for (int n = 0; n < 4000; n++) {
            bool whole = submit(&world, draw(&state, 1000) != 0 || seed % 2);
            for (int rank = 0; rank < world.nranks; rank++) {
                bool odd = oddity > 0 && draw(&state, oddity == 1 ? 40 : 4) == 0;
                world.plan_us[rank] = 50.0 + (double)draw(&state, 200);
                world.whole_us[rank] = 50.0 + (double)draw(&state, 100);
                if (((uint64_t)n % length == length - 1) != odd)
                    wait_on(&world, rank, whole);
            }
        }
        CHECK(!world.split);
        CHECK(starlin__trial_is_over(world.trials[0]));
        world_destroy(&world);
    }
}

static void test_not_wanted(void)
{
    starlin__trial_t *trial = starlin__trial_create(2, 1.0, "it rains");

    CHECK(starlin__trial_retain(NULL) == NULL);
    starlin__trial_release(NULL);
    CHECK(starlin__trial_retain(trial) == trial);
    starlin__trial_release(trial);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(!starlin__trial_is_due(trial) && !starlin__trial_is_whole(trial));
        starlin__trial_count(trial, true);
        starlin__trial_step(trial, i, 1, 1e6);
    }
    CHECK_EQ_STR(starlin__trial_text(trial), "not tried in the first steps: it rains");
    CHECK(starlin__trial_replaced(trial) == NULL);
    starlin__trial_release(trial);
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK(starlin__trial_create(2, 1.0, NULL) == NULL);
    starlin__alloc_fail_at = 0;
}

int main(void)
{
    test_kept();
    test_replaced();
    test_no_better();
    test_layers();
    test_warm_up();
    test_different_waits();
    test_irregular();
    test_not_joined();
    test_disturbed();
    test_random();
    test_not_wanted();
    return CHECK_RESULT();
}
