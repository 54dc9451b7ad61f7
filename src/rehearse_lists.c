/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lists are worth trying: the planner's favourites, and plain ones that its picture of the machine may
 * do injustice to. Pure functions. */
#include "rehearse_lists.h"

#include <string.h>

typedef struct race {
    const starlin__costs_t *costs;
    size_t limit, count;
    starlin__plan_t *plans;
} race_t;

static bool is_listed(const race_t *race, const starlin__plan_t *plan)
{
    for (size_t i = 0; i < race->count; i++) {
        const starlin__plan_t *other = &race->plans[i];
        if (other->nchunks == plan->nchunks && other->ctas == plan->ctas &&
            memcmp(other->rows, plan->rows, plan->nchunks * sizeof plan->rows[0]) == 0)
            return true;
    }
    return false;
}

static void add_list(race_t *race, const starlin__plan_t *plan)
{
    const starlin__plan_input_t *input = starlin__costs_input(race->costs, plan->ctas);

    if (race->count == race->limit || plan->nchunks == 0 || is_listed(race, plan))
        return;
    race->plans[race->count] = *plan;
    race->plans[race->count++].predicted_us =
        starlin__plan_simulate(input, plan->rows, plan->nchunks) / (input->nlayers > 1 ? input->nlayers : 1);
}

/* Chunks of so many rows, if there are several: with the number of CTAs that suits them best, or the
 * communicator's own number where their gemms leave no room: what few CTAs do to such gemms is not known. */
static starlin__plan_t equal_list(const race_t *race, int64_t rows)
{
    const starlin__plan_input_t *input = &race->costs->inputs[0];
    starlin__plan_t list = {0};

    if (rows < input->row_quantum || 2 * rows > input->m || input->m / rows > STARLIN__MAX_CHUNKS)
        return list;
    list.nchunks = starlin__plan_equal(input->m, (size_t)((input->m + rows - 1) / rows), list.rows);
    (void)starlin__plan_best_ctas(race->costs, list.rows, list.nchunks, &list.ctas);
    if ((double)list.rows[0] > starlin__costs_input(race->costs, list.ctas)->prompt_rows)
        list.ctas = 0;
    return list;
}

/* The same with the last chunk in two: less is left exposed. */
static starlin__plan_t halved_tail(const race_t *race, starlin__plan_t list)
{
    int64_t rows = list.nchunks > 0 ? list.rows[list.nchunks - 1] / 2 : 0;

    if (rows < race->costs->inputs[0].row_quantum || list.nchunks == STARLIN__MAX_CHUNKS)
        return (starlin__plan_t){0};
    list.rows[list.nchunks - 1] -= rows;
    list.rows[list.nchunks++] = rows;
    return list;
}

/* The best plan with another number of CTAs than this one. */
static starlin__plan_t second_best(const race_t *race, unsigned ctas)
{
    starlin__plan_t best = {0}, plan;

    for (size_t i = 0; i < race->costs->ninputs; i++) {
        if (race->costs->inputs[i].ctas == ctas)
            continue;
        starlin__plan_choose(&race->costs->inputs[i], &plan);
        if (plan.nchunks > 1 && (best.nchunks == 0 || plan.predicted_us < best.predicted_us))
            best = plan;
    }
    return best;
}

/* On a device a gemm that fills it just once has room beside it; larger ones are more efficient. */
static int64_t device_rows(const race_t *race, unsigned factor)
{
    const starlin__plan_input_t *input = &race->costs->inputs[0];
    int64_t rows = input->even_rows > 0 ? input->even_rows : input->row_quantum;

    for (size_t i = 0; i < race->costs->ninputs; i++) {
        int64_t prompt = (int64_t)race->costs->inputs[i].prompt_rows / rows * rows;
        rows = prompt > rows ? prompt : rows;
    }
    return rows * factor;
}

/* On a device: in a chain the next layer hides the last collective, so that large chunks come first. */
static void add_device_lists(race_t *race, const starlin__plan_t *plan)
{
    bool is_chain = race->costs->inputs[0].nlayers > 1;
    starlin__plan_t fine = equal_list(race, device_rows(race, 1)), tail = halved_tail(race, fine), own = fine,
                    middle = equal_list(race, device_rows(race, 2)),
                    large = equal_list(race, device_rows(race, 4)), other = second_best(race, plan->ctas);
    const starlin__plan_t *const waited[] = {&fine, &tail, plan, &own, &middle, &other, &large},
                                 *const chained[] = {&fine, plan, &large, &middle, &own, &other, &tail};

    own.ctas = 0;
    for (size_t i = 0; i < sizeof waited / sizeof waited[0]; i++)
        add_list(race, is_chain ? chained[i] : waited[i]);
}

static void add_host_lists(race_t *race, const starlin__plan_t *plan)
{
    static const size_t counts[] = {8, 16, 4};
    const starlin__plan_input_t *input = &race->costs->inputs[0];

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        starlin__plan_t list = {0};
        list.nchunks = starlin__plan_equal(input->m, counts[i], list.rows);
        if (list.nchunks > 1 && list.rows[list.nchunks - 1] >= input->row_quantum)
            add_list(race, &list);
        if (i == 0)
            add_list(race, plan);
    }
}

size_t starlin__rehearse_lists(const starlin__costs_t *costs, bool on_device, const starlin__plan_t *plan,
                               size_t limit, starlin__plan_t *plans)
{
    race_t race = {.costs = costs, .limit = limit, .plans = plans};
    starlin__plan_t one = {.nchunks = 1, .rows = {costs->inputs[0].m}};

    (void)starlin__plan_best_ctas(costs, one.rows, 1, &one.ctas);
    add_list(&race, &one);
    if (limit == 2)
        add_list(&race, plan);
    else if (on_device)
        add_device_lists(&race, plan);
    else
        add_host_lists(&race, plan);
    return race.count;
}
