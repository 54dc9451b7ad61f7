/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of operators: results as without a group, collectives ordered by chunk on every rank, and what is
 * refused. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <time.h>

#include "check.h"
#include "world.h"

#define LONGEST_US 2000
#include "graph/context.h"
#include "operators.h"
#include "starlin/starlin_report.h"
#include "watchdog.h"

enum { NCHUNKS = 4, MOST_SPANS = 1 << 12, MOST_PLACES = 1 << 12 };

static atomic_uint ngemms;

static bool count_and_delay(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    atomic_fetch_add(&ngemms, 1);
    return delay(arg, rank, sequence, chunk);
}

/* Collectives of the operators from `first` on were started by chunk, then operator; without a group by
 * operator, then chunk. That is the same order on every rank. */
static void check_order(starlin_context_t *context, uint64_t first, size_t count, bool grouped)
{
    static starlin__span_t spans[MOST_SPANS];
    double launches[MOST_PLACES] = {0}, before = 0;
    size_t nspans = starlin__timeline_read(context->timeline, spans, MOST_SPANS), nlaunches = 0, early = 0;

    for (size_t i = 0; i < nspans; i++) {
        size_t op = (size_t)(spans[i].sequence - first), chunk = spans[i].chunk;
        size_t place = grouped ? chunk * count + op : op * NCHUNKS + chunk;
        if (spans[i].lane != STARLIN__LANE_LINK || spans[i].sequence < first || op >= count ||
            place >= MOST_PLACES)
            continue;
        launches[place] = spans[i].launch_us;
        nlaunches++;
    }
    for (size_t place = 0; place < count * NCHUNKS && place < MOST_PLACES; place++) {
        if (launches[place] == 0)
            continue;
        early += launches[place] < before;
        before = launches[place];
    }
    if (world_nranks > 1)
        CHECK(nlaunches >= 4 * (size_t)NCHUNKS);
    CHECK_EQ_INT(early, 0);
}

/* All operators twice, in one group or none; the hash of their results. */
static uint64_t run(starlin_context_t *context, bool grouped)
{
    scene_t scene = {.context = context, .m = 37, .count = NCHUNKS, .blocks = true, .variant = 3};
    static job_t jobs[NJOBS + NCHAINED];
    uint64_t hash = STARLIN__HASH_INIT, first = context->sequence + 1;
    size_t count;

    scene_open(&scene);
    if (scene.rows == NULL)
        return 0;
    CHECK_EQ_INT(starlin_chunking_count(scene.rows), NCHUNKS);
    count = open_every_job(&scene, jobs);
    starlin__timeline_clear(context->timeline);
    atomic_store(&ngemms, 0);
    if (grouped)
        CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    for (size_t i = 0; i < 2 * count; i++)
        job_submit(&jobs[i % count]);
    if (grouped) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        CHECK_EQ_INT(atomic_load(&ngemms), 0);
        CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK(atomic_load(&ngemms) >= NCHUNKS);
    check_order(context, first, (size_t)(context->sequence + 1 - first), grouped);
    for (size_t i = 0; i < count; i++)
        job_check(&jobs[i], &hash);
    close_every_job(jobs, count);
    scene_close(&scene);
    return hash;
}

static void test_results(const char *policy, const char *nworkers)
{
    starlin_context_t *context;
    uint64_t alone, grouped;

    step_begin(policy, nworkers[0] - '0');
    setenv("STARPU_SCHED", policy, 1);
    setenv("STARPU_NCPU", nworkers, 1);
    context = world_context(20000);
    if (context == NULL)
        return;
    CHECK_STATUS(starlin_report_enable(context, true), STARLIN_SUCCESS);
    starlin__gemm_hook_arg = (void *)(uintptr_t)policy[0];
    starlin__gemm_hook = count_and_delay;
    alone = run(context, false);
    for (int i = 0; i < 3; i++) {
        grouped = run(context, true);
        CHECK_EQ_INT(grouped, alone);
    }
    starlin__gemm_hook = NULL;
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Operators over two sets of rows, and a result that is used before the group ends. */
static void test_inserted_early(starlin_context_t *context)
{
    scene_t scenes[2] = {{.context = context, .m = 12, .count = 3}, {.context = context, .m = 7, .count = 2}};
    job_t jobs[2] = {JOB_ROW(REPLICATE, JOB_FINISH), JOB_ROW(REPLICATE, .bias = true)};
    uint64_t hash = STARLIN__HASH_INIT;

    step_begin("inserted early", 0);
    for (int i = 0; i < 2; i++) {
        scene_open(&scenes[i]);
        job_open(&jobs[i], &scenes[i], 3);
    }
    CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    for (int i = 0; i < 6; i++)
        job_submit(&jobs[i % 2]);
    CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    for (int i = 0; i < 2; i++)
        job_check(&jobs[i], &hash);
    CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    for (int i = 0; i < 2; i++) {
        tensor_fill(&jobs[i].y, NULL);
        job_submit(&jobs[i]);
        job_check(&jobs[i], &hash); /* waits */
    }
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    /* more than anybody would count with */
    CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    for (int i = 0; i < 300; i++)
        job_submit(&jobs[0]);
    CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    job_check(&jobs[0], &hash);
    for (int i = 0; i < 2; i++) {
        job_close(&jobs[i]);
        scene_close(&scenes[i]);
    }
}

/* Wrong use, an operator that is refused within a group, an empty group. False: the context is gone. */
static bool test_refusals(starlin_context_t *context)
{
    scene_t scene = {.context = context, .m = 9, .count = 2};
    job_t job = JOB_COLUMN(REPLICATE, JOB_FINISH);
    uint64_t hash = STARLIN__HASH_INIT;
    starlin_status_t status;

    step_begin("refusals", 0);
    scene_open(&scene);
    job_open(&job, &scene, 3);
    CHECK_STATUS(starlin_group_begin(NULL), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "context is NULL");
    CHECK_STATUS(starlin_group_end(NULL), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "context is NULL");
    CHECK_STATUS(starlin_group_end(context), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "starlin_group_begin");
    CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    job_submit(&job);
    CHECK_STATUS(starlin_group_begin(context), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "group");
    CHECK_STATUS(starlin_column_linear(context, job.w.matrix, job.x.matrix, job.y.matrix, NULL),
                 STARLIN_ERR_INVALID);
    job_submit(&job);
    CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    job_check(&job, &hash);
    job_close(&job);
    scene_close(&scene);
    CHECK_STATUS(starlin_group_begin(context), STARLIN_SUCCESS);
    status = starlin_context_destroy(context);
    CHECK_EQ_INT(status, STARLIN_ERR_INVALID);
    if (status == STARLIN_SUCCESS)
        return false;
    CHECK_CONTAINS(starlin_last_error(), "group");
    CHECK_STATUS(starlin_group_end(context), STARLIN_SUCCESS);
    return true;
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    step_limit(110);
    test_results("starlin", "2");
    test_results("eager", "1");
    test_results("random", "2");
    context = world_context(20000);
    if (context != NULL) {
        test_inserted_early(context);
        if (test_refusals(context))
            CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    return world_end();
}
