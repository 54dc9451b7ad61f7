/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lists are worth trying: the planner's favourites, and plain ones that its picture of the machine may
 * do injustice to. Pure functions. */
#include "plan/rehearse_lists.h"

#include <string.h>

/* With fewer places the planner's own list comes first. */
enum { ROOM_FOR_ALL = 5 };

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
            other->piece_rows == plan->piece_rows &&
            memcmp(other->rows, plan->rows, plan->nchunks * sizeof plan->rows[0]) == 0)
            return true;
    }
    return false;
}

static void add_list(race_t *race, const starlin__plan_t *plan)
{
    const starlin__plan_input_t *input = starlin__costs_input(race->costs, plan->ctas, plan->piece_rows);

    if (race->count == race->limit || plan->nchunks == 0 || is_listed(race, plan))
        return;
    race->plans[race->count] = *plan;
    race->plans[race->count++].predicted_us =
        starlin__plan_simulate(input, plan->rows, plan->nchunks) / starlin__plan_nlayers(input);
}

static const starlin__plan_input_t *own_input(const race_t *race)
{
    return &race->costs->inputs[0];
}

/* Chunks of so many rows, if there are several. */
static starlin__plan_t equal_list(const race_t *race, int64_t rows, unsigned ctas)
{
    const starlin__plan_input_t *input = own_input(race);
    starlin__plan_t list = {.ctas = ctas};

    if (rows >= input->row_quantum && 2 * rows <= input->m &&
        (input->m + rows - 1) / rows <= STARLIN__MAX_CHUNKS)
        list.nchunks = starlin__plan_equal(input->m, (size_t)((input->m + rows - 1) / rows), list.rows);
    return list;
}

/* The same with the last chunk cut into ever smaller ones: less is left exposed. */
static starlin__plan_t with_tail(const race_t *race, starlin__plan_t list, unsigned ncuts)
{
    for (unsigned i = 0; list.nchunks > 0 && i < ncuts; i++) {
        int64_t rows = list.rows[list.nchunks - 1] / 2;
        if (rows < own_input(race)->row_quantum || list.nchunks == STARLIN__MAX_CHUNKS)
            break;
        list.rows[list.nchunks - 1] -= rows;
        list.rows[list.nchunks++] = rows;
    }
    return list;
}

/* Two large chunks and two small ones. */
static starlin__plan_t shrinking_list(const race_t *race)
{
    int64_t eighth = own_input(race)->m / 8, m = own_input(race)->m;

    if (eighth < own_input(race)->row_quantum)
        return (starlin__plan_t){0};
    return (starlin__plan_t){.nchunks = 4, .rows = {3 * eighth, 3 * eighth, eighth, m - 7 * eighth}};
}

/* On a device a gemm that fills it just once has room beside it; larger ones are more efficient. */
static int64_t prompt_rows(const race_t *race)
{
    int64_t even = own_input(race)->even_rows, step = even > 0 ? even : own_input(race)->row_quantum,
            most = step;

    for (size_t i = 0; i < race->costs->ninputs; i++) {
        int64_t prompt = (int64_t)race->costs->inputs[i].prompt_rows / step * step;
        most = prompt > most ? prompt : most;
    }
    return most;
}

/* The number of CTAs for small gemms: that of the best simulation, where their size leaves it room. */
static unsigned few_ctas(const race_t *race, int64_t rows)
{
    starlin__plan_t list = equal_list(race, rows, 0);

    if (list.nchunks > 0)
        (void)starlin__plan_best_ctas(race->costs, list.rows, list.nchunks, &list.ctas);
    return (double)rows <= starlin__costs_input(race->costs, list.ctas, 0)->prompt_rows ? list.ctas : 0;
}

static void add_lists(race_t *race, const starlin__plan_t *lists, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (starlin__costs_input(race->costs, lists[i].ctas, lists[i].piece_rows)->ctas == lists[i].ctas)
            add_list(race, &lists[i]);
    }
}

/* A step that is waited for ends with a collective that nothing hides: small chunks, or a small tail. On an
 * H200 a link as slow as the gemm wanted small chunks all the way, a faster one 1024 rows before the tail. */
static void add_waited_lists(race_t *race, const starlin__plan_t *plan, const starlin__plan_t *second)
{
    int64_t rows = prompt_rows(race);
    unsigned ctas = few_ctas(race, rows);
    starlin__plan_t fine = equal_list(race, rows, ctas), middle = equal_list(race, 2 * rows, 0);
    const starlin__plan_t large[] = {with_tail(race, middle, 2),    fine,
                                     with_tail(race, fine, 1),      *plan,
                                     equal_list(race, rows, 0),     middle,
                                     equal_list(race, 4 * rows, 0), *second},
                          small[] = {equal_list(race, rows, 0),
                                     shrinking_list(race),
                                     fine,
                                     *plan,
                                     equal_list(race, rows / 2, ctas),
                                     with_tail(race, fine, 1),
                                     with_tail(race, middle, 2),
                                     equal_list(race, rows / 2, 0)};

    if (own_input(race)->m > 8 * rows)
        add_lists(race, large, sizeof large / sizeof large[0]);
    else
        add_lists(race, small, sizeof small / sizeof small[0]);
}

/* In a chain the next layer hides the last collective. On an H200, of layers of 8192 rows, 2048 rows were the
 * fastest with 8 CTAs beside a link faster than the gemm, 512 with 2 beside one as slow. */
static void add_chained_lists(race_t *race, const starlin__plan_t *plan)
{
    static const double slow_link = 0.6;
    int64_t rows = prompt_rows(race);
    starlin__plan_t large = equal_list(race, 4 * rows, 0), fine = equal_list(race, rows, 2);
    bool is_slow = plan->comm_us > slow_link * plan->gemm_us;
    const starlin__plan_t lists[] = {is_slow ? fine : large,        equal_list(race, 2 * rows, 4),
                                     is_slow ? large : fine,        *plan,
                                     equal_list(race, 2 * rows, 0), equal_list(race, rows, 0)};

    add_lists(race, lists, sizeof lists / sizeof lists[0]);
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
                               const starlin__plan_t *second, size_t limit, starlin__plan_t *plans)
{
    race_t race = {.costs = costs, .limit = limit, .plans = plans};
    starlin__plan_t one = {.nchunks = 1, .rows = {costs->inputs[0].m}};

    add_list(&race, &one);
    if (limit < ROOM_FOR_ALL)
        add_list(&race, plan);
    if (limit == 2)
        return race.count;
    if (on_device && costs->inputs[0].nlayers > 1)
        add_chained_lists(&race, plan);
    else if (on_device)
        add_waited_lists(&race, plan, second);
    else
        add_host_lists(&race, plan);
    return race.count;
}
