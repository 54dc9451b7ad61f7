/* SPDX-License-Identifier: BSD-3-Clause */
/* stage: brings a chunk from the device to main memory, for a communicator that sums host buffers. Nothing
 * runs; StarPU's coherence does the copy. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "graph/operator.h"

static struct starpu_codelet codelet = {.where = STARPU_NOWHERE,
                                        .name = "starlin_stage",
                                        .nbuffers = 1,
                                        .modes = {STARPU_RW},
                                        .specific_nodes = 1,
                                        .nodes = {STARPU_MAIN_RAM}};

void starlin__stage_insert(starlin__chunk_op_t *op)
{
    struct starpu_task *task = starpu_task_create();

    task->cl = &codelet;
    task->handles[0] = op->sum->handles[op->chunk]; /* operators in one piece need no stage */
    starlin__task_submit(task, op);
}
