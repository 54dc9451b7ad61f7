/* SPDX-License-Identifier: BSD-3-Clause */
/* Curves, prediction, rehearsal, one after the other. Every step ends with figures that the ranks agree on,
 * a failure on one rank included, so all ranks take the same branches. */
#define _POSIX_C_SOURCE 200809L
#include "plan/planning.h"

#include <stdio.h>

#include "plan/calibrate.h"
#include "plan/rehearse.h"

/* For measuring and trying together, where the layer allows it: one run of a list cannot be cut short. */
static const double planning_budget_us = 160e3;

static void add_curve(starlin__curve_t *sum, const starlin__curve_t *other)
{
    for (size_t i = 0; i < sum->npoints; i++)
        sum->time_us[i] += starlin__curve_eval(other, sum->size[i]);
}

static bool are_alike(const starlin_linear_shape_t *a, const starlin_linear_shape_t *b)
{
    return a->n == b->n && a->k_local == b->k_local && a->dtype == b->dtype && a->reduction == b->reduction;
}

static starlin_status_t scratch_open(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                     starlin__scratch_t *scratch)
{
    starlin_status_t mine = starlin__scratch_create(context, shape, scratch);
    starlin_status_t status = starlin__agree_max(context, mine, NULL, 0);

    if (status != STARLIN_SUCCESS && mine == STARLIN_SUCCESS)
        starlin__scratch_release(context, scratch);
    return status;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

static void add_costs(starlin__plan_input_t *input, starlin__plan_input_t *other)
{
    for (size_t i = 0; i < other->comm.npoints; i++)
        other->comm.size[i] *= input->nbytes_per_row / other->nbytes_per_row;
    add_curve(&input->gemm, &other->gemm);
    add_curve(&input->comm, &other->comm);
    input->task_us += other->task_us;
    add_curve(&input->last_comm, &other->comm); /* nothing, where there is none */
    input->prompt_rows = least(input->prompt_rows, other->prompt_rows);
    input->yield_rows = least(input->yield_rows, other->yield_rows);
    input->gemm_slowdown = most(input->gemm_slowdown, other->gemm_slowdown);
    input->comm_slowdown = most(input->comm_slowdown, other->comm_slowdown);
}

/* Adds the cost of one more layer, row by row. */
static starlin_status_t add_layer(starlin_context_t *context, const starlin_linear_shape_t *shape,
                                  starlin__costs_t *costs)
{
    starlin__scratch_t scratch;
    starlin__costs_t others = {0};
    starlin_status_t status;

    STARLIN__FORWARD(scratch_open(context, shape, &scratch));
    status = starlin__calibrate(context, &scratch, &others);
    starlin__scratch_release(context, &scratch);
    STARLIN__FORWARD(status);
    costs->tuned = costs->tuned && others.tuned;
    for (size_t i = 0; i < costs->ninputs; i++) { /* one may be tuned and the other not */
        const starlin__plan_input_t *a = &costs->inputs[i], *b = &others.inputs[i];
        if (i == others.ninputs || a->ctas != b->ctas || a->piece_rows != b->piece_rows)
            costs->ninputs = i;
    }
    for (size_t i = 0; i < costs->ninputs; i++)
        add_costs(&costs->inputs[i], &others.inputs[i]);
    return STARLIN_SUCCESS;
}

/* Noise in a curve can make many small gemms look faster than a large one; a gain beyond what can be hidden
 * is none. */
static void keep_whole(const starlin__plan_input_t *input, starlin__plan_t *plan)
{
    double hideable_us = plan->gemm_us < plan->comm_us ? plan->gemm_us : plan->comm_us;

    if (plan->nchunks == 1 || hideable_us >= input->min_gain * plan->serial_us)
        return;
    plan->ctas = 0;
    plan->piece_rows = 0;
    plan->nchunks = 1;
    plan->rows[0] = input->m;
    plan->predicted_us = plan->serial_us;
    snprintf(plan->reason, sizeof plan->reason, "too little can be hidden: gemm %.0f us, collective %.0f us",
             plan->gemm_us, plan->comm_us);
}

/* What remains for trying lists. */
static starlin_status_t rehearse(starlin_context_t *context, const starlin__scratch_t *scratch,
                                 double start_us, starlin__planning_t *planning)
{
    double spent_us = starlin__now_us() - start_us;

    STARLIN__FORWARD(starlin__agree_max(context, STARLIN_SUCCESS, &spent_us, 1));
    return starlin__rehearse(context, scratch, planning_budget_us - spent_us, planning);
}

/* A chain of equal layers is planned as such; of different ones the costs are added. */
static starlin_status_t plan(starlin_context_t *context, const starlin__scratch_t *scratch,
                             const starlin_linear_shape_t *shapes, size_t nshapes, double start_us,
                             starlin__planning_t *planning)
{
    /* the pipeline is in its steady state by the third layer */
    enum { STEADY_LAYERS = 3 };
    starlin__costs_t *costs = &planning->costs;
    double different = 0.0;

    for (size_t i = 1; i < nshapes; i++)
        different = are_alike(&shapes[0], &shapes[i]) ? different : 1.0;
    /* slices of k are a rank's own, and all ranks have to go the same way */
    STARLIN__FORWARD(starlin__agree_max(context, STARLIN_SUCCESS, &different, 1));
    STARLIN__FORWARD(starlin__calibrate(context, scratch, costs));
    planning->nsummed = different > 0.0 ? (unsigned)nshapes : 1;
    for (size_t i = 0; different <= 0.0 && i < costs->ninputs; i++)
        costs->inputs[i].nlayers = nshapes < STEADY_LAYERS ? (unsigned)nshapes : STEADY_LAYERS;
    for (size_t i = 1; different > 0.0 && i < nshapes; i++)
        STARLIN__FORWARD(add_layer(context, &shapes[i], costs));
    starlin__plan_choose_ctas(costs, &planning->plan, &planning->second);
    keep_whole(&costs->inputs[0], &planning->plan);
    planning->simulated_us = planning->plan.predicted_us;
    if (different <= 0.0)
        STARLIN__FORWARD(rehearse(context, scratch, start_us, planning));
    else
        planning->unrehearsed = "the layers differ";
    return starlin__comm_prepare_ctas(context->comm, planning->plan.ctas);
}

starlin_status_t starlin__planning_create(starlin_context_t *context, const starlin_linear_shape_t *shapes,
                                          size_t nshapes, starlin__planning_t **planning_p)
{
    double start_us = starlin__now_us();
    starlin__planning_t *planning = starlin__alloc(sizeof *planning);
    starlin__scratch_t scratch = {0};
    starlin_status_t status = STARLIN_SUCCESS;

    if (planning == NULL)
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "planning");
    if (status == STARLIN_SUCCESS)
        status = starlin__scratch_create(context, &shapes[0], &scratch);
    if (status == STARLIN_SUCCESS) /* communicators are opened, and lists run, with nothing else in flight */
        status = starlin_context_wait(context);
    status = starlin__agree_max(context, status, NULL, 0);
    if (status == STARLIN_SUCCESS)
        status = plan(context, &scratch, shapes, nshapes, start_us, planning);
    starlin__scratch_release(context, &scratch);
    if (status == STARLIN_SUCCESS) {
        planning->planning_us = starlin__now_us() - start_us;
        status = starlin__agree_max(context, STARLIN_SUCCESS, &planning->planning_us, 1);
    }
    if (status != STARLIN_SUCCESS) {
        starlin__free(planning);
        return status;
    }
    *planning_p = planning;
    return STARLIN_SUCCESS;
}
