/* SPDX-License-Identifier: BSD-3-Clause */
/* Named ranges for profilers, around each launch: "gemm 3.0" is chunk 0 of the third operator. On the calling
 * thread; they nest. */
#ifndef STARLIN_RANGES_H
#define STARLIN_RANGES_H

#include "base/base.h"

/* Before tasks run: are ranges asked for? A build without NVTX says so in the log. */
void starlin__ranges_open(bool asked);
void starlin__range_begin(const char *what, uint64_t sequence, unsigned chunk);
void starlin__range_end(void);

#endif
