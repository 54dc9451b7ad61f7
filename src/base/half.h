/* SPDX-License-Identifier: BSD-3-Clause */
/* f16 and bf16, which are summed and multiplied in f32. */
#ifndef STARLIN_HALF_H
#define STARLIN_HALF_H

#include "base/base.h"

/* f16 or bf16? */
bool starlin__dtype_is_half(starlin_dtype_t dtype);

/* Half precision, round to nearest even; NaN stays NaN, infinities and subnormals are right. */
float starlin__f16_to_f32(uint16_t half);
uint16_t starlin__f32_to_f16(float value);
float starlin__bf16_to_f32(uint16_t half);
uint16_t starlin__f32_to_bf16(float value);
void starlin__half_to_f32(starlin_dtype_t dtype, const uint16_t *src, float *dst, size_t count);
void starlin__f32_to_half(starlin_dtype_t dtype, const float *src, uint16_t *dst, size_t count);

#endif
