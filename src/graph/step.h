/* SPDX-License-Identifier: BSD-3-Clause */
/* A step of the application: the operators from an idle context to the end of a wait that leaves it idle.
 * Steps are timed as long as a plan is on trial (see trial.h). */
#ifndef STARLIN_STEP_H
#define STARLIN_STEP_H

#include "plan/trial.h"

/* Part of the context; zeroed at first. */
typedef struct starlin__step {
    bool is_open;
    starlin__trial_t *trial; /* of its operators, a reference; NULL: it is not timed */
    uint64_t first;          /* operators of the trial before the step */
    double start_us;
    bool is_disturbed; /* other operators in it, or an exchange */
} starlin__step_t;

/* Before an operator is submitted, whose output's trial is `trial` (NULL: none). Exchanges figures if the
 * trial has come so far; tells whether operators are computed in one piece now.
 * Collective if due, and then blocks; a failure of some rank is every rank's. */
starlin_status_t starlin__step_begin(starlin_context_t *context, starlin__trial_t *trial, bool *whole_p);
/* This rank refuses the operator with `status`. If the exchange is due it takes part in it, so that the
 * others hear why, and returns true. */
bool starlin__step_refuse(starlin_context_t *context, const starlin__trial_t *trial, starlin_status_t status);
/* A wait is over. Ends the step if it has left nothing in flight. */
void starlin__step_end(starlin_context_t *context);
/* At the context's end. */
void starlin__step_close(starlin_context_t *context);

#endif
