/* SPDX-License-Identifier: BSD-3-Clause */
/* What the planner counts with and nobody measures while planning. */
#include "figures.h"

#include <string.h>

/* Cost of one more chunk. Host: two tasks and a wake-up, on 2 cores with StarPU 1.3.10. Device: the gap that
 * two events leave between two gemms; all else is done while the device computes. */
static const double task_host_us = 12.0, task_device_us = 2.0;
/* Once for a step, where it was not measured (H200). */
static const double wait_device_us = 10.0;
/* A gemm that yields (H200). */
static const double yield_device_us = 40.0;
/* Both kernels share the device's processors and memory: guesses near what two-stream loops with collectives
 * of 8 CTAs showed on an H200. */
static const double device_gemm_slowdown = 1.02, device_comm_slowdown = 1.05;
/* A gemm's blocks stay to its end, so a collective that comes later waits for it: as good as for ever. */
static const double device_comm_delay_us = 1e9;

/* Rows of a gemm whose blocks are all resident at once and leave the collective its own: a larger one keeps
 * it out, or has its last blocks wait for it. By tiles of 128 x 256, which cuBLAS takes for large gemms of
 * these dtypes on Hopper. */
static double prompt_rows(const starlin_context_t *context, const starlin__gemm_t *gemm, unsigned ctas)
{
    enum { TILE_ROWS = 128, TILE_COLUMNS = 256 };
    unsigned nprocessors = context->device != NULL ? context->device->nprocessors : 0;

    if (ctas == 0 || ctas >= nprocessors || !starlin__dtype_is_half(gemm->dtype))
        return 0.0;
    return (double)(TILE_ROWS * ((nprocessors - ctas) / ((gemm->n + TILE_COLUMNS - 1) / TILE_COLUMNS)));
}

/* What depends on the number of CTAs and was not measured. */
void starlin__figures_room(const starlin_context_t *context, const starlin__gemm_t *gemm, bool tuned,
                           starlin__plan_input_t *input)
{
    unsigned ctas = input->ctas != 0 ? input->ctas : context->comm->ctas;

    input->prompt_rows = prompt_rows(context, gemm, ctas);
    if (context->device != NULL && ctas > 0 && !tuned) /* these processors are not the gemm's */
        input->gemm_slowdown = 1.0 + (double)ctas / (double)context->device->nprocessors;
}

/* All that is not measured. */
void starlin__figures_set(const starlin_context_t *context, const starlin__gemm_t *gemm,
                          starlin__plan_input_t *input)
{
    memset(input, 0, sizeof *input);
    input->m = gemm->m;
    input->nbytes_per_row = (double)gemm->n * (double)starlin_dtype_nbytes(gemm->out_dtype);
    input->task_us = context->device != NULL ? task_device_us : task_host_us;
    input->gemm_slowdown = context->device != NULL ? device_gemm_slowdown : 1.0;
    input->comm_slowdown = context->device != NULL ? device_comm_slowdown : 1.0;
    input->comm_delay_us = context->device != NULL ? device_comm_delay_us : 0.0;
    input->comm_uses_core = context->comm->uses_core && !context->share.comm_has_core;
    input->row_quantum = STARLIN__SMALLEST_ROWS_HOST;
    input->min_gain = 0.01;
    if (context->device == NULL)
        return;
    input->wait_us = wait_device_us;
    input->yield_us = yield_device_us;
    if (gemm->k > 0)
        input->yield_rows = STARLIN__LONG_GEMM_FLOP / (2.0 * (double)gemm->n * (double)gemm->k);
    input->row_quantum = gemm->m >= 2048 ? 256 : STARLIN__SMALLEST_ROWS_DEVICE;
    /* sizes that are no multiple of 512 cost a large gemm 3 to 7% (H200) */
    input->even_rows = gemm->m >= 4096 ? 512 : 0;
    input->uneven_slowdown = 1.05;
}
