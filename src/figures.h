/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a layer on this machine that are known beforehand, or guessed. */
#ifndef STARLIN_FIGURES_H
#define STARLIN_FIGURES_H

#include "context.h"

/* Gemm tasks smaller than this are never planned. */
enum { STARLIN__SMALLEST_ROWS_HOST = 16, STARLIN__SMALLEST_ROWS_DEVICE = 128 };

/* Everything but the curves. */
void starlin__figures_set(const starlin_context_t *context, const starlin__gemm_t *gemm,
                          starlin__plan_input_t *input);

/* What depends on input->ctas; the slowdown of gemms only where it was not measured for the tune file. */
void starlin__figures_room(const starlin_context_t *context, const starlin__gemm_t *gemm, bool tuned,
                           starlin__plan_input_t *input);

#endif
