/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of all numbers of CTAs, alone and beside a gemm. Alone and together are measured in turns,
 * since a device's clock drifts; the collective is launched first, as operators see to it that it gets in
 * before the gemm whose blocks stay to its end. */
#include "plan/calibrate_comms.h"

#include <string.h>

#include "plan/calibrate_private.h"
#include "base/numbers.h"

enum { MOST_SAMPLES = 32 };
static const double most_slowdown = 4.0;
/* Of the gemm's time: what a shorter collective seems to change is noise. */
static const double least_overlap = 0.1;
/* Up to this factor a predicted collective is as fast as its prediction. */
static const double as_fast = 1.03;

typedef struct span {
    double start_us, end_us;
} span_t;

typedef struct beside {
    starlin__calibration_t base; /* gemm.m and request: what runs side by side */
    starlin__event_t *gemm_done;
    size_t nsamples; /* the first is a warm-up */
    double alone_us[MOST_SAMPLES], gemm_slowdown[MOST_SAMPLES], comm_slowdown[MOST_SAMPLES];
} beside_t;

double starlin__calibrate_slowdown(double alone_us, double together_us, double overlap_us)
{
    double extra_us = together_us - alone_us;

    if (extra_us <= 0.0 || overlap_us <= 0.0)
        return 1.0;
    if (extra_us >= overlap_us * (1.0 - 1.0 / most_slowdown))
        return most_slowdown;
    return overlap_us / (overlap_us - extra_us);
}

static starlin_status_t launch_gemm(beside_t *beside)
{
    const starlin_context_t *context = beside->base.context;

    STARLIN__FORWARD(context->compute->ops->gemm(context->compute, 0, &beside->base.gemm));
    return context->device->ops->event_record(context->device, beside->gemm_done, STARLIN__STREAM_COMPUTE);
}

/* Launches what is not NULL and fills in when it was launched and seen to be over. */
static starlin_status_t run(beside_t *beside, span_t *gemm, span_t *comm)
{
    const starlin_context_t *context = beside->base.context;
    const starlin__comm_ops_t *ops = context->comm->ops;
    double deadline_us = starlin__now_us() + 1e3 * context->config.timeout_ms;
    bool gemm_done = gemm == NULL, comm_done = comm == NULL;

    if (!comm_done) {
        comm->start_us = starlin__now_us();
        STARLIN__FORWARD(ops->allreduce_start(context->comm, &beside->base.request));
    }
    if (!gemm_done) {
        gemm->start_us = starlin__now_us();
        STARLIN__FORWARD(launch_gemm(beside));
    }
    while (!gemm_done || !comm_done) {
        if (!comm_done) {
            STARLIN__FORWARD(ops->allreduce_test(context->comm, &beside->base.request, &comm_done));
            comm->end_us = starlin__now_us();
        }
        if (!gemm_done) {
            STARLIN__FORWARD(
                context->device->ops->event_query(context->device, beside->gemm_done, &gemm_done));
            gemm->end_us = starlin__now_us();
        }
        if (starlin__now_us() <= deadline_us)
            continue;
        if (ops->abort != NULL)
            ops->abort(context->comm);
        return starlin__error(STARLIN_ERR_TIMEOUT,
                              "a gemm and a collective took longer than %u ms while they were measured",
                              context->config.timeout_ms);
    }
    return STARLIN_SUCCESS;
}

static double length_us(const span_t *span)
{
    return span->end_us - span->start_us;
}

static starlin_status_t sample(starlin__calibration_t *calibration)
{
    beside_t *beside = (beside_t *)calibration;
    size_t at = beside->nsamples;
    span_t gemm_alone, comm_alone, gemm, comm;
    double from_us, to_us;

    STARLIN__FORWARD(run(beside, &gemm_alone, NULL));
    STARLIN__FORWARD(run(beside, NULL, &comm_alone));
    STARLIN__FORWARD(run(beside, &gemm, &comm));
    if (at == MOST_SAMPLES)
        return STARLIN_SUCCESS;
    from_us = gemm.start_us > comm.start_us ? gemm.start_us : comm.start_us;
    to_us = gemm.end_us < comm.end_us ? gemm.end_us : comm.end_us;
    beside->alone_us[at] = length_us(&comm_alone);
    beside->gemm_slowdown[at] =
        starlin__calibrate_slowdown(length_us(&gemm_alone), length_us(&gemm), to_us - from_us);
    beside->comm_slowdown[at] =
        starlin__calibrate_slowdown(length_us(&comm_alone), length_us(&comm), to_us - from_us);
    beside->nsamples++;
    return STARLIN_SUCCESS;
}

/* Of all but the warm-up. */
static double median(const beside_t *beside, double *samples)
{
    size_t count = beside->nsamples - 1;

    starlin__numbers_sort(samples + 1, count);
    return samples[1 + count / 2];
}

/* Rows of a collective that takes about as long as the gemm, so that the two overlap as long as can be;
 * others than the gemm's, as in an operator. 0: all that are left are over too soon to tell anything. */
static int64_t choose_rows(const starlin__tune_entry_t *entry, const starlin__curve_t *curve,
                           double nbytes_per_row, int64_t gemm_rows, int64_t m)
{
    double gemm_us = starlin__curve_eval(&entry->gemm, (double)gemm_rows);
    int64_t step = gemm_rows > 4 ? gemm_rows / 4 : 1, room = m - gemm_rows, rows = step;

    while (rows + step <= room &&
           starlin__curve_eval(curve, nbytes_per_row * (double)(rows + step)) <= gemm_us)
        rows += step;
    if (rows > room || starlin__curve_eval(curve, nbytes_per_row * (double)rows) < least_overlap * gemm_us)
        return 0;
    return rows;
}

