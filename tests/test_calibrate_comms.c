/* SPDX-License-Identifier: BSD-3-Clause */
/* The thorough calibration of several numbers of CTAs: with a communicator that only tells the time, on the
 * host; then beside a gemm on a device that does so too. For the thread that measures, time goes on by a
 * little whenever it looks: what it measures is what was meant to pass, however busy the machine is. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <math.h>
#include <unistd.h>

#include "plan/calibrate.h"
#include "plan/calibrate_comms.h"
#include "fake_device.h"
#include "plan/tuned.h"
#include "tune_dir.h"
#include "world.h"

/* The linker puts the first in the place of the library's clock. */
double __wrap_starlin__now_us(void);
double __real_starlin__now_us(void);
static _Thread_local double clock_us;

double __wrap_starlin__now_us(void)
{
    if (clock_us <= 0.0)
        return __real_starlin__now_us();
    clock_us += 0.5;
    return clock_us;
}

/* ------------------------------------------------------------------- a communicator */

static size_t noffered;
static unsigned offered[16], prepared[16], failing;
static size_t nprepared, nunprepared;

static size_t fake_choices(const starlin__comm_t *comm, unsigned *ctas, size_t most)
{
    (void)comm;
    for (size_t i = 0; i < noffered && i < most; i++)
        ctas[i] = offered[i];
    return noffered < most ? noffered : most;
}

static starlin_status_t fake_prepare(starlin__comm_t *comm, unsigned ctas)
{
    (void)comm;
    if (ctas == failing)
        return starlin__error(STARLIN_ERR_COMM, "%u CTAs fail in this test", ctas);
    prepared[nprepared++] = ctas;
    return STARLIN_SUCCESS;
}

static bool is_prepared(unsigned ctas)
{
    for (size_t i = 0; i < nprepared; i++) {
        if (prepared[i] == ctas)
            return true;
    }
    return ctas == 0;
}

/* The fewer CTAs, the longer. */
static starlin_status_t fake_start(starlin__comm_t *comm, starlin__allreduce_t *request)
{
    (void)comm;
    nunprepared += !is_prepared(request->ctas);
    request->opaque.numbers[0] = starlin__now_us() + (request->ctas == 0 ? 20.0 : 3200.0 / request->ctas);
    return STARLIN_SUCCESS;
}

static starlin_status_t fake_test(starlin__comm_t *comm, starlin__allreduce_t *request, bool *done_p)
{
    (void)comm;
    *done_p = starlin__now_us() >= request->opaque.numbers[0];
    return STARLIN_SUCCESS;
}

static void offer(size_t count, const unsigned *ctas)
{
    noffered = count;
    memcpy(offered, ctas, count * sizeof *ctas);
    nprepared = nunprepared = 0;
    failing = 0;
}

static const starlin_linear_shape_t shape = {.m = 24, .n = 8, .k_local = 8};

/* Tunes and looks what is in the file then. */
static bool tunes(starlin_context_t *context, starlin__tune_entry_t *entry)
{
    starlin__gemm_t gemm = {.m = shape.m, .n = shape.n, .k = shape.k_local};
    starlin__plan_input_t input;
    bool found = false;

    CHECK_STATUS(starlin__calibrate_tune(context, &shape, &input), STARLIN_SUCCESS);
    CHECK_EQ_INT(nunprepared, 0);
    CHECK_STATUS(starlin__tuned_load(context, &gemm, &found, entry), STARLIN_SUCCESS);
    CHECK(found);
    if (found)
        CHECK(memcmp(&input.comm, &entry->comms[0].curve, sizeof input.comm) == 0);
    return found;
}

static double last_us(const starlin__tune_entry_t *entry, size_t index)
{
    const starlin__curve_t *curve = &entry->comms[index].curve;
    return curve->npoints > 0 ? curve->time_us[curve->npoints - 1] : 0.0;
}

