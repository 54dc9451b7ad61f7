/* SPDX-License-Identifier: BSD-3-Clause */
/* What the planner counts with and nobody measures while planning. */
#include "plan/figures.h"

#include "plan/scratch.h"

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
static double prompt_rows(const starlin__gemm_t *gemm, double nprocessors, unsigned ctas)
{
    enum { TILE_ROWS = 128, TILE_COLUMNS = 256 };
    int64_t room = (int64_t)nprocessors - (int64_t)ctas;

    if (ctas == 0 || room <= 0 || !starlin__dtype_is_half(gemm->dtype))
        return 0.0;
    return (double)(TILE_ROWS * (room / ((gemm->n + TILE_COLUMNS - 1) / TILE_COLUMNS)));
}

starlin_status_t starlin__figures_agree(starlin_context_t *context, const starlin__gemm_t *gemm,
                                        starlin__figures_agreed_t *agreed_p)
{
    double figures[3] = {(double)gemm->k,
                         context->device != NULL ? -(double)context->device->nprocessors : 0.0,
                         context->comm->uses_core && !context->share.comm_has_core ? 1.0 : 0.0};

    STARLIN__FORWARD(starlin__agree_max(context, STARLIN_SUCCESS, figures, 3));
    *agreed_p = (starlin__figures_agreed_t){
        .k = figures[0], .nprocessors = -figures[1], .uses_core = figures[2] > 0.0};
    return STARLIN_SUCCESS;
}

/* What depends on the number of CTAs and was not measured. */
void starlin__figures_room(const starlin_context_t *context, const starlin__gemm_t *gemm,
                           const starlin__figures_agreed_t *agreed, bool tuned, starlin__plan_input_t *input)
{
    unsigned ctas = input->ctas != 0 ? input->ctas : context->comm->ctas;

    input->prompt_rows = prompt_rows(gemm, agreed->nprocessors, ctas);
    if (agreed->nprocessors > 0.0 && ctas > 0 && !tuned) /* these processors are not the gemm's */
        input->gemm_slowdown = 1.0 + (double)ctas / agreed->nprocessors;
}

/* All that is not measured. */
void starlin__figures_set(const starlin_context_t *context, const starlin__gemm_t *gemm,
                          const starlin__figures_agreed_t *agreed, starlin__plan_input_t *input)
{
    memset(input, 0, sizeof *input);
    input->m = gemm->m;
    input->nbytes_per_row = (double)gemm->n * (double)starlin_dtype_nbytes(gemm->out_dtype);
    input->task_us = context->device != NULL ? task_device_us : task_host_us;
    input->gemm_slowdown = context->device != NULL ? device_gemm_slowdown : 1.0;
    input->comm_slowdown = context->device != NULL ? device_comm_slowdown : 1.0;
    input->comm_delay_us = context->device != NULL ? device_comm_delay_us : 0.0;
    input->comm_uses_core = agreed->uses_core;
    input->row_quantum = STARLIN__SMALLEST_ROWS_HOST;
    input->min_gain = 0.01;
    if (context->device == NULL)
        return;
    input->wait_us = wait_device_us;
    input->yield_us = yield_device_us;
    if (agreed->k > 0.0)
        input->yield_rows = STARLIN__LONG_GEMM_FLOP / (2.0 * (double)gemm->n * agreed->k);
    input->row_quantum = gemm->m >= 2048 ? 256 : STARLIN__SMALLEST_ROWS_DEVICE;
    /* sizes that are no multiple of 512 cost a large gemm 3 to 7% (H200) */
    input->even_rows = gemm->m >= 4096 ? 512 : 0;
    input->uneven_slowdown = 1.05;
}
