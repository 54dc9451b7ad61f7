/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges by NVTX, which is headers alone, in a domain of their own. Without a profiler its calls return at
 * once. */
#define _POSIX_C_SOURCE 200809L
#include "record/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static nvtxDomainHandle_t domain;
static bool enabled;

void starlin__ranges_open(bool asked)
{
    if (asked && domain == NULL)
        domain = nvtxDomainCreateA("starlin");
    enabled = asked;
}

void starlin__range_begin(const char *what, uint64_t sequence, unsigned chunk)
{
    char text[64];
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                        .message.ascii = text};
    if (!enabled)
        return;
    snprintf(text, sizeof text, "%s %llu.%u", what, (unsigned long long)sequence, chunk);
    (void)nvtxDomainRangePushEx(domain, &attributes);
}

void starlin__range_end(void)
{
    if (enabled)
        (void)nvtxDomainRangePop(domain);
}
#else
void starlin__ranges_open(bool asked)
{
    if (asked)
        starlin__log("STARLIN_NVTX: this build has no NVTX");
}

void starlin__range_begin(const char *what, uint64_t sequence, unsigned chunk)
{
    (void)what, (void)sequence, (void)chunk;
}

void starlin__range_end(void)
{
}
#endif
