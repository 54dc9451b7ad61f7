/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices, and the rule by which inputs are made so that results are exact in any order of summation.
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

#include <stdlib.h>
#include <string.h>

#include "element.h"

#define PAIRED_FROM 64 /* below, all of K is live: slices of odd sizes are wanted there */
#define F32_EXACT   (INT64_C(1) << 24)

enum { KIND_X = 1, KIND_W, KIND_ROW_X, KIND_ROW_W, KIND_CANCEL, KIND_LIVE };

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

/* A block of rows, as SHARD_ROWS cuts them. */
static void block(const perf_problem_t *problem, bool sharded, int64_t *begin_p, int64_t *rows_p)
{
    *begin_p = sharded ? problem->rank * problem->m / problem->nranks : 0;
    *rows_p = (sharded ? (problem->rank + 1) * problem->m / problem->nranks : problem->m) - *begin_p;
}

static void slice_w(perf_problem_t *problem)
{
    problem->n_begin = problem->k_begin = 0;
    problem->n_local = problem->n;
    problem->k_local = problem->k;
    if (problem->split_n) {
        int64_t base = problem->n / problem->nranks, rest = problem->n % problem->nranks;
        problem->n_begin = problem->rank * base + (problem->rank < rest ? problem->rank : rest);
        problem->n_local = base + (problem->rank < rest);
    } else {
        problem->k_local = perf_problem_slice(problem, problem->rank, &problem->k_begin);
    }
}

void perf_problem_prepare(perf_problem_t *problem)
{
    choose_values(problem);
    block(problem, problem->sequence_parallel && problem->split_n, &problem->x_begin, &problem->x_rows);
    block(problem, problem->sequence_parallel && !problem->split_n, &problem->y_begin, &problem->y_rows);
    /* a rank's Y must be its next X: all rows, and as many columns as its slice of K. Random numbers would
     * grow from layer to layer, soon out of the range of f16 */
    problem->chain = problem->layers > 1 && problem->weights == NULL && !problem->random &&
                     !problem->split_n && !problem->sequence_parallel && problem->k % problem->nranks == 0 &&
                     problem->k / problem->nranks == problem->n;
    if (problem->chain) { /* slices are equal, whatever the pairs */
        problem->large = largest_value(problem->n, F32_EXACT / 8, 15);
        problem->live_stride = 1;
        problem->small = 8;
    }
    slice_w(problem);
    if (problem->chain) {
        problem->k_local = problem->n;
        problem->k_begin = problem->rank * problem->n;
    }
}

static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A reproducible random number of three coordinates. */
static uint64_t hash(uint64_t seed, uint64_t kind, uint64_t i, uint64_t j)
{
    return mix(mix(mix(seed * 8 + kind) ^ i) ^ j);
}

/* Uniform in [-max, max]. */
static int64_t uniform(uint64_t random, int64_t max)
{
    return (int64_t)((random >> 32) % (uint64_t)(2 * max + 1)) - max;
}

unsigned perf_inputs_row_of_x(const perf_problem_t *problem, int64_t row)
{
    return (unsigned)(hash(problem->seed, KIND_ROW_X, (uint64_t)row, 0) % PERF_PATTERNS);
}

unsigned perf_inputs_row_of_w(const perf_problem_t *problem, int64_t row)
{
    return (unsigned)(hash(problem->seed, KIND_ROW_W, (uint64_t)row, 0) % PERF_PATTERNS);
}

/* Is the column's value free, or one of a cancelling pair? The last column of an odd K has no partner. */
static bool live(const perf_problem_t *problem, int64_t column)
{
    return (column / 2) % problem->live_stride == problem->live_offset ||
           (column % 2 == 0 && column == problem->k - 1);
}

/* `partner_sign`: what the second of a cancelling pair is of the first. */
static int64_t value(const perf_problem_t *problem, uint64_t kind, unsigned pattern, int64_t column,
                     int partner_sign)
{
    bool is_live = live(problem, column);
    int64_t first = is_live ? column : column / 2 * 2;
    int64_t number = uniform(hash(problem->seed, kind, pattern, (uint64_t)first),
                             is_live ? problem->small : problem->large);
    return first == column ? number : partner_sign * number;
}

int64_t perf_inputs_x(const perf_problem_t *problem, unsigned pattern, int64_t column)
{
    if (problem->chain) { /* both of a pair of the slice are equal, as in every later layer's input */
        int64_t local = column % problem->n;
        column -= local % 2;
        return uniform(hash(problem->seed, KIND_X, pattern, (uint64_t)column), problem->small);
    }
    return value(problem, KIND_X, pattern, column, 1);
}

int64_t perf_inputs_w(const perf_problem_t *problem, unsigned pattern, int64_t column)
{
    return value(problem, KIND_W, pattern, column, -1);
}

/* W of a chain of layers, where each layer's output is the next one's input.
 *
 * Values must neither grow nor round over any number of layers. Columns of W come in cancelling pairs
 * (a, -a), and inputs have equal values in both columns of a pair; rows of W come in equal pairs, so outputs
 * have that property again. On top, each pair of rows has one live +1 or -1, on one rank: the output is a
 * signed selection of the inputs' values, whatever the cancelling values are. */
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
    uint64_t random = hash(problem->seed, KIND_LIVE, (uint64_t)pair, 0);
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
        uint64_t random = hash(problem->seed, KIND_CANCEL, (uint64_t)(row / 2), place);
        number = (int64_t)((random >> 32) % (uint64_t)(2 * problem->large + 1)) - problem->large;
        if (column % 2 == 1)
            number = -number;
    }
    if (live.rank == rank && live.column == column)
        number += live.sign;
    return number;
}

