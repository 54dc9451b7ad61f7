/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of X and W: integers by the rule of problem.c, or random numbers. */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>

#include "element.h"

enum { KIND_X = 1, KIND_W, KIND_ROW_X, KIND_ROW_W };

static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t perf_inputs_hash(uint64_t seed, uint64_t kind, uint64_t i, uint64_t j)
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
    return (unsigned)(perf_inputs_hash(problem->seed, KIND_ROW_X, (uint64_t)row, 0) % PERF_PATTERNS);
}

unsigned perf_inputs_row_of_w(const perf_problem_t *problem, int64_t row)
{
    return (unsigned)(perf_inputs_hash(problem->seed, KIND_ROW_W, (uint64_t)row, 0) % PERF_PATTERNS);
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
    int64_t number = uniform(perf_inputs_hash(problem->seed, kind, pattern, (uint64_t)first),
                             is_live ? problem->small : problem->large);
    return first == column ? number : partner_sign * number;
}

int64_t perf_inputs_x(const perf_problem_t *problem, unsigned pattern, int64_t column)
{
    if (problem->chain) { /* both of a pair of the slice are equal, as in every later layer's input */
        int64_t local = column % problem->n;
        column -= local % 2;
        return uniform(perf_inputs_hash(problem->seed, KIND_X, pattern, (uint64_t)column), problem->small);
    }
    return value(problem, KIND_X, pattern, column, 1);
}

int64_t perf_inputs_w(const perf_problem_t *problem, unsigned pattern, int64_t column)
{
    return value(problem, KIND_W, pattern, column, -1);
}

/* Rows of the slice from a table of all patterns. */
static bool fill_patterns(const perf_problem_t *problem, void *data, int64_t nrows,
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
        memcpy((char *)data + (size_t)i * row_nbytes, table + row_of(problem, i) * row_nbytes, row_nbytes);
    free(table);
    return true;
}

/* Sign, mantissa and the last bit of the exponent are random, so magnitudes are from 0.5 to below 2, as in
 * the planner's rehearsals. One hash makes as many neighbours as fit into its 64 bits: a matrix of 2^27
 * elements is to be there within a second. Words are counted in global columns, so that any slice holds the
 * same. */
static void fill_random(const perf_problem_t *problem, uint64_t kind, char *data, int64_t nrows)
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
    for (int64_t i = 0; i < nrows; i++) {
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

bool perf_inputs_fill_x(const perf_problem_t *problem, void *x, perf_error_t *error)
{
    if (problem->random) {
        fill_random(problem, KIND_X, x, problem->m);
        return true;
    }
    return fill_patterns(problem, x, problem->m, perf_inputs_x, perf_inputs_row_of_x, error);
}

static bool fill_weights(const perf_problem_t *problem, char *w, perf_error_t *error)
{
    size_t row_nbytes = (size_t)problem->k_local * starlin_dtype_nbytes(problem->dtype);
    double *row = malloc((size_t)problem->k_local * sizeof(*row) + 1);
    bool ok = row != NULL || perf_error_set(error, "out of memory for a row of the weights");
    for (int64_t i = 0; ok && i < problem->n; i++) {
        ok = perf_weights_row(problem->weights, i, problem->k_begin, problem->k_local, problem->dtype, row,
                              error);
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
        fill_random(problem, KIND_W, w, problem->n);
        return true;
    }
    if (!problem->chain)
        return fill_patterns(problem, w, problem->n, perf_inputs_w, perf_inputs_row_of_w, error);
    for (int64_t i = 0; i < problem->n; i++)
        for (int64_t j = 0; j < problem->k_local; j++)
            perf_element_store(problem->dtype, w, i * problem->k_local + j,
                               (double)perf_inputs_chain_w(problem, problem->rank, i, j));
    return true;
}
