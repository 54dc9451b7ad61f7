/* SPDX-License-Identifier: BSD-3-Clause */
/* One element of any dtype as a double (all four dtypes are exact in it). */
#ifndef PERF_ELEMENT_H
#define PERF_ELEMENT_H

#include <string.h>

#include "compute/compute.h"

static inline double perf_element_load(starlin_dtype_t dtype, const void *data, int64_t i)
{
    union {
        float f32;
        double f64;
        uint16_t half;
    } value;
    size_t itemsize = starlin_dtype_nbytes(dtype);
    memcpy(&value, (const char *)data + (size_t)i * itemsize, itemsize);
    switch (dtype) {
    case STARLIN_F64:
        return value.f64;
    case STARLIN_F16:
        return (double)starlin__f16_to_f32(value.half);
    case STARLIN_BF16:
        return (double)starlin__bf16_to_f32(value.half);
    default:
        return (double)value.f32;
    }
}

static inline void perf_element_store(starlin_dtype_t dtype, void *data, int64_t i, double number)
{
    union {
        float f32;
        double f64;
        uint16_t half;
    } value;
    size_t itemsize = starlin_dtype_nbytes(dtype);
    if (dtype == STARLIN_F64)
        value.f64 = number;
    else if (dtype == STARLIN_F32)
        value.f32 = (float)number;
    else
        value.half =
            dtype == STARLIN_F16 ? starlin__f32_to_f16((float)number) : starlin__f32_to_bf16((float)number);
    memcpy((char *)data + (size_t)i * itemsize, &value, itemsize);
}

static inline double perf_element_round(starlin_dtype_t dtype, double number)
{
    double rounded;
    char bytes[sizeof(double)];
    perf_element_store(dtype, bytes, 0, number);
    rounded = perf_element_load(dtype, bytes, 0);
    return rounded;
}

#endif