/* Fills in the slowdowns of one number of CTAs; *alone_us: the same collective with nothing beside it. */
static starlin_status_t measure_slowdowns(beside_t *beside, int64_t m, const starlin__tune_entry_t *entry,
                                          starlin__tune_comm_t *comm, double *alone_us)
{
    starlin_context_t *context = beside->base.context;
    starlin__gemm_t *gemm = &beside->base.gemm;
    size_t nbytes = starlin_dtype_nbytes(gemm->out_dtype);
    int64_t gemm_rows = (m + 3) / 4, rows;
    double figures[3], time_us = 0.0;

    rows = choose_rows(entry, &comm->curve, (double)gemm->n * (double)nbytes, gemm_rows, m);
    if (rows == 0 || context->comm->space != STARLIN__DEVICE)
        return STARLIN_SUCCESS;
    gemm->m = gemm_rows;
    beside->base.request.buffer = (char *)gemm->y + (size_t)(gemm_rows * gemm->ldy) * nbytes;
    beside->base.request.count = (size_t)(rows * gemm->n);
    beside->base.request.dtype = gemm->out_dtype;
    beside->nsamples = 0;
    STARLIN__FORWARD(
        starlin__agree_max(context, context->compute->ops->prepare(context->compute, gemm), NULL, 0));
    STARLIN__FORWARD(starlin__calibration_time(&beside->base, sample, &time_us));
    figures[0] = median(beside, beside->gemm_slowdown);
    figures[1] = median(beside, beside->comm_slowdown);
    figures[2] = median(beside, beside->alone_us);
    STARLIN__FORWARD(starlin__agree_max(context, STARLIN_SUCCESS, figures, 3));
    comm->gemm_slowdown = figures[0];
    comm->comm_slowdown = figures[1];
    *alone_us = figures[2];
    return STARLIN_SUCCESS;
}

/* Numbers of CTAs other than the communicator's own may not keep up with what it predicts. */
static void scale(starlin__curve_t *curve, double factor)
{
    for (size_t i = 0; i < curve->npoints && factor > as_fast; i++)
        curve->time_us[i] *= factor;
}

static starlin_status_t measure_all(beside_t *beside, int64_t m, const unsigned *ctas, size_t nchoices,
                                    starlin__tune_entry_t *entry)
{
    starlin_context_t *context = beside->base.context;
    const starlin__comm_ops_t *ops = context->comm->ops;
    double own_us = 0.0;

    for (size_t i = 0; i <= nchoices; i++) {
        starlin__tune_comm_t *comm = &entry->comms[i];
        double alone_us = 0.0;
        if (i > 0) {
            *comm = entry->comms[0];
            comm->ctas = ctas[i - 1];
            memset(&comm->curve, 0, sizeof comm->curve);
            STARLIN__FORWARD(starlin__comm_prepare_ctas(context->comm, comm->ctas));
            /* a prediction is of the own number: below it is scaled, not mixed with measured times */
            beside->base.request.ctas = ops->predict_us == NULL ? comm->ctas : 0;
            STARLIN__FORWARD(starlin__calibration_comm(&beside->base, m, &comm->curve));
            beside->base.request.ctas = comm->ctas;
        }
        if (context->device != NULL)
            STARLIN__FORWARD(measure_slowdowns(beside, m, entry, comm, &alone_us));
        if (i == 0)
            own_us = alone_us;
        else if (ops->predict_us != NULL && own_us > 0.0)
            scale(&comm->curve, alone_us / own_us);
        entry->ncomms = i + 1;
        starlin__log(
            "tuned collectives of %u CTAs (0: the communicator's own number): %.1f us, beside a gemm "
            "%.3f times that, the gemm %.3f times its time",
            comm->ctas, comm->curve.time_us[comm->curve.npoints - 1], comm->comm_slowdown,
            comm->gemm_slowdown);
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t open_events(beside_t *beside)
{
    starlin__device_t *device = beside->base.context->device;

    if (device == NULL)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(device->ops->event_create(device, &beside->gemm_done));
    STARLIN__FORWARD(device->ops->event_create(device, &beside->base.request.after));
    return device->ops->event_create(device, &beside->base.request.done);
}

static void close_events(beside_t *beside)
{
    starlin__device_t *device = beside->base.context->device;
    starlin__event_t *events[] = {beside->gemm_done, beside->base.request.after, beside->base.request.done};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (events[i] != NULL)
            device->ops->event_destroy(device, events[i]);
    }
}

starlin_status_t starlin__calibrate_comms(starlin_context_t *context, const starlin__scratch_t *scratch,
                                          starlin__tune_entry_t *entry)
{
    beside_t beside = {.base = {.context = context, .gemm = scratch->gemm, .thorough = true}};
    const starlin__comm_ops_t *ops = context->comm->ops;
    unsigned ctas[STARLIN__TUNE_COMMS - 1];
    size_t nchoices =
        ops->ctas_choices != NULL ? ops->ctas_choices(context->comm, ctas, STARLIN__TUNE_COMMS - 1) : 0;
    starlin_status_t status;

    if (context->device == NULL && nchoices == 0)
        return STARLIN_SUCCESS;
    status = starlin__agree_max(context, open_events(&beside), NULL, 0);
    starlin__context_pause(context);
    if (status == STARLIN_SUCCESS)
        status = measure_all(&beside, scratch->gemm.m, ctas, nchoices, entry);
    starlin__context_resume(context);
    close_events(&beside);
    return status;
}
