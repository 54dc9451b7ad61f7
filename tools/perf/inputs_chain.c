/* SPDX-License-Identifier: BSD-3-Clause */
/* W of a chain of layers, where each layer's output is the next one's input.
 *
 * Values must neither grow nor round over any number of layers. Columns of W come in cancelling pairs
 * (a, -a), and inputs have equal values in both columns of a pair; rows of W come in equal pairs, so outputs
 * have that property again. On top, each pair of rows has one live +1 or -1, on one rank: the output is a
 * signed selection of the inputs' values, whatever the cancelling values are. */
#include "inputs.h"

enum { KIND_CANCEL = 5, KIND_LIVE };

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Row pairs select distinct column pairs: i -> (i * step + seed) mod npairs. */
perf_live_t perf_inputs_chain_live(const perf_problem_t *problem, int64_t row)
{
    int64_t npairs = (problem->n + 1) / 2, pair = row / 2;
    int64_t step = npairs * 5 / 8 + 1;
    while (gcd(step, npairs) != 1)
        step++;
    uint64_t random = perf_inputs_hash(problem->seed, KIND_LIVE, (uint64_t)pair, 0);
    int64_t shift = (int64_t)(problem->seed % (uint64_t)npairs);
    int64_t column = 2 * ((pair % npairs * step + shift) % npairs) + (int64_t)(random & 1);
    perf_live_t live = {(int)(pair % problem->nranks), column < problem->n ? column : column - 1,
                        random & 2 ? 1 : -1};
    return live;
}

int64_t perf_inputs_chain_w(const perf_problem_t *problem, int rank, int64_t row, int64_t column)
{
    perf_live_t live = perf_inputs_chain_live(problem, row);
    int64_t number = 0;
    if (column / 2 * 2 + 1 < problem->n) { /* has a partner */
        uint64_t place = (uint64_t)rank * (uint64_t)problem->n + (uint64_t)(column / 2);
        uint64_t random = perf_inputs_hash(problem->seed, KIND_CANCEL, (uint64_t)(row / 2), place);
        number = (int64_t)((random >> 32) % (uint64_t)(2 * problem->large + 1)) - problem->large;
        if (column % 2 == 1)
            number = -number;
    }
    if (live.rank == rank && live.column == column)
        number += live.sign;
    return number;
}
