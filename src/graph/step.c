/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps. Times are this rank's own; what comes of them is decided by the trial from agreed figures. */
#define _POSIX_C_SOURCE 200809L
#include "graph/step.h"

#include "plan/scratch.h"

/* Has an operator failed? Then a peer that knows of it may not come to an exchange any more. */
static bool has_failed(void *arg)
{
    starlin_context_t *context = arg;
    bool failed;

    pthread_mutex_lock(&context->lock);
    failed = context->failure.status != STARLIN_SUCCESS;
    pthread_mutex_unlock(&context->lock);
    return failed;
}

static starlin_status_t exchange(starlin_context_t *context, starlin_status_t status,
                                 double figures[STARLIN__TRIAL_FIGURES])
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;

    bootstrap->is_in_vain = has_failed;
    bootstrap->in_vain_arg = context;
    status = starlin__agree_max(context, status, figures, STARLIN__TRIAL_FIGURES);
    bootstrap->is_in_vain = NULL;
    if (status != STARLIN_SUCCESS && has_failed(context))
        return starlin__context_failure(context, UINT64_MAX);
    return status;
}

static void open_step(starlin__step_t *step, starlin__trial_t *trial, bool is_tried)
{
    *step = (starlin__step_t){.is_open = true};
    if (!is_tried)
        return;
    step->trial = starlin__trial_retain(trial);
    step->first = starlin__trial_noperators(trial);
    step->start_us = starlin__now_us();
}

starlin_status_t starlin__step_begin(starlin_context_t *context, starlin__trial_t *trial, bool *whole_p)
{
    starlin__step_t *step = &context->step;
    bool is_tried = trial != NULL && !starlin__trial_is_over(trial);

    if (!step->is_open)
        open_step(step, trial, is_tried);
    else if (step->trial != trial)
        step->is_disturbed = true;
    if (is_tried && starlin__trial_is_due(trial)) {
        double figures[STARLIN__TRIAL_FIGURES];
        starlin__trial_figures(trial, figures);
        STARLIN__FORWARD(exchange(context, STARLIN_SUCCESS, figures));
        starlin__trial_decide(trial, figures, context->sequence + 1);
        step->is_disturbed = true;
    }
    *whole_p = trial != NULL && starlin__trial_is_whole(trial);
    return STARLIN_SUCCESS;
}

bool starlin__step_refuse(starlin_context_t *context, const starlin__trial_t *trial, starlin_status_t status)
{
    double figures[STARLIN__TRIAL_FIGURES] = {0};

    if (!starlin__trial_is_due(trial))
        return false;
    (void)exchange(context, status, figures);
    return true;
}

static void forget(starlin__step_t *step)
{
    starlin__trial_release(step->trial);
    *step = (starlin__step_t){0};
}

void starlin__step_end(starlin_context_t *context)
{
    starlin__step_t *step = &context->step;
    bool idle;

    if (!step->is_open)
        return;
    pthread_mutex_lock(&context->lock);
    idle = context->inflight == 0;
    pthread_mutex_unlock(&context->lock);
    /* on a device what was launched must be over, too */
    if (!idle || (context->device != NULL && !context->settled))
        return;
    if (step->trial != NULL)
        starlin__trial_step(step->trial, step->first, starlin__trial_noperators(step->trial) - step->first,
                            step->is_disturbed ? 0.0 : starlin__now_us() - step->start_us);
    forget(step);
}

void starlin__step_close(starlin_context_t *context)
{
    forget(&context->step);
}
