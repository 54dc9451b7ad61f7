/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversions between f32 and the half-precision types, round to nearest even.
 * Integer code without branches, so that the compiler can vectorise the array versions. A NaN keeps its sign
 * and the upper bits of its payload and becomes quiet. */
#include "base/half.h"

#include <assert.h>
#include <string.h>

bool starlin__dtype_is_half(starlin_dtype_t dtype)
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

float starlin__f16_to_f32(uint16_t half)
{
    return f16_to_f32(half);
}

uint16_t starlin__f32_to_f16(float value)
{
    return f32_to_f16(value);
}

float starlin__bf16_to_f32(uint16_t half)
{
    return bf16_to_f32(half);
}

uint16_t starlin__f32_to_bf16(float value)
{
    return f32_to_bf16(value);
}

void starlin__half_to_f32(starlin_dtype_t dtype, const uint16_t *src, float *dst, size_t count)
{
    assert(dtype == STARLIN_F16 || dtype == STARLIN_BF16);
    if (dtype == STARLIN_F16)
        for (size_t i = 0; i < count; i++)
            dst[i] = f16_to_f32(src[i]);
    else
        for (size_t i = 0; i < count; i++)
            dst[i] = bf16_to_f32(src[i]);
}

void starlin__f32_to_half(starlin_dtype_t dtype, const float *src, uint16_t *dst, size_t count)
{
    assert(dtype == STARLIN_F16 || dtype == STARLIN_BF16);
    if (dtype == STARLIN_F16)
        for (size_t i = 0; i < count; i++)
            dst[i] = f32_to_f16(src[i]);
    else
        for (size_t i = 0; i < count; i++)
            dst[i] = f32_to_bf16(src[i]);
}
