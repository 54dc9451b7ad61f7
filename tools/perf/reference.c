/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of right values: [pattern of X][pattern of W] for random integers, [pattern of X][n] for a chain and
 * for weights from a file.
 *
 * Integers are exact: the sum is taken in int64 and rounded once, which changes nothing unless partials
 * travel in f32. For real weights the bound is the usual one for a sum of K products in any order, |error| <=
 * gamma_(K+P) * sum |x||w| with gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed., section 3.1), u the unit roundoff of the accumulation, plus (P + 1) roundings to the
 * dtype, each at most its unit roundoff times sum |x||w|. The table itself is summed in double, which adds K
 * 2^-53 sum |x||w|. Where weights are not finite, or too large for the dtype, the right value is not finite
 * either; such elements are counted apart. */
#include "reference.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "element.h"

struct perf_reference {
    const perf_problem_t *problem;
    int64_t ncolumns;  /* of the tables */
    double *value;     /* [PERF_PATTERNS][ncolumns] */
    double *tolerance; /* the same, or NULL: exact */
    unsigned *column;  /* [n_local]: column of the table */
};

static void fill_integers(perf_reference_t *reference)
{
    const perf_problem_t *problem = reference->problem;
    int64_t sums[PERF_PATTERNS][PERF_PATTERNS] = {{0}};
    for (int64_t k = 0; k < problem->k; k++) {
        int64_t w[PERF_PATTERNS];
        for (unsigned j = 0; j < PERF_PATTERNS; j++)
            w[j] = perf_inputs_w(problem, j, k);
        for (unsigned i = 0; i < PERF_PATTERNS; i++) {
            int64_t x = perf_inputs_x(problem, i, k);
            for (unsigned j = 0; j < PERF_PATTERNS; j++)
                sums[i][j] += x * w[j];
        }
    }
    for (unsigned i = 0; i < PERF_PATTERNS; i++)
        for (unsigned j = 0; j < PERF_PATTERNS; j++)
            reference->value[i * PERF_PATTERNS + j] = perf_element_round(problem->dtype, (double)sums[i][j]);
}

/* Follows the selections back through the layers. */
static void fill_chain(perf_reference_t *reference)
{
    const perf_problem_t *problem = reference->problem;
    for (int64_t n = 0; n < problem->n; n++) {
        int64_t row = n;
        int sign = 1;
        perf_live_t live = {0, 0, 0};
        for (unsigned layer = 0; layer < problem->layers; layer++) {
            live = perf_inputs_chain_live(problem, row);
            sign *= live.sign;
            row = live.column;
        }
        for (unsigned i = 0; i < PERF_PATTERNS; i++)
            reference->value[i * reference->ncolumns + n] =
                (double)(sign * perf_inputs_x(problem, i, live.rank * problem->n + live.column));
    }
}

static double relative_tolerance(const perf_problem_t *problem)
{
    static const double roundoff[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8}; /* by dtype */
    double u = problem->dtype == STARLIN_F64 ? 0x1p-53 : 0x1p-24;
    double terms = (double)problem->k + problem->nranks;
    double tolerance = terms * u / (1 - terms * u) + (double)problem->k * 0x1p-53;
    if (problem->dtype == STARLIN_F16 || problem->dtype == STARLIN_BF16)
        tolerance += (problem->reduction == STARLIN_REDUCTION_F32 ? 1 : problem->nranks * 2) *
                     roundoff[problem->dtype] * 1.01;
    return tolerance;
}

static bool fill_weights(perf_reference_t *reference, perf_error_t *error)
{
    const perf_problem_t *problem = reference->problem;
    double relative = relative_tolerance(problem);
    size_t nx = (size_t)problem->k * PERF_PATTERNS;
    double *x = malloc((nx + (size_t)problem->k) * sizeof(*x));
    if (x == NULL)
        return perf_error_set(error, "out of memory for the reference of K = %lld", (long long)problem->k);
    double *w = x + nx;
    for (unsigned i = 0; i < PERF_PATTERNS; i++)
        for (int64_t k = 0; k < problem->k; k++)
            x[i * problem->k + k] = (double)perf_inputs_x(problem, i, k);
    bool ok = true;
    for (int64_t n = 0; ok && n < problem->n_local; n++) {
        ok =
            perf_weights_row(problem->weights, problem->n_begin + n, 0, problem->k, problem->dtype, w, error);
        for (unsigned i = 0; ok && i < PERF_PATTERNS; i++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < problem->k; k++) {
                double product = x[i * problem->k + k] * w[k];
                sum += product;
                magnitude += fabs(product);
            }
            reference->value[i * reference->ncolumns + n] = sum;
            reference->tolerance[i * reference->ncolumns + n] = relative * magnitude;
        }
    }
    free(x);
    return ok;
}

bool perf_reference_create(const perf_problem_t *problem, perf_reference_t **reference_p, perf_error_t *error)
{
    bool integers = !problem->chain && problem->weights == NULL;
    assert(!problem->random);
    perf_reference_t *reference = calloc(1, sizeof(*reference));
    if (reference == NULL)
        return perf_error_set(error, "out of memory for the reference");
    reference->problem = problem;
    reference->ncolumns = integers ? PERF_PATTERNS : problem->n_local;
    size_t count = (size_t)reference->ncolumns * PERF_PATTERNS;
    reference->value = malloc(count * sizeof(double) + 1);
    reference->tolerance = problem->weights != NULL ? malloc(count * sizeof(double) + 1) : NULL;
    reference->column = malloc((size_t)problem->n_local * sizeof(unsigned) + 1);
    bool ok = reference->value != NULL && reference->column != NULL &&
              (problem->weights == NULL || reference->tolerance != NULL);
    if (!ok)
        perf_error_set(error, "out of memory for the reference of N = %lld", (long long)problem->n);
    for (int64_t n = 0; ok && n < problem->n_local; n++)
        reference->column[n] = integers ? perf_inputs_row_of_w(problem, problem->n_begin + n) : (unsigned)n;
    if (ok && integers)
        fill_integers(reference);
    else if (ok && problem->chain)
        fill_chain(reference);
    else if (ok)
        ok = fill_weights(reference, error);
    if (!ok) {
        perf_reference_destroy(reference);
        return false;
    }
    *reference_p = reference;
    return true;
}

void perf_reference_destroy(perf_reference_t *reference)
{
    if (reference == NULL)
        return;
    free(reference->value);
    free(reference->tolerance);
    free(reference->column);
    free(reference);
}

void perf_reference_compare(const perf_reference_t *reference, const void *y, perf_counts_t *counts_p)
{
    const perf_problem_t *problem = reference->problem;
    perf_counts_t counts = {0, 0};
    for (int64_t m = 0; m < problem->y_rows; m++) {
        size_t row = perf_inputs_row_of_x(problem, problem->y_begin + m) * (size_t)reference->ncolumns;
        for (int64_t n = 0; n < problem->n_local; n++) {
            size_t at = row + reference->column[n];
            double value = perf_element_load(problem->dtype, y, m * problem->n_local + n);
            double right = reference->value[at];
            double tolerance = reference->tolerance != NULL ? reference->tolerance[at] : 0;
            if (isfinite(perf_element_round(problem->dtype, right)))
                counts.wrong += !(fabs(value - right) <= tolerance);
            else if (isfinite(value))
                counts.wrong++;
            else
                counts.nonfinite++;
        }
    }
    *counts_p = counts;
}
