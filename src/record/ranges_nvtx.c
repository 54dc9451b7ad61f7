/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges by NVTX, in a domain of their own. Without a profiler its calls return at once. */
#define _POSIX_C_SOURCE 200809L
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/ranges.h"

bool starlin__ranges_enabled;
static nvtxDomainHandle_t domain;

void starlin__ranges_open(void)
{
    const char *asked = getenv("STARLIN_NVTX");
    if (asked == NULL || strcmp(asked, "1") != 0 || starlin__ranges_enabled)
        return;
    domain = nvtxDomainCreateA("starlin");
    starlin__ranges_enabled = true;
}

void starlin__ranges_push(const char *what, uint64_t sequence, unsigned chunk)
{
    char text[64];
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII};
    snprintf(text, sizeof text, "%s %llu.%u", what, (unsigned long long)sequence, chunk);
    attributes.message.ascii = text;
    (void)nvtxDomainRangePushEx(domain, &attributes);
}

void starlin__ranges_pop(void)
{
    (void)nvtxDomainRangePop(domain);
}
