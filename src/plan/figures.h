/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a layer on this machine that are known beforehand, or guessed. */
#ifndef STARLIN_FIGURES_H
#define STARLIN_FIGURES_H

#include "graph/context.h"

/* Gemm tasks smaller than this are never planned. */
enum { STARLIN__SMALLEST_ROWS_HOST = 16, STARLIN__SMALLEST_ROWS_DEVICE = 128 };

/* Operations of a gemm that keeps a device busy for about half a millisecond (H200, bf16). A collective that
 * comes a little later than such a gemm would wait all that time, so the gemm yields; that costs some 40 us,
 * since the tail of one gemm no longer overlaps the head of the next. */
#define STARLIN__LONG_GEMM_FLOP 4e11

/* What ranks may differ in, so that all count with the same. */
typedef struct starlin__figures_agreed {
    double k;           /* of the largest slice */
    double nprocessors; /* of the smallest device; 0: the host */
    bool uses_core;     /* on some rank the collective needs a core of the gemm's */
} starlin__figures_agreed_t;

/* Collective; blocks. */
starlin_status_t starlin__figures_agree(starlin_context_t *context, const starlin__gemm_t *gemm,
                                        starlin__figures_agreed_t *agreed_p);

/* Everything but the curves. */
void starlin__figures_set(const starlin_context_t *context, const starlin__gemm_t *gemm,
                          const starlin__figures_agreed_t *agreed, starlin__plan_input_t *input);

/* What depends on input->ctas; the slowdown of gemms only where it was not measured for the tune file. */
void starlin__figures_room(const starlin_context_t *context, const starlin__gemm_t *gemm,
                           const starlin__figures_agreed_t *agreed, bool tuned, starlin__plan_input_t *input);

#endif
