/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration. Ranks measure the same points in step and take the slowest rank's time, so that all plan from
 * the same figures; a failure on one rank ends it on all. Quick: sizes grow until the time budget is spent;
 * beyond, the curve's last slope serves. Thorough: more sizes, all of them. */
#include "plan/calibrate.h"

#include <string.h>

#include "plan/calibrate_comms.h"
#include "plan/calibrate_private.h"
#include "plan/figures.h"
#include "base/numbers.h"
#include "plan/tuned.h"

/* Budget for the gemms and for the collectives of one layer; half of it is the last point's. */
static const double budget_us = 80e3;
/* Of one point, thoroughly: as many runs as fit, within limits. */
static const double point_us = 200e3;
enum {
    REPETITIONS = 2,
    FEWER = 16, /* part of the rows, for a second point */
    THOROUGH_LEAST = 3,
    THOROUGH_MOST = 15
};
/* Of the time of a gemm that leaves a collective room: below, small chunks cost no more than pieces. */
static const double high_latency = 0.15;

/* A collective that takes no longer than this factor keeps up with one of the communicator's own number of
 * CTAs. */
static const double as_fast = 1.03;

typedef starlin__calibration_t calibration_t;
typedef starlin__calibration_fn_t once_fn_t;

static starlin_status_t gemm_once(calibration_t *calibration)
{
    starlin_context_t *context = calibration->context;

    STARLIN__FORWARD(context->compute->ops->gemm(context->compute, 0, &calibration->gemm));
    return context->device != NULL ? context->device->ops->synchronize(context->device) : STARLIN_SUCCESS;
}

static starlin_status_t gemm_twice(calibration_t *calibration)
{
    starlin_context_t *context = calibration->context;

    STARLIN__FORWARD(context->compute->ops->gemm(context->compute, 0, &calibration->gemm));
    return gemm_once(calibration);
}

static starlin_status_t allreduce_once(calibration_t *calibration)
{
    starlin_context_t *context = calibration->context;
    starlin__comm_t *comm = context->comm;
    double deadline_us = starlin__now_us() + 1e3 * context->config.timeout_ms;
    bool done = false;

    STARLIN__FORWARD(comm->ops->allreduce_start(comm, &calibration->request));
    for (;;) {
        STARLIN__FORWARD(comm->ops->allreduce_test(comm, &calibration->request, &done));
        if (done)
            return STARLIN_SUCCESS;
        if (starlin__now_us() > deadline_us)
            break;
    }
    if (comm->ops->abort != NULL)
        comm->ops->abort(comm);
    return starlin__error(STARLIN_ERR_TIMEOUT, "a collective took longer than %u ms while it was measured",
                          context->config.timeout_ms);
}

static starlin_status_t run_times(calibration_t *calibration, once_fn_t once, size_t count, double *times_us)
{
    for (size_t i = 0; i < count; i++) {
        double start_us = starlin__now_us();
        STARLIN__FORWARD(once(calibration));
        times_us[i] = starlin__now_us() - start_us;
    }
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__calibration_time(calibration_t *calibration, once_fn_t once, double *time_us)
{
    double times_us[THOROUGH_MOST], first_us = 0.0;
    size_t count = REPETITIONS;
    starlin_status_t status = run_times(calibration, once, 1, &first_us);

    if (calibration->thorough) { /* how many follow is every rank's decision */
        STARLIN__FORWARD(starlin__agree_max(calibration->context, status, &first_us, 1));
        double fits = first_us > 0.0 ? point_us / first_us : THOROUGH_MOST;
        count = fits > THOROUGH_MOST ? THOROUGH_MOST : fits < THOROUGH_LEAST ? THOROUGH_LEAST : (size_t)fits;
    }
    if (status == STARLIN_SUCCESS)
        status = run_times(calibration, once, count, times_us);
    if (status == STARLIN_SUCCESS) {
        starlin__numbers_sort(times_us, count);
        *time_us = times_us[calibration->thorough ? count / 2 : 0];
    }
    return starlin__agree_max(calibration->context, status, time_us, 1);
}

/* Row counts of a curve: powers of two times the smallest; thoroughly, up to three more between two of them,
 * as many as a curve has room for. */
static int64_t next_rows(const calibration_t *calibration, int64_t rows, int64_t smallest, int64_t m)
{
    int64_t power = smallest, step, octaves = 0;

    if (!calibration->thorough)
        return rows >= m - rows ? m : 2 * rows;
    for (int64_t size = smallest; size < m; size *= 2)
        octaves++;
    while (2 * power <= rows)
        power *= 2;
    /* the first two octaves have one and two points */
    step = power / (4 * octaves - 4 <= STARLIN__CURVE_POINTS ? 4
                    : 2 * octaves <= STARLIN__CURVE_POINTS   ? 2
                                                             : 1);
    step = step > smallest ? step : smallest;
    return rows >= m - step ? m : rows + step;
}

/* What a device's first launch and the host's wait for its end cost beyond the kernel: once for a step,
 * though each gemm that is measured alone has it. From the gemm that has been prepared. */
static starlin_status_t measure_wait(calibration_t *calibration, double *wait_us)
{
    static const double most_us = 100.0;
    double once_us = 0.0, twice_us = 0.0;

    *wait_us = 0.0;
    if (calibration->context->device == NULL)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__calibration_time(calibration, gemm_once, &once_us));
    STARLIN__FORWARD(starlin__calibration_time(calibration, gemm_twice, &twice_us));
    if (2.0 * once_us > twice_us)
        *wait_us = 2.0 * once_us - twice_us < most_us ? 2.0 * once_us - twice_us : most_us;
    return STARLIN_SUCCESS;
}

