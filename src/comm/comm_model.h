/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link's device half: a kernel that moves the chunk, paced to the modelled time. */
#ifndef STARLIN_COMM_MODEL_H
#define STARLIN_COMM_MODEL_H

#include "comm/comm.h"

typedef struct starlin__model_device {
    /* Launches on the communication stream, between request->after and request->done. */
    starlin_status_t (*start)(starlin__device_t *device, starlin__allreduce_t *request, size_t nbytes,
                              const starlin__model_config_t *config);
} starlin__model_device_t;

/* NULL in builds without a device. */
extern const starlin__model_device_t *const starlin__model_device;

#endif
