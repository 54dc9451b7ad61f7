/* SPDX-License-Identifier: BSD-3-Clause */
/* Named ranges for profilers, around each launch: "gemm 3.0" is chunk 0 of the third operator. Only with
 * STARLIN_NVTX=1; otherwise a branch. */
#ifndef STARLIN_RANGES_H
#define STARLIN_RANGES_H

#include "base/base.h"

extern bool starlin__ranges_enabled;

/* Looks at the environment. Once, before tasks run. */
void starlin__ranges_open(void);

/* On the calling thread; they nest. */
void starlin__ranges_push(const char *what, uint64_t sequence, unsigned chunk);
void starlin__ranges_pop(void);

static inline void starlin__range_begin(const char *what, uint64_t sequence, unsigned chunk)
{
    if (starlin__ranges_enabled)
        starlin__ranges_push(what, sequence, chunk);
}

static inline void starlin__range_end(void)
{
    if (starlin__ranges_enabled)
        starlin__ranges_pop();
}

#endif