static starlin_status_t measure_gemm(calibration_t *calibration, int64_t m, starlin__curve_t *curve,
                                     double *wait_us)
{
    const starlin__compute_t *compute = calibration->context->compute;
    int64_t smallest =
        calibration->context->device != NULL ? STARLIN__SMALLEST_ROWS_DEVICE : STARLIN__SMALLEST_ROWS_HOST;
    double spent_us = 0.0, time_us = 0.0;

    for (int64_t rows = smallest < m ? smallest : m;; rows = next_rows(calibration, rows, smallest, m)) {
        calibration->gemm.m = rows;
        /* a rank that cannot go on must not leave the others to the next exchange */
        STARLIN__FORWARD(starlin__agree_max(
            calibration->context, compute->ops->prepare(calibration->context->compute, &calibration->gemm),
            NULL, 0));
        if (curve->npoints == 0)
            STARLIN__FORWARD(measure_wait(calibration, wait_us));
        STARLIN__FORWARD(starlin__calibration_time(calibration, gemm_once, &time_us));
        time_us = time_us > 2.0 * *wait_us ? time_us - *wait_us : time_us / 2.0;
        starlin__curve_add(curve, (double)rows, time_us);
        spent_us += (REPETITIONS + 1) * time_us;
        if (rows == m)
            return STARLIN_SUCCESS;
        if (!calibration->thorough && spent_us + 2 * (REPETITIONS + 1) * time_us > budget_us) {
            /* more of the same: safer than a slope between two points */
            starlin__curve_add(curve, (double)m, time_us * (double)m / (double)rows);
            return STARLIN_SUCCESS;
        }
    }
}

static double nbytes_per_row(const starlin__gemm_t *gemm)
{
    return (double)gemm->n * (double)starlin_dtype_nbytes(gemm->out_dtype);
}

/* What the communicator knows of itself; false if nothing. */
static bool predict_comm(const calibration_t *calibration, int64_t m, starlin__curve_t *curve)
{
    const starlin__comm_t *comm = calibration->context->comm;

    for (int64_t rows = 1; comm->ops->predict_us != NULL && rows < 2 * m; rows = rows == m ? 2 * m : m) {
        double nbytes = nbytes_per_row(&calibration->gemm) * (double)rows;
        starlin__curve_add(curve, nbytes, comm->ops->predict_us(comm, nbytes));
    }
    return comm->ops->predict_us != NULL;
}

starlin_status_t starlin__calibration_comm(calibration_t *calibration, int64_t m, starlin__curve_t *curve)
{
    const starlin__gemm_t *gemm = &calibration->gemm;
    double spent_us = 0.0, time_us = 0.0;
    int64_t smallest = (m + 31) / 32;

    if (calibration->request.ctas == 0 && predict_comm(calibration, m, curve))
        return STARLIN_SUCCESS;
    calibration->request.buffer = gemm->y;
    calibration->request.dtype = gemm->out_dtype;
    for (int64_t rows = smallest;; rows = next_rows(calibration, rows, smallest, m)) {
        calibration->request.count = (size_t)(rows * gemm->n);
        STARLIN__FORWARD(starlin__calibration_time(calibration, allreduce_once, &time_us));
        starlin__curve_add(curve, nbytes_per_row(gemm) * (double)rows, time_us);
        spent_us += (REPETITIONS + 1) * time_us;
        if (rows == m || (!calibration->thorough && spent_us + 2 * (REPETITIONS + 1) * time_us > budget_us))
            return STARLIN_SUCCESS;
    }
}

