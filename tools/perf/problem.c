/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule by which inputs are made so that results are exact in any order of summation.
 *
 * Values are small integers. With S the sum of |x||w| over K, everything is exact where S stays within the
 * integers that the dtype holds. For f16 and bf16 that allows few values only, and inputs that are nearly all
 * zero would be easier on the hardware than real ones. So K is cut into pairs: x repeats its value, w negates
 * its own, and the pair adds nothing to the sum. Only every live_stride-th pair is free of this, with values
 * small enough for the dtype. Gemms accumulate in f32, where all of K is exact (sums up to 2^24). Slices of
 * K end between pairs, so each rank's rounded partial is the sum of its live values alone.
 *
 * Random numbers follow none of this, but are sliced in the same way: times are those of the same gemms. */
#include "problem.h"

#define PAIRED_FROM 64 /* below, all of K is live: slices of odd sizes are wanted there */
#define F32_EXACT   (INT64_C(1) << 24)

int64_t perf_problem_sum_limit(starlin_dtype_t dtype, starlin_reduction_t reduction)
{
    bool wide = reduction == STARLIN_REDUCTION_F32;
    switch (dtype) {
    case STARLIN_F64:
        return INT64_C(1) << 53;
    case STARLIN_F16: /* one rounding at the end, below f16's largest number 65504 */
        return wide ? INT64_C(1) << 15 : INT64_C(1) << 11;
    case STARLIN_BF16:
        return wide ? F32_EXACT : INT64_C(1) << 8;
    default:
        return F32_EXACT;
    }
}

/* Largest v <= cap with count * v * v <= limit. */
static int64_t largest_value(int64_t count, int64_t limit, int64_t cap)
{
    while (cap > 0 && count > limit / (cap * cap))
        cap--;
    return cap;
}

static bool paired(const perf_problem_t *problem)
{
    return problem->large > 0 || problem->live_stride > 1;
}

static void choose_values(perf_problem_t *problem)
{
    int64_t limit = perf_problem_sum_limit(problem->dtype, problem->reduction);
    int64_t cap = limit <= 1 << 8 ? 2 : limit <= 1 << 11 ? 5 : 8;
    problem->live_stride = 1;
    problem->live_offset = 0;
    problem->large = 0;
    problem->small = largest_value(problem->k, limit, cap);
    if (problem->k < PAIRED_FROM || problem->small == cap)
        return;
    /* live values: `npairs` pairs and the odd one at the end */
    int64_t npairs = (problem->k + 1) / 2, nlive = (limit / (cap * cap) - 1) / 2;
    if (nlive > npairs)
        nlive = npairs;
    problem->small = cap;
    problem->live_stride = (npairs + nlive - 1) / nlive;
    problem->live_offset = (int64_t)(problem->seed % (uint64_t)problem->live_stride);
    if (problem->dtype != STARLIN_F64)
        problem->large = largest_value(problem->k, F32_EXACT - limit > 0 ? F32_EXACT - limit : 0, 31);
    else
        problem->large = 8;
}

int64_t perf_problem_slice(const perf_problem_t *problem, int rank, int64_t *begin_p)
{
    int64_t unit = paired(problem) ? 2 : 1;
    int64_t nunits = (problem->k + unit - 1) / unit;
    int64_t base = nunits / problem->nranks, rest = nunits % problem->nranks;
    int64_t begin = unit * (rank * base + (rank < rest ? rank : rest));
    int64_t end = begin + unit * (base + (rank < rest));
    begin = begin < problem->k ? begin : problem->k;
    end = end < problem->k ? end : problem->k;
    *begin_p = begin;
    return end - begin;
}

void perf_problem_prepare(perf_problem_t *problem)
{
    choose_values(problem);
    /* random numbers would grow from layer to layer, soon out of the range of f16 */
    problem->chain = problem->layers > 1 && problem->weights == NULL && !problem->random &&
                     problem->k % problem->nranks == 0 && problem->k / problem->nranks == problem->n;
    if (problem->chain) { /* see inputs_chain.c; slices are equal, whatever the pairs */
        problem->large = largest_value(problem->n, F32_EXACT / 8, 15);
        problem->live_stride = 1;
        problem->small = 8;
        problem->k_local = problem->n;
        problem->k_begin = problem->rank * problem->n;
        return;
    }
    problem->k_local = perf_problem_slice(problem, problem->rank, &problem->k_begin);
}
