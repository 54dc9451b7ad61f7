/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of any dtype, and conversions of f16 and bf16: integer code without branches, so that the compiler
 * can vectorise the loops. A NaN keeps its sign and the upper bits of its payload and becomes quiet. */
#include "element.h"

#include <string.h>

bool perf_dtype_is_half(starlin_dtype_t dtype)
{
    return dtype == STARLIN_F16 || dtype == STARLIN_BF16;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* With `?:` compilers move floating-point operations into a branch, which then cannot be vectorised. */
static inline uint32_t choose(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0u - (uint32_t)condition;

    return (yes & mask) | (no & ~mask);
}

static inline float f16_to_f32(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    /* exponents are biased by 15 and 127; infinities and NaNs need the largest one of f32 */
    uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 224u << 23 : 112u << 23);
    uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0;
    uint32_t subnormal = bits_of((float)(int32_t)magnitude * 0x1p-24f);

    return float_of(sign | quiet | choose(magnitude < 0x0400u, subnormal, normal));
}

static inline uint16_t f32_to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 16 & 0x8000u;
    /* from 65536 on everything is infinite; what rounds up to 65536 carries over into infinity */
    uint32_t clamped = magnitude < 0x47800000u ? magnitude : 0x47800000u;
    uint32_t normal = (clamped - (112u << 23) + 0x0fffu + (clamped >> 13 & 1)) >> 13;
    /* 0.5f has a spacing of 2^-24, that of f16's subnormals: the addition rounds */
    uint32_t small = choose(magnitude < 0x38800000u, magnitude, 0);
    uint32_t subnormal = bits_of(float_of(small) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x03ffu);
    uint32_t finite = choose(magnitude < 0x38800000u, subnormal, normal);

    return (uint16_t)(sign | choose(magnitude > 0x7f800000u, nan, finite));
}

static inline float bf16_to_f32(uint16_t half)
{
    uint32_t quiet = (half & 0x7fffu) > 0x7f80u ? 0x00400000u : 0;

    return float_of((uint32_t)half << 16 | quiet);
}

static inline uint16_t f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    uint32_t nan = bits >> 16 | 0x0040u;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

void perf_half_to_f32(starlin_dtype_t dtype, const uint16_t *src, float *dst, size_t count)
{
    if (dtype == STARLIN_F16)
        for (size_t i = 0; i < count; i++)
            dst[i] = f16_to_f32(src[i]);
    else
        for (size_t i = 0; i < count; i++)
            dst[i] = bf16_to_f32(src[i]);
}

void perf_f32_to_half(starlin_dtype_t dtype, const float *src, uint16_t *dst, size_t count)
{
    if (dtype == STARLIN_F16)
        for (size_t i = 0; i < count; i++)
            dst[i] = f32_to_f16(src[i]);
    else
        for (size_t i = 0; i < count; i++)
            dst[i] = f32_to_bf16(src[i]);
}

typedef union value {
    float f32;
    double f64;
    uint16_t half;
} value_t;

double perf_element_load(starlin_dtype_t dtype, const void *data, int64_t i)
{
    value_t value;
    size_t itemsize = starlin_dtype_nbytes(dtype);
    memcpy(&value, (const char *)data + (size_t)i * itemsize, itemsize);
    switch (dtype) {
    case STARLIN_F64:
        return value.f64;
    case STARLIN_F16:
        return (double)f16_to_f32(value.half);
    case STARLIN_BF16:
        return (double)bf16_to_f32(value.half);
    default:
        return (double)value.f32;
    }
}

void perf_element_store(starlin_dtype_t dtype, void *data, int64_t i, double number)
{
    value_t value;
    size_t itemsize = starlin_dtype_nbytes(dtype);
    if (dtype == STARLIN_F64)
        value.f64 = number;
    else if (dtype == STARLIN_F32)
        value.f32 = (float)number;
    else
        value.half = dtype == STARLIN_F16 ? f32_to_f16((float)number) : f32_to_bf16((float)number);
    memcpy((char *)data + (size_t)i * itemsize, &value, itemsize);
}

double perf_element_round(starlin_dtype_t dtype, double number)
{
    char bytes[sizeof(double)];
    perf_element_store(dtype, bytes, 0, number);
    return perf_element_load(dtype, bytes, 0);
}