static void test_choices(starlin_context_t *context)
{
    starlin__tune_entry_t entry;

    offer(2, (unsigned[]){2, 16});
    if (!tunes(context, &entry))
        return;
    CHECK_EQ_INT(entry.ncomms, 3);
    CHECK_EQ_INT(nprepared, 2);
    for (size_t i = 0; i < 3; i++) {
        const starlin__tune_comm_t *comm = &entry.comms[i];
        CHECK_EQ_INT(comm->ctas, i == 0 ? 0 : offered[i - 1]);
        CHECK(comm->curve.npoints >= 3);
        CHECK_EQ_INT(comm->curve.size[comm->curve.npoints - 1], shape.m * shape.n * 4);
        /* on the host there are no shared processors to be measured */
        CHECK(comm->gemm_slowdown <= 1.0 && comm->comm_slowdown <= 1.0 && comm->comm_delay_us <= 0.0);
    }
    CHECK(fabs(last_us(&entry, 0) - 20.0) < 5.0);
    CHECK(fabs(last_us(&entry, 1) - 1600.0) < 5.0);
    CHECK(fabs(last_us(&entry, 2) - 200.0) < 5.0);
}

/* As many as there is room for; none where none are offered. */
static void test_counts(starlin_context_t *context, starlin__comm_ops_t *ops)
{
    static const unsigned many[] = {400, 401, 402, 403, 404, 405, 406, 407, 408, 409};
    starlin__tune_entry_t entry;

    offer(10, many);
    if (tunes(context, &entry)) {
        CHECK_EQ_INT(entry.ncomms, STARLIN__TUNE_COMMS);
        CHECK_EQ_INT(entry.comms[STARLIN__TUNE_COMMS - 1].ctas, 400 + STARLIN__TUNE_COMMS - 2);
    }
    offer(0, many);
    CHECK(tunes(context, &entry) && entry.ncomms == 1);
    ops->ctas_choices = NULL;
    CHECK(tunes(context, &entry) && entry.ncomms == 1);
    ops->ctas_choices = fake_choices;
    ops->ctas_prepare = NULL;
    offer(1, many);
    prepared[nprepared++] = many[0]; /* nothing has to be done for it */
    CHECK(tunes(context, &entry) && entry.ncomms == 2);
    ops->ctas_prepare = fake_prepare;
}

/* A number that cannot be prepared ends the tuning, and nothing is stored. */
static void test_failure(starlin_context_t *context)
{
    starlin__gemm_t gemm = {.m = shape.m, .n = 99, .k = shape.k_local};
    starlin_linear_shape_t other = shape;
    starlin__tune_entry_t entry;
    starlin__plan_input_t input;
    bool found = true;

    other.n = 99;
    offer(2, (unsigned[]){100, 200});
    failing = 200;
    CHECK_STATUS(starlin__calibrate_tune(context, &other, &input), STARLIN_ERR_COMM);
    CHECK_CONTAINS(starlin_last_error(), "200 CTAs fail");
    CHECK_STATUS(starlin__tuned_load(context, &gemm, &found, &entry), STARLIN_SUCCESS);
    CHECK(!found);
}

/* ------------------------------------------------------------------------ a device */

static starlin_status_t device_start(starlin__comm_t *comm, starlin__allreduce_t *request)
{
    double now_us = starlin__now_us();

    ngemm_first += busy_until_us[STARLIN__STREAM_COMPUTE] > now_us;
    busy_until_us[STARLIN__STREAM_COMM] = now_us + (request->ctas == 0 ? 4000.0 : 8000.0);
    return comm->device->ops->event_record(comm->device, request->done, STARLIN__STREAM_COMM);
}

static starlin_status_t device_test(starlin__comm_t *comm, starlin__allreduce_t *request, bool *done_p)
{
    return comm->device->ops->event_query(comm->device, request->done, done_p);
}

