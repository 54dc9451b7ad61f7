/* SPDX-License-Identifier: BSD-3-Clause */
/* Planning over numbers of thread blocks. Few blocks leave the gemms more of the device, many move the data
 * faster: which is better depends on how much of the link's time can be hidden. Pure functions. */
#include "plan/planner.h"

#include <assert.h>
#include <stdio.h>

/* Relative: a number of CTAs that wins less does not take another one's place. */
#define NO_DIFFERENCE 0.01

const starlin__plan_input_t *starlin__costs_input(const starlin__costs_t *costs, unsigned ctas,
                                                  int64_t piece_rows)
{
    for (size_t i = 0; i < costs->ninputs; i++) {
        if (costs->inputs[i].ctas == ctas && costs->inputs[i].piece_rows == piece_rows)
            return &costs->inputs[i];
    }
    return &costs->inputs[0];
}

double starlin__plan_best_ctas(const starlin__costs_t *costs, const int64_t *rows, size_t nchunks,
                               unsigned *ctas_p)
{
    double best_us = 0.0;

    for (size_t i = 0; i < costs->ninputs; i++) {
        const starlin__plan_input_t *input = &costs->inputs[i];
        double us;
        if (input->piece_rows != 0)
            continue;
        us = starlin__plan_simulate(input, rows, nchunks) / starlin__plan_nlayers(input);
        if (i > 0 && us >= best_us * (1.0 - NO_DIFFERENCE))
            continue;
        best_us = us;
        *ctas_p = input->ctas;
    }
    return best_us;
}

/* Keeps the two fastest of the chunked plans. */
static void keep_two(const starlin__plan_t *plan, starlin__plan_t *first, starlin__plan_t *second)
{
    if (plan->nchunks <= 1)
        return;
    if (first->nchunks == 0 || plan->predicted_us < first->predicted_us * (1.0 - NO_DIFFERENCE)) {
        *second = *first;
        *first = *plan;
    } else if (second->nchunks == 0 || plan->predicted_us < second->predicted_us) {
        *second = *plan;
    }
}

void starlin__plan_choose_ctas(const starlin__costs_t *costs, starlin__plan_t *plan_p,
                               starlin__plan_t *second_p)
{
    starlin__plan_t own, first = {0}, plan;
    double min_gain = costs->inputs[0].min_gain;

    assert(costs->ninputs >= 1 && costs->ninputs <= STARLIN__MOST_INPUTS);
    *second_p = first;
    for (size_t i = 0; i < costs->ninputs; i++) {
        starlin__plan_choose(&costs->inputs[i], &plan);
        if (i == 0)
            own = plan;
        keep_two(&plan, &first, second_p);
    }
    *plan_p = first;
    plan_p->serial_us = own.serial_us;
    plan_p->comm_us = own.comm_us;
    if (first.nchunks > 1 && first.predicted_us <= own.serial_us * (1.0 - min_gain))
        return;
    *plan_p = own;
    if (first.nchunks == 0)
        return;
    /* a gain against one chunk with as many blocks, but a single collective has the communicator's own number
     */
    *second_p = first;
    plan_p->nchunks = 1;
    plan_p->rows[0] = costs->inputs[0].m;
    plan_p->predicted_us = own.serial_us;
    snprintf(plan_p->reason, sizeof plan_p->reason,
             "chunking would take %.0f us, one chunk %.0f us: gain below %.1f%%", first.predicted_us,
             own.serial_us, 100.0 * min_gain);
}
