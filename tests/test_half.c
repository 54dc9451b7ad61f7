/* SPDX-License-Identifier: BSD-3-Clause */
/* Half precision: every half there and back, and rounding against a reference that works in double. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "compute/compute.h"

typedef struct format {
    starlin_dtype_t dtype;
    int mantissa_bits, exponent_min, exponent_max; /* of normal numbers */
    float (*widen)(uint16_t half);
    uint16_t (*narrow)(float value);
} format_t;

static const format_t formats[] = {{STARLIN_F16, 10, -14, 15, starlin__f16_to_f32, starlin__f32_to_f16},
                                   {STARLIN_BF16, 7, -126, 127, starlin__bf16_to_f32, starlin__f32_to_bf16}};

/* The value of a finite half, from the definition of the format. */
static double reference_value(const format_t *format, unsigned half)
{
    int exponent = (int)((half & 0x7fff) >> format->mantissa_bits);
    int mantissa = (int)(half & ((1u << format->mantissa_bits) - 1));
    double magnitude;

    if (exponent == 0)
        magnitude = ldexp(mantissa, format->exponent_min - format->mantissa_bits);
    else
        magnitude = ldexp(mantissa + (1 << format->mantissa_bits),
                          exponent - 1 + format->exponent_min - format->mantissa_bits);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* Rounds through the number of units in the last place, which double holds exactly. */
static unsigned reference_round(const format_t *format, double value)
{
    unsigned sign = signbit(value) ? 0x8000 : 0;
    unsigned infinity = (unsigned)(format->exponent_max - format->exponent_min + 2) << format->mantissa_bits;
    double magnitude = fabs(value), units, whole;
    int exponent = magnitude > 0 ? ilogb(magnitude) : format->exponent_min;

    if (isinf(value))
        return sign | infinity;
    if (exponent < format->exponent_min)
        exponent = format->exponent_min;
    units = ldexp(magnitude, format->mantissa_bits - exponent);
    whole = floor(units);
    if (units - whole > 0.5 || (units - whole == 0.5 && fmod(whole, 2) == 1))
        whole += 1;
    /* `whole` has its leading bit at mantissa_bits for normal numbers, and carries into the exponent */
    if (exponent > format->exponent_max)
        return sign | infinity;
    whole += ldexp(exponent - format->exponent_min, format->mantissa_bits);
    return whole >= infinity ? sign | infinity : sign | (unsigned)whole;
}

static void check_rounding(const format_t *format, float value)
{
    unsigned actual = format->narrow(value), expected = reference_round(format, (double)value);

    check_count++;
    if (actual != expected)
        CHECK_FAIL("%s of %a is 0x%04x, expected 0x%04x", starlin_dtype_name(format->dtype), (double)value,
                   actual, expected);
}

static void test_every_half(const format_t *format)
{
    unsigned infinity = (unsigned)(format->exponent_max - format->exponent_min + 2) << format->mantissa_bits;

    for (unsigned half = 0; half < 65536; half++) {
        float wide = format->widen((uint16_t)half);
        unsigned back = format->narrow(wide);
        unsigned magnitude = half & 0x7fff;
        bool good;

        check_count++;
        if (magnitude > infinity)
            good = isnan(wide) && (back & 0x7fff) > infinity && (back & 0x8000) == (half & 0x8000);
        else if (magnitude == infinity)
            good = isinf(wide) && (signbit(wide) != 0) == (half >> 15) && back == half;
        else
            good = (double)wide == reference_value(format, half) && back == half;
        if (!good)
            CHECK_FAIL("%s 0x%04x is %a, and back 0x%04x", starlin_dtype_name(format->dtype), half,
                       (double)wide, back);
    }
}

/* Around every half: itself, the tie above it, and the f32 numbers next to both. */
static void test_ties(const format_t *format)
{
    unsigned infinity = (unsigned)(format->exponent_max - format->exponent_min + 2) << format->mantissa_bits;

    for (unsigned half = 0; half < infinity; half++) {
        float value = format->widen((uint16_t)half);
        double above =
            half + 1 < infinity ? reference_value(format, half + 1) : ldexp(1, format->exponent_max + 1);
        float tie = (float)(((double)value + above) / 2); /* exact: f32 has more bits */
        float near[] = {value, tie};

        for (int i = 0; i < 2; i++) {
            for (int sign = -1; sign <= 1; sign += 2) {
                check_rounding(format, (float)sign * near[i]);
                check_rounding(format, (float)sign * nextafterf(near[i], INFINITY));
                check_rounding(format, (float)sign * nextafterf(near[i], 0));
            }
        }
    }
}

static void test_random(const format_t *format)
{
    uint32_t state = 12345;

    for (int i = 0; i < 1000000; i++) {
        float value;

        state = state * 1664525u + 1013904223u;
        memcpy(&value, &state, sizeof(value));
        if (!isnan(value))
            check_rounding(format, value);
        else
            CHECK(isnan(format->widen(format->narrow(value))));
    }
}

static void test_special(const format_t *format)
{
    uint32_t nan_bits[] = {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u};

    check_rounding(format, INFINITY);
    check_rounding(format, -INFINITY);
    check_rounding(format, 0.0f);
    check_rounding(format, -0.0f);
    check_rounding(format, 3.40282347e38f);
    check_rounding(format, 1e-45f);
    for (size_t i = 0; i < sizeof(nan_bits) / sizeof(nan_bits[0]); i++) {
        float nan;

        memcpy(&nan, &nan_bits[i], sizeof(nan));
        CHECK(isnan(format->widen(format->narrow(nan))));
        CHECK_EQ_INT(format->narrow(nan) >> 15, nan_bits[i] >> 31);
    }
}

/* The array versions give the same bits as the scalar ones at every length and alignment, and write no more.
 */
static void test_arrays(const format_t *format)
{
    enum { LENGTH = 67 };
    float wide[LENGTH + 1], wide_out[LENGTH + 1];
    uint16_t half[LENGTH + 1];

    for (int i = 0; i <= LENGTH; i++)
        wide[i] = ldexpf((i % 2 ? 1.0f : -1.0f) * (1 + (float)i / 67), i - 30);
    wide[11] = INFINITY;
    wide[13] = NAN;
    for (size_t start = 0; start < 4; start++) {
        for (size_t count = 0; count + start <= LENGTH; count++) {
            half[start + count] = 0x1234;
            wide_out[start + count] = 77;
            starlin__f32_to_half(format->dtype, wide + start, half + start, count);
            starlin__half_to_f32(format->dtype, half + start, wide_out + start, count);
            for (size_t i = start; i < start + count; i++) {
                float expected = format->widen(half[i]);

                CHECK_EQ_INT(half[i], format->narrow(wide[i]));
                CHECK(memcmp(&wide_out[i], &expected, sizeof(expected)) == 0);
            }
            CHECK_EQ_INT(half[start + count], 0x1234);
            CHECK_EQ_INT(wide_out[start + count], 77);
        }
    }
}

int main(void)
{
    CHECK_EQ_INT(starlin__f32_to_f16(1.0f), 0x3c00);
    CHECK_EQ_INT(starlin__f32_to_f16(65504.0f), 0x7bff);
    CHECK_EQ_INT(starlin__f32_to_f16(65519.0f), 0x7bff);
    CHECK_EQ_INT(starlin__f32_to_f16(65520.0f), 0x7c00);
    CHECK_EQ_INT(starlin__f32_to_bf16(1.0f), 0x3f80);
    CHECK_EQ_INT(starlin__f32_to_bf16(1.00390625f), 0x3f80); /* a tie, to even */
    CHECK_EQ_INT(starlin__f32_to_bf16(1.01171875f), 0x3f82); /* the next one, up */
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        test_every_half(&formats[i]);
        test_ties(&formats[i]);
        test_random(&formats[i]);
        test_special(&formats[i]);
        test_arrays(&formats[i]);
    }
    return CHECK_RESULT();
}