/* Of the communicator's own number: 4000 us at six rows. */
static double device_predict_us(const starlin__comm_t *comm, double nbytes)
{
    (void)comm;
    return 4000.0 * nbytes / (6.0 * 8.0 * 4.0);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void run_beside(starlin_context_t *context, const starlin__scratch_t *scratch,
                       starlin__tune_entry_t *entry)
{
    CHECK_STATUS(starlin__calibrate_comms(context, scratch, entry), STARLIN_SUCCESS);
    CHECK_EQ_INT(nevents, 0);
    CHECK_EQ_INT(ngemm_first, 0);
}

/* Plans see the slowdowns that were measured, and no rule of thumb. */
static void run_plan(starlin_context_t *context, const starlin__scratch_t *scratch,
                     starlin__tune_entry_t *entry)
{
    starlin__costs_t costs = {0};

    CHECK_STATUS(starlin__tuned_store(context, &scratch->gemm, entry), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__calibrate(context, scratch, &costs), STARLIN_SUCCESS);
    CHECK(costs.tuned);
    CHECK_EQ_INT(costs.ninputs, entry->ncomms);
    for (size_t i = 0; i < costs.ninputs; i++) {
        CHECK_EQ_INT(costs.inputs[i].ctas, entry->comms[i].ctas);
        CHECK(is_near(costs.inputs[i].gemm_slowdown, entry->comms[i].gemm_slowdown));
        CHECK(is_near(costs.inputs[i].comm_slowdown, entry->comms[i].comm_slowdown));
    }
}

static bool is_about(double actual, double expected)
{
    return fabs(actual / expected - 1.0) < 0.01;
}

/* Own number: the collective lasts 5000 instead of 4000 us, all of them beside the gemm, which takes 6000
 * instead of 4000: 1000 alone, and 3000 in 5000. With two CTAs the collective goes on after the gemm: 10000
 * instead of 8000, 6000 of them beside the gemm. */
static void test_beside_gemm(starlin_context_t *context, starlin__comm_ops_t *ops)
{
    starlin__tune_entry_t entry = {
        .ncomms = 1, .comms[0] = {.gemm_slowdown = 1.02, .comm_slowdown = 1.05, .comm_delay_us = 33.0}};

    ops->allreduce_start = device_start;
    ops->allreduce_test = device_test;
    ops->predict_us = device_predict_us;
    starlin__curve_add(&entry.gemm, 1.0, 2000.0);
    starlin__curve_add(&entry.gemm, 8.0, 16000.0);
    for (int rows = 1; rows <= 8; rows += 7)
        starlin__curve_add(&entry.comms[0].curve, rows * 32.0, device_predict_us(context->comm, rows * 32.0));
    offer(1, (unsigned[]){2});
    with_device(context, run_beside, &entry);
    CHECK(ncomm_first > 0);
    CHECK_EQ_INT(entry.ncomms, 2);
    CHECK_EQ_INT(entry.comms[1].ctas, 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK(is_about(entry.comms[i].gemm_slowdown, i == 0 ? 5.0 / 3.0 : 1.5));
        CHECK(is_about(entry.comms[i].comm_slowdown, i == 0 ? 1.25 : 1.5));
        CHECK(entry.comms[i].comm_delay_us >= 33.0 && entry.comms[i].comm_delay_us <= 33.0);
    }
    CHECK(is_about(last_us(&entry, 1), 2.0 * last_us(&entry, 0)));
    with_device(context, run_plan, &entry);

    /* collectives that are over at once tell nothing about gemms */
    entry.ncomms = 1;
    entry.comms[0].gemm_slowdown = 1.02;
    entry.comms[0].comm_slowdown = 1.05;
    for (size_t i = 0; i < entry.comms[0].curve.npoints; i++)
        entry.comms[0].curve.time_us[i] = 1.0;
    offer(0, offered);
    with_device(context, run_beside, &entry);
    CHECK(entry.comms[0].gemm_slowdown < 1.03 && entry.comms[0].comm_slowdown < 1.06);
}

static void test_slowdown(void)
{
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 100.0, 50.0), 1.0));
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 90.0, 50.0), 1.0));   /* noise */
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 150.0, 150.0), 1.5)); /* all the time */
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 110.0, 30.0), 1.5));  /* 80 alone, 20 in 30 */
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 200.0, 100.0), 4.0)); /* a wait */
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 500.0, 500.0), 4.0));
    CHECK(is_near(starlin__calibrate_slowdown(100.0, 110.0, -5.0), 1.0)); /* one after the other */
    CHECK(is_near(starlin__calibrate_slowdown(0.0, 0.0, 0.0), 1.0));
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    world_begin(&argc, &argv);
    tune_dir_open();
    setenv("STARLIN_MAX_CTAS", "512", 1); /* a limit is no number of its own */
    test_slowdown();
    context = world_context(600000); /* long, for exchanges look at the clock often */
    if (context != NULL) {
        const starlin__comm_ops_t *own = context->comm->ops;
        starlin__comm_ops_t ops = *own;
        ops.allreduce_start = fake_start;
        ops.allreduce_test = fake_test;
        ops.ctas_choices = fake_choices;
        ops.ctas_prepare = fake_prepare;
        ops.predict_us = NULL;
        context->comm->ops = &ops;
        clock_us = 1.0;
        test_choices(context);
        test_counts(context, &ops);
        test_failure(context);
        test_beside_gemm(context, &ops);
        clock_us = 0.0;
        context->comm->ops = own;
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    tune_dir_close();
    return world_end();
}
