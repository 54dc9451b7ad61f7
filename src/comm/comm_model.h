/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link's device half, so that comm_model.c needs neither CUDA's headers nor an #ifdef. */
#ifndef STARLIN_COMM_MODEL_H
#define STARLIN_COMM_MODEL_H

#include "comm.h"

typedef struct starlin__model_device {
    /* On the communication stream: waits for request->after, reads and writes the buffer (`nbytes`, values
     * unchanged) on config->ctas thread blocks for the time of the modelled collective, records
     * request->done. `after` and `done` may be NULL. Never blocks. */
    starlin_status_t (*start)(starlin__device_t *device, starlin__allreduce_t *request, size_t nbytes,
                              const starlin__model_config_t *config);
} starlin__model_device_t;

/* NULL in a build without CUDA. */
extern const starlin__model_device_t *const starlin__model_device;

#endif
