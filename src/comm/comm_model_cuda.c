/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link on a CUDA device: a paced kernel in the place of a collective. */
#include "machine/device_cuda.h"

#include "codelets/paced.h"
#include "comm/comm_model.h"

static starlin_status_t start(starlin__device_t *device, starlin__allreduce_t *request, size_t nbytes,
                              const starlin__model_config_t *config)
{
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMM);
    double time_us = starlin__model_config_time_us(config, (double)nbytes);
    if (request->after != NULL)
        STARLIN__FORWARD(device->ops->event_wait(device, request->after, STARLIN__STREAM_COMM));
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    unsigned ctas = request->ctas != 0 ? request->ctas : config->ctas;
    int error = starlin__paced_launch(request->buffer, nbytes, ctas, time_us, stream);
    starlin__device_cuda_leave(device);
    STARLIN__FORWARD(starlin__device_cuda_status((cudaError_t)error, "launching the modelled collective"));
    if (request->done != NULL)
        STARLIN__FORWARD(device->ops->event_record(device, request->done, STARLIN__STREAM_COMM));
    return STARLIN_SUCCESS;
}

static const starlin__model_device_t model_device = {.start = start};

const starlin__model_device_t *const starlin__model_device = &model_device;