/* Two points. */
static starlin_status_t measure_few(calibration_t *calibration, int64_t m, unsigned ctas,
                                    starlin__curve_t *curve)
{
    const starlin__gemm_t *gemm = &calibration->gemm;
    starlin_status_t status = STARLIN_SUCCESS;
    double time_us = 0.0;

    calibration->request.buffer = gemm->y;
    calibration->request.dtype = gemm->out_dtype;
    calibration->request.ctas = ctas;
    memset(curve, 0, sizeof *curve);
    for (int64_t rows = m < FEWER ? 1 : m / FEWER; status == STARLIN_SUCCESS && rows > 0;
         rows = rows == m ? 0 : m) {
        calibration->request.count = (size_t)(rows * gemm->n);
        status = starlin__calibration_time(calibration, allreduce_once, &time_us);
        if (status == STARLIN_SUCCESS)
            starlin__curve_add(curve, nbytes_per_row(gemm) * (double)rows, time_us);
    }
    calibration->request.ctas = 0;
    return status;
}

/* A collective with fewer CTAs than the link needs takes longer; from the first number that keeps up on, all
 * do. The largest size and a small one tell. Only where asking for a number costs nothing; the tune file
 * knows of the others. */
static starlin_status_t measure_choices(calibration_t *calibration, starlin__costs_t *costs)
{
    const starlin__comm_t *comm = calibration->context->comm;
    const starlin__plan_input_t *own = &costs->inputs[0];
    double largest = (double)own->m * own->nbytes_per_row;
    unsigned choices[STARLIN__MOST_CTAS - 1];
    starlin__curve_t reference;
    size_t count = 0;
    bool keeps_up = false;

    if (comm->ops->ctas_choices != NULL && comm->ops->ctas_prepare == NULL)
        count = comm->ops->ctas_choices(comm, choices, STARLIN__MOST_CTAS - 1);
    if (count > 0)
        STARLIN__FORWARD(measure_few(calibration, own->m, 0, &reference));
    for (size_t i = 0; i < count; i++) {
        starlin__plan_input_t *input = &costs->inputs[costs->ninputs++];
        *input = *own;
        input->ctas = choices[i];
        if (keeps_up)
            continue;
        STARLIN__FORWARD(measure_few(calibration, own->m, choices[i], &input->comm));
        keeps_up =
            starlin__curve_eval(&input->comm, largest) < as_fast * starlin__curve_eval(&reference, largest);
        if (keeps_up)
            input->comm = own->comm;
    }
    return STARLIN_SUCCESS;
}

/* With nothing else running: collectives of operators in flight would meet those that are measured. */
static starlin_status_t measure(starlin_context_t *context, const starlin__scratch_t *scratch, bool thorough,
                                starlin__costs_t *costs)
{
    starlin__plan_input_t *input = &costs->inputs[0];
    calibration_t calibration = {.context = context, .gemm = scratch->gemm, .thorough = thorough};
    starlin__allreduce_t *request = &calibration.request;
    starlin__device_t *device = context->device;
    starlin_status_t status = starlin_context_wait(context);

    if (status == STARLIN_SUCCESS && device != NULL)
        status = device->ops->event_create(device, &request->after);
    if (status == STARLIN_SUCCESS && device != NULL)
        status = device->ops->event_create(device, &request->done);
    /* what can fail on one rank before its first point: workspaces of the largest gemm, events */
    if (status == STARLIN_SUCCESS)
        status = context->compute->ops->prepare(context->compute, &scratch->gemm);
    status = starlin__agree_max(context, status, NULL, 0);
    starlin__context_pause(context);
    if (status == STARLIN_SUCCESS)
        status = measure_gemm(&calibration, scratch->gemm.m, &input->gemm, &input->wait_us);
    if (status == STARLIN_SUCCESS)
        status = starlin__calibration_comm(&calibration, scratch->gemm.m, &input->comm);
    if (status == STARLIN_SUCCESS && !thorough)
        status = measure_choices(&calibration, costs);
    starlin__context_resume(context);
    if (request->after != NULL)
        device->ops->event_destroy(device, request->after);
    if (request->done != NULL)
        device->ops->event_destroy(device, request->done);
    return status;
}

