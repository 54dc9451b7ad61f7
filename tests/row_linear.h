/* SPDX-License-Identifier: BSD-3-Clause */
/* Integer problems whose sums are exact in every dtype, and their right answers. */
#ifndef STARLIN_TESTS_ROW_LINEAR_H
#define STARLIN_TESTS_ROW_LINEAR_H

#include <stdlib.h>

#include "compute/compute.h"

static inline void element_store(starlin_dtype_t dtype, void *data, size_t i, double value)
{
    switch (dtype) {
    case STARLIN_F32:
        ((float *)data)[i] = (float)value;
        break;
    case STARLIN_F64:
        ((double *)data)[i] = value;
        break;
    case STARLIN_F16:
        ((uint16_t *)data)[i] = starlin__f32_to_f16((float)value);
        break;
    case STARLIN_BF16:
        ((uint16_t *)data)[i] = starlin__f32_to_bf16((float)value);
        break;
    }
}

static inline double element_load(starlin_dtype_t dtype, const void *data, size_t i)
{
    switch (dtype) {
    case STARLIN_F32:
        return ((const float *)data)[i];
    case STARLIN_F64:
        return ((const double *)data)[i];
    case STARLIN_F16:
        return starlin__f16_to_f32(((const uint16_t *)data)[i]);
    case STARLIN_BF16:
        return starlin__bf16_to_f32(((const uint16_t *)data)[i]);
    }
    return 0.0;
}

/* Values in {-1, 0, 1}, few enough that partial sums stay below 2^8 (exact in bf16) for inner sizes to 256.
 */
static inline int problem_x(int64_t row, int64_t inner)
{
    return (int)((row * 7 + inner * 3 + row * inner) % 3) - 1;
}

static inline int problem_w(int64_t output, int64_t inner)
{
    return (int)((output * 5 + inner * 11 + output * inner) % 3) - 1;
}

/* Rank's slice [first, first + k_local) of a global inner size; the first ranks get one more. */
static inline void problem_slice(int64_t k, int rank, int nranks, int64_t *first_p, int64_t *k_local_p)
{
    int64_t base = k / nranks, more = k % nranks;
    *k_local_p = base + (rank < more ? 1 : 0);
    *first_p = rank * base + (rank < more ? rank : more);
}

static inline double problem_y(int64_t row, int64_t output, int64_t k)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += problem_x(row, i) * problem_w(output, i);
    return (double)sum;
}

static inline void problem_fill(starlin_dtype_t dtype, void *data, int64_t rows, int64_t ld, int64_t first,
                                int64_t k_local, int (*value)(int64_t, int64_t))
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < k_local; j++)
            element_store(dtype, data, (size_t)(i * ld + j), value(i, first + j));
    }
}

#endif
