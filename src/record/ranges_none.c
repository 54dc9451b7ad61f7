/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for ranges_nvtx.c in a build without NVTX. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "record/ranges.h"

bool starlin__ranges_enabled;

void starlin__ranges_open(void)
{
    const char *asked = getenv("STARLIN_NVTX");
    if (asked != NULL && strcmp(asked, "1") == 0)
        starlin__log("STARLIN_NVTX: this build has no NVTX");
}

void starlin__ranges_push(const char *what, uint64_t sequence, unsigned chunk)
{
    (void)what;
    (void)sequence;
    (void)chunk;
}

void starlin__ranges_pop(void)
{
}
