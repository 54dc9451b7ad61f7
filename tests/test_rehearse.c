/* SPDX-License-Identifier: BSD-3-Clause */
/* Automatic plans, from measurement to trial: where nothing can be gained one chunk with the reason; where
 * something can, the list that was tried best; the same on every rank, and what explains it. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <unistd.h>

#include "plan/calibrate.h"
#include "plan/planning.h"
#include "row_linear.h"
#include "starlin/starlin_plan.h"
#include "plan/tuned.h"
#include "tune_dir.h"
#include "world.h"

static starlin_context_t *open_context(const char *comm)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin_context_t *context = NULL;

    options.comm = comm;
    options.use_mpi = true;
    options.mpi_comm = (int)MPI_Comm_c2f(MPI_COMM_WORLD);
    CHECK_STATUS(starlin_context_create(&options, &context), STARLIN_SUCCESS);
    return context;
}

/* Where collectives do not need the gemms' cores: a modelled link, or MPI that is told to have a core. */
static starlin_context_t *open_overlapping(void)
{
    starlin_context_t *context = open_context(world_nranks == 1 ? "model:gbps=0.5" : "auto");
    if (context != NULL)
        context->share.comm_has_core = true;
    return context;
}

/* Every rank has the same list and the same reason. */
static void check_same(const starlin_chunking_t *rows)
{
    uint64_t mine = STARLIN__HASH_INIT, others[2];
    const starlin__planning_t *planning = starlin__chunking_planning(rows);
    const char *fallback = starlin_chunking_fallback(rows);

    for (size_t i = 0; i < starlin_chunking_count(rows); i++) {
        int64_t count = starlin_chunking_rows(rows, i);
        mine = starlin__hash(mine, &count, sizeof count);
    }
    mine = starlin__hash(mine, fallback != NULL ? fallback : "", fallback != NULL ? strlen(fallback) : 0);
    mine = starlin__hash(mine, &planning->measured_us, sizeof planning->measured_us);
    MPI_Allreduce(&mine, &others[0], 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &others[1], 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    CHECK(others[0] == others[1]);
}

/* What holds for every record; what was tried is never slower than one chunk by its own figures. */
static void check_record(const starlin_chunking_t *rows, int64_t m)
{
    const starlin__planning_t *planning = starlin__chunking_planning(rows);
    char text[4096] = "", small[8];
    size_t length = 0;

    CHECK(planning != NULL);
    CHECK_EQ_INT(starlin_chunking_total_rows(rows), m);
    CHECK((starlin_chunking_count(rows) == 1) == (starlin_chunking_fallback(rows) != NULL));
    CHECK((planning->nlists == 0) == (planning->unrehearsed != NULL));
    CHECK(planning->nlists != 1);
    CHECK(planning->plan.predicted_us >= 0.0 && planning->planning_us > 0.0);
    for (size_t i = 0; i < planning->nlists; i++) {
        CHECK(planning->lists[i].measured_us > 0.0);
        /* of lists that are about as fast the likelier one is taken */
        CHECK(starlin_chunking_count(rows) == 1 ||
              planning->measured_us <= 1.02 * planning->lists[i].measured_us);
    }
    if (planning->nlists > 0) {
        CHECK_EQ_INT(planning->lists[0].nchunks, 1);
        CHECK(planning->measured_us <= planning->lists[0].measured_us);
    }
    CHECK_STATUS(starlin_chunking_explain(rows, text, sizeof text, &length), STARLIN_SUCCESS);
    CHECK_EQ_INT(strlen(text), length);
    CHECK_CONTAINS(text, "chosen ");
    CHECK_CONTAINS(text, "planning took ");
    CHECK_CONTAINS(text, planning->nlists > 0 ? "tried " : "no list was tried: ");
    CHECK_STATUS(starlin_chunking_explain(rows, small, sizeof small, NULL), STARLIN_SUCCESS);
    CHECK_EQ_INT(strlen(small), sizeof small - 1);
    CHECK_STATUS(starlin_chunking_explain(rows, NULL, 0, &length), STARLIN_SUCCESS);
    check_same(rows);
}

/* Known curves instead of measured ones, so that a busy machine does not decide what is tried. */
static void store_curves(starlin_context_t *context, const starlin_linear_shape_t *shape)
{
    starlin__gemm_t gemm = {.m = shape->m, .n = shape->n, .k = shape->k_local};
    double nbytes = (double)(shape->m * shape->n) * 4.0;
    starlin__tune_entry_t entry = {.task_us = 1.0, .ncomms = 1};

    entry.comms[0] = (starlin__tune_comm_t){.gemm_slowdown = 1.0, .comm_slowdown = 1.0};
    starlin__curve_add(&entry.gemm, 0.0, 0.0);
    starlin__curve_add(&entry.gemm, (double)shape->m, 1000.0);
    starlin__curve_add(&entry.comms[0].curve, 0.0, 0.0);
    starlin__curve_add(&entry.comms[0].curve, nbytes, 1000.0);
    CHECK_STATUS(starlin__tuned_store(context, &gemm, &entry), STARLIN_SUCCESS);
}

static starlin_chunking_t *plan(starlin_context_t *context, const starlin_linear_shape_t *shapes,
                                size_t count)
{
    starlin_chunking_t *rows = NULL;

    CHECK_STATUS(starlin_chunking_plan(context, shapes, count, NULL, &rows), STARLIN_SUCCESS);
    if (rows != NULL)
        check_record(rows, shapes[0].m);
    return rows;
}

static void test_nothing_to_gain(void)
{
    static const starlin_linear_shape_t fast = {.m = 512, .n = 64, .k_local = 2048},
                                        single = {.m = 1, .n = 256, .k_local = 64},
                                        tiny = {.m = 3, .n = 2, .k_local = 1};
    const starlin_linear_shape_t *shapes[] = {&fast, &single, &tiny};
    starlin_context_t *context = open_context(world_nranks == 1 ? "model:gbps=1000" : "auto");

    for (size_t i = 0; context != NULL && i < 3; i++) {
        starlin_chunking_t *rows = plan(context, shapes[i], 1);
        /* several ranks sum over MPI, which may be slow enough for chunks in the large one */
        if (rows != NULL && (world_nranks == 1 || i > 0)) {
            CHECK_EQ_INT(starlin_chunking_count(rows), 1);
            CHECK(starlin__chunking_planning(rows)->nlists == 0);
        }
        starlin_chunking_destroy(rows);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Collectives that wait, not compute, as long as the gemm: half of the time can be hidden, so some list must
 * be predicted, tried and (unless the machine is very busy) chosen. */
static void test_much_to_gain(void)
{
    starlin_linear_shape_t shape = {.m = 1024, .n = 256, .k_local = 128};
    starlin_context_t *context = open_overlapping();
    starlin_chunking_t *rows = NULL;

    if (context == NULL)
        return;
    store_curves(context, &shape);
    rows = plan(context, &shape, 1);
    if (rows != NULL) {
        const starlin__planning_t *planning = starlin__chunking_planning(rows);
        CHECK(planning->nlists >= 2);
        CHECK(planning->lists[1].nchunks > 1);
        CHECK(planning->costs.tuned);
    }
    starlin_chunking_destroy(rows);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Curves that rank 0 has are every rank's; those of another shape are nobody's. */
static void test_tuned(void)
{
    starlin_linear_shape_t shape = {.m = 256, .n = 64, .k_local = world_rank == 0 ? 40 : 24}, other = shape;
    starlin_context_t *context = open_context(world_nranks == 1 ? "model:gbps=1" : "auto");
    starlin__plan_input_t input;
    starlin_chunking_t *rows;

    if (context == NULL)
        return;
    CHECK_STATUS(starlin__calibrate_tune(context, &shape, &input), STARLIN_SUCCESS);
    CHECK(input.gemm.npoints > 5);
    rows = plan(context, &shape, 1);
    if (rows != NULL) {
        CHECK(starlin__chunking_planning(rows)->costs.tuned);
        CHECK(memcmp(&starlin__chunking_planning(rows)->costs.inputs[0].gemm, &input.gemm,
                     sizeof input.gemm) == 0);
    }
    starlin_chunking_destroy(rows);
    other.m = 512; /* beyond the curves */
    for (int i = 0; i < 2; i++, other.m = 256, other.n = 65) {
        rows = plan(context, &other, 1);
        CHECK(rows != NULL && !starlin__chunking_planning(rows)->costs.tuned);
        starlin_chunking_destroy(rows);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Slices of k that differ over the ranks, empty ones too, and layers that differ on one rank only. */
static void test_uneven(void)
{
    starlin_linear_shape_t uneven = {.m = 200, .n = 48, .k_local = world_rank == 0 ? 96 : 0};
    starlin_linear_shape_t chain[3] = {uneven, uneven, uneven};
    starlin_context_t *context = open_context(world_nranks == 1 ? "model:gbps=0.2" : "auto");
    starlin_chunking_t *rows;

    if (context == NULL)
        return;
    starlin_chunking_destroy(plan(context, &uneven, 1));
    starlin_chunking_destroy(plan(context, chain, 3));
    chain[1].k_local += world_rank == world_nranks - 1 ? 32 : 0;
    rows = plan(context, chain, 3);
    if (rows != NULL)
        CHECK_EQ_STR(starlin__chunking_planning(rows)->unrehearsed, "the layers differ");
    starlin_chunking_destroy(rows);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Memory that runs out at each allocation of the planning in turn is an error, and nothing is left behind. */
static void test_failures(void)
{
    starlin_linear_shape_t shape = {.m = 64, .n = 16, .k_local = 16};
    starlin_context_t *context = open_context("self");
    size_t failed = 0;

    for (uint64_t at = 1; context != NULL && at < 100; at++) {
        starlin_chunking_t *rows = NULL;
        starlin__alloc_fail_at = starlin__alloc_count + at;
        starlin_status_t status = starlin_chunking_plan(context, &shape, 1, NULL, &rows);
        starlin__alloc_fail_at = 0;
        failed += status == STARLIN_ERR_NO_MEMORY;
        CHECK((status == STARLIN_SUCCESS) == (rows != NULL));
        starlin_chunking_destroy(rows);
        if (status == STARLIN_SUCCESS)
            break;
    }
    CHECK(failed >= 3);
    CHECK_EQ_INT(context != NULL ? context->nmatrices : 0, 0);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

static bool fail_on_last(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    (void)arg;
    (void)chunk;
    return rank != world_nranks - 1 || sequence < 4;
}

/* A gemm that fails while lists are tried, on one rank, ends planning on all of them; everything that was
 * opened for it is closed. */
static void test_failed_run(void)
{
    starlin_linear_shape_t shape = {.m = 1024, .n = 256, .k_local = 128};
    starlin_context_t *context = open_overlapping();
    starlin_chunking_t *rows = NULL;

    if (context == NULL)
        return;
    store_curves(context, &shape);
    starlin__gemm_hook = fail_on_last;
    CHECK_STATUS(starlin_chunking_plan(context, &shape, 1, NULL, &rows), STARLIN_ERR_COMPUTE);
    starlin__gemm_hook = NULL;
    CHECK(rows == NULL);
    CHECK_EQ_INT(context->nmatrices, 0);
    (void)starlin_context_destroy(context);
}

static const starlin__compute_ops_t *backend;

static starlin_status_t refuse_second_point(starlin__compute_t *compute, const starlin__gemm_t *gemm)
{
    if (world_rank == world_nranks - 1 && gemm->m == 32)
        return starlin__error(STARLIN_ERR_COMPUTE, "no algorithm (injected)");
    return backend->prepare(compute, gemm);
}

/* One rank that cannot measure a gemm ends planning on all of them, and none waits for it. */
static void test_failed_preparation(void)
{
    starlin_linear_shape_t shape = {.m = 1024, .n = 248, .k_local = 128};
    starlin_context_t *context = open_overlapping();
    starlin__compute_ops_t refusing;
    starlin_chunking_t *rows = NULL;

    if (context == NULL)
        return;
    context->config.timeout_ms = 20000;
    backend = context->compute->ops;
    refusing = *backend;
    refusing.prepare = refuse_second_point;
    context->compute->ops = &refusing;
    CHECK_STATUS(starlin_chunking_plan(context, &shape, 1, NULL, &rows), STARLIN_ERR_COMPUTE);
    CHECK_CONTAINS(starlin_last_error(), "no algorithm (injected)");
    context->compute->ops = backend;
    CHECK(rows == NULL);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

static void test_wrong_use(void)
{
    size_t length = 7;
    char text[64];
    CHECK_STATUS(starlin_chunking_explain(NULL, text, sizeof text, &length), STARLIN_ERR_INVALID);
    CHECK_EQ_INT(length, 7);
}

int main(int argc, char **argv)
{
    world_begin(&argc, &argv);
    tune_dir_open();
    test_nothing_to_gain();
    test_much_to_gain();
    test_failed_run();
    test_failed_preparation();
    test_tuned();
    test_uneven();
    if (world_nranks == 1)
        test_failures();
    test_wrong_use();
    tune_dir_close();
    return world_end();
}
