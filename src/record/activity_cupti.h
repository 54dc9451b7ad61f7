/* SPDX-License-Identifier: BSD-3-Clause */
/* CUPTI's functions, found at run time. Included by activity_cupti*.c alone. */
#ifndef STARLIN_ACTIVITY_CUPTI_H
#define STARLIN_ACTIVITY_CUPTI_H

#include <cupti.h>

#include "base/base.h"

typedef struct starlin__cupti {
    CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*enable)(CUpti_ActivityKind);
    CUptiResult (*disable)(CUpti_ActivityKind);
    CUptiResult (*enable_driver)(CUpti_CallbackId, uint8_t);
    CUptiResult (*enable_runtime)(CUpti_CallbackId, uint8_t);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*timestamp)(uint64_t *);
    CUptiResult (*stream_id)(CUcontext, CUstream, uint8_t, uint32_t *);
    CUptiResult (*push)(CUpti_ExternalCorrelationKind, uint64_t);
    CUptiResult (*pop)(CUpti_ExternalCorrelationKind, uint64_t *);
    CUptiResult (*text)(CUptiResult, const char **);
} starlin__cupti_t;

extern starlin__cupti_t starlin__cupti;

/* Loads the library once and for all: its worker thread stays. */
starlin_status_t starlin__cupti_load(void);

/* Translates an error of CUPTI; `doing` completes "while ...". */
starlin_status_t starlin__cupti_status(CUptiResult ret, const char *doing);

#endif