/* Rows of the slice from a table of all patterns. */
static bool fill_patterns(const perf_problem_t *problem, void *data, int64_t first, int64_t nrows,
                          int64_t (*element)(const perf_problem_t *, unsigned, int64_t),
                          unsigned (*row_of)(const perf_problem_t *, int64_t), perf_error_t *error)
{
    size_t row_nbytes = (size_t)problem->k_local * starlin_dtype_nbytes(problem->dtype);
    char *table = malloc(row_nbytes * PERF_PATTERNS + 1);
    if (table == NULL)
        return perf_error_set(error, "out of memory for %d rows of %zu bytes", PERF_PATTERNS, row_nbytes);
    for (unsigned pattern = 0; pattern < PERF_PATTERNS; pattern++)
        for (int64_t j = 0; j < problem->k_local; j++)
            perf_element_store(problem->dtype, table + pattern * row_nbytes, j,
                               (double)element(problem, pattern, problem->k_begin + j));
    for (int64_t i = 0; i < nrows; i++)
        memcpy((char *)data + (size_t)i * row_nbytes, table + row_of(problem, first + i) * row_nbytes,
               row_nbytes);
    free(table);
    return true;
}

/* Sign, mantissa and the last bit of the exponent are random, so magnitudes are from 0.5 to below 2. One hash
 * makes as many neighbours as fit into its 64 bits: a matrix of 2^27 elements is to be there within a second.
 * Words are counted in global columns, so that any slice holds the same. */
static void fill_random(const perf_problem_t *problem, uint64_t kind, char *data, int64_t first,
                        int64_t nrows)
{
    static const struct {
        uint64_t free, fixed;
    } words[] = {[STARLIN_F32] = {UINT64_C(0x80ffffff80ffffff), UINT64_C(0x3f0000003f000000)},
                 [STARLIN_F64] = {UINT64_C(0x801fffffffffffff), UINT64_C(0x3fe0000000000000)},
                 [STARLIN_F16] = {UINT64_C(0x87ff87ff87ff87ff), UINT64_C(0x3800380038003800)},
                 [STARLIN_BF16] = {UINT64_C(0x80ff80ff80ff80ff), UINT64_C(0x3f003f003f003f00)}};
    const uint64_t free_bits = words[problem->dtype].free, fixed = words[problem->dtype].fixed;
    const size_t itemsize = starlin_dtype_nbytes(problem->dtype);
    const size_t begin = (size_t)problem->k_begin * itemsize;
    const size_t end = begin + (size_t)problem->k_local * itemsize;
    for (int64_t i = first; i < first + nrows; i++) {
        uint64_t row = mix(mix(problem->seed * 8 + kind) ^ (uint64_t)i);
        for (size_t at = begin, next; at < end; data += next - at, at = next) {
            uint64_t word = (mix(row ^ at / sizeof(word)) & free_bits) | fixed;
            size_t skip = at % sizeof(word);
            next = at - skip + sizeof(word) < end ? at - skip + sizeof(word) : end;
            if (next - at == sizeof(word)) /* a constant size is copied by one instruction */
                memcpy(data, &word, sizeof(word));
            else
                memcpy(data, (const char *)&word + skip, next - at);
        }
    }
}

bool perf_inputs_fill_x(const perf_problem_t *problem, int64_t first, int64_t nrows, void *x,
                        perf_error_t *error)
{
    if (problem->random) {
        fill_random(problem, KIND_X, x, first, nrows);
        return true;
    }
    return fill_patterns(problem, x, first, nrows, perf_inputs_x, perf_inputs_row_of_x, error);
}

static bool fill_weights(const perf_problem_t *problem, char *w, perf_error_t *error)
{
    size_t row_nbytes = (size_t)problem->k_local * starlin_dtype_nbytes(problem->dtype);
    double *row = malloc((size_t)problem->k_local * sizeof(*row) + 1);
    bool ok = row != NULL || perf_error_set(error, "out of memory for a row of the weights");
    for (int64_t i = 0; ok && i < problem->n_local; i++) {
        ok = perf_weights_row(problem->weights, problem->n_begin + i, problem->k_begin, problem->k_local,
                              problem->dtype, row, error);
        for (int64_t j = 0; ok && j < problem->k_local; j++)
            perf_element_store(problem->dtype, w + (size_t)i * row_nbytes, j, row[j]);
    }
    free(row);
    return ok;
}

bool perf_inputs_fill_w(const perf_problem_t *problem, void *w, perf_error_t *error)
{
    if (problem->weights != NULL)
        return fill_weights(problem, w, error);
    if (problem->random) {
        fill_random(problem, KIND_W, w, problem->n_begin, problem->n_local);
        return true;
    }
    if (!problem->chain)
        return fill_patterns(problem, w, problem->n_begin, problem->n_local, perf_inputs_w,
                             perf_inputs_row_of_w, error);
    for (int64_t i = 0; i < problem->n; i++)
        for (int64_t j = 0; j < problem->k_local; j++)
            perf_element_store(problem->dtype, w, i * problem->k_local + j,
                               (double)perf_inputs_chain_w(problem, problem->rank, i, j));
    return true;
}
