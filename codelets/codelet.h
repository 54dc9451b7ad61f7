/* SPDX-License-Identifier: BSD-3-Clause */
/* What the codelets share: their parts of the table, and the frame around a body. */
#ifndef STARLIN_CODELET_H
#define STARLIN_CODELET_H

#include "graph/record.h"
#include "record/ranges.h"

void starlin__gemm_insert(starlin__task_t *task);
bool starlin__gemm_launch(starlin__task_t *task);
void starlin__collective_insert(starlin__task_t *task);
bool starlin__collective_launch(starlin__task_t *task);
void starlin__rowwise_insert(starlin__task_t *task);
bool starlin__rowwise_launch(starlin__task_t *task);
void starlin__retire_insert(starlin__record_t *record);

/* The work of a stage that computes, on operands at these places: on the host it is done when this returns,
 * on a device it is launched. */
typedef starlin_status_t (*starlin__work_fn_t)(starlin__task_t *task, const starlin__places_t *places);

/* Bodies of a CPU and of a CUDA worker: skip, mark, work, order, failure. */
void starlin__body_cpu(starlin__task_t *task, void *buffers[], starlin__work_fn_t work);
void starlin__body_cuda(starlin__task_t *task, void *buffers[], starlin__work_fn_t work);
/* Without a task, on the caller's thread. */
bool starlin__body_launch(starlin__task_t *task, starlin__work_fn_t work);

/* A new task of a stage that computes, where the context computes. */
struct starpu_task *starlin__compute_task(starlin__task_t *task, struct starpu_codelet *codelet);

#endif
