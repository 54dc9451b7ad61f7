/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of any dtype. All four dtypes are exact in a double. */
#ifndef PERF_ELEMENT_H
#define PERF_ELEMENT_H

#include <starlin/starlin.h>

double perf_element_load(starlin_dtype_t dtype, const void *data, int64_t i);
void perf_element_store(starlin_dtype_t dtype, void *data, int64_t i, double number);
/* The number as the dtype holds it. */
double perf_element_round(starlin_dtype_t dtype, double number);

/* F16 or BF16? */
bool perf_dtype_is_half(starlin_dtype_t dtype);
/* Rows of f16 or bf16 to f32 and back (to nearest even). */
void perf_half_to_f32(starlin_dtype_t dtype, const uint16_t *src, float *dst, size_t count);
void perf_f32_to_half(starlin_dtype_t dtype, const float *src, uint16_t *dst, size_t count);

#endif