static void use_entry(const starlin__tune_entry_t *entry, starlin__costs_t *costs)
{
    for (size_t i = 0; i < entry->ncomms; i++) {
        const starlin__tune_comm_t *comm = &entry->comms[i];
        starlin__plan_input_t *input = &costs->inputs[i];
        *input = costs->inputs[0];
        input->ctas = comm->ctas;
        input->gemm = entry->gemm;
        input->task_us = entry->task_us;
        input->comm = comm->curve;
        input->gemm_slowdown = comm->gemm_slowdown;
        input->comm_slowdown = comm->comm_slowdown;
        input->comm_delay_us = comm->comm_delay_us;
    }
    costs->ninputs = entry->ncomms;
}

/* Where the line through the two smallest points meets size 0. */
static double latency_us(const starlin__curve_t *curve)
{
    double slope;

    if (curve->npoints < 2)
        return 0.0;
    slope = (curve->time_us[1] - curve->time_us[0]) / (curve->size[1] - curve->size[0]);
    return curve->time_us[0] - slope * curve->size[0];
}

/* Gemms finer than the collectives: where a collective has a high latency, larger chunks in pieces that leave
 * it room may be better than small chunks. */
static void add_pieces(starlin__costs_t *costs)
{
    size_t count = costs->ninputs;

    for (size_t i = 0; i < count; i++) {
        const starlin__plan_input_t *input = &costs->inputs[i];
        int64_t step = input->even_rows > 0 ? input->even_rows : input->row_quantum;
        int64_t rows = (int64_t)input->prompt_rows / step * step;
        if (rows == 0 || 2 * rows > input->m ||
            latency_us(&input->comm) < high_latency * starlin__curve_eval(&input->gemm, (double)rows))
            continue;
        costs->inputs[costs->ninputs] = *input;
        costs->inputs[costs->ninputs++].piece_rows = rows;
    }
}

starlin_status_t starlin__calibrate(starlin_context_t *context, const starlin__scratch_t *scratch,
                                    starlin__costs_t *costs_p)
{
    starlin__figures_agreed_t agreed;
    starlin__tune_entry_t entry;

    costs_p->ninputs = 1;
    STARLIN__FORWARD(starlin__figures_agree(context, &scratch->gemm, &agreed));
    starlin__figures_set(context, &scratch->gemm, &agreed, &costs_p->inputs[0]);
    STARLIN__FORWARD(starlin__tuned_load(context, &scratch->gemm, &costs_p->tuned, &entry));
    if (costs_p->tuned)
        use_entry(&entry, costs_p);
    else
        STARLIN__FORWARD(measure(context, scratch, false, costs_p));
    for (size_t i = 0; i < costs_p->ninputs; i++)
        starlin__figures_room(context, &scratch->gemm, &agreed, costs_p->tuned, &costs_p->inputs[i]);
    for (size_t i = 1; i < costs_p->ninputs; i++)
        costs_p->inputs[i].last_comm = costs_p->inputs[0].comm;
    add_pieces(costs_p);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__calibrate_tune(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                         starlin__plan_input_t *input_p)
{
    starlin__scratch_t scratch = {0};
    starlin__tune_entry_t entry = {.ncomms = 1};
    starlin__costs_t costs = {.ninputs = 1};
    starlin__figures_agreed_t agreed = {0};
    starlin_status_t status =
        starlin__agree_max(context, starlin__scratch_create(context, shape, &scratch), NULL, 0);

    if (status == STARLIN_SUCCESS)
        status = starlin__figures_agree(context, &scratch.gemm, &agreed);
    starlin__figures_set(context, &scratch.gemm, &agreed, &costs.inputs[0]);
    if (status == STARLIN_SUCCESS)
        status = measure(context, &scratch, true, &costs);
    *input_p = costs.inputs[0];
    entry.gemm = input_p->gemm;
    entry.task_us = input_p->task_us;
    entry.comms[0] = (starlin__tune_comm_t){.ctas = 0,
                                            .curve = input_p->comm,
                                            .gemm_slowdown = input_p->gemm_slowdown,
                                            .comm_slowdown = input_p->comm_slowdown,
                                            .comm_delay_us = input_p->comm_delay_us};
    if (status == STARLIN_SUCCESS)
        status = starlin__calibrate_comms(context, &scratch, &entry);
    input_p->gemm_slowdown = entry.comms[0].gemm_slowdown;
    input_p->comm_slowdown = entry.comms[0].comm_slowdown;
    if (status == STARLIN_SUCCESS)
        status = starlin__tuned_store(context, &scratch.gemm, &entry);
    starlin__scratch_release(context, &scratch);
    return status;
}
