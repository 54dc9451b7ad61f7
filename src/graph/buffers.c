/* SPDX-License-Identifier: BSD-3-Clause */
/* The data handles of a record's tasks: those of one chunk fit into the task itself; those of many chunks
 * need arrays, which StarPU frees with the task. What no task has taken stays in the record for the next
 * time. */
#define _POSIX_C_SOURCE 200809L
#include "graph/operator.h"

#include <stdlib.h>

/* Inputs and outputs of all chunks that the record covers, and the weight. */
static size_t most_buffers(const starlin__chunk_op_t *op)
{
    return 2 * (size_t)op->nchunks + 1;
}

static void release(starlin__buffers_t *buffers)
{
    free(buffers->handles);
    free(buffers->modes);
    *buffers = (starlin__buffers_t){0};
}

void starlin__buffers_release(starlin__chunk_op_t *op)
{
    for (int i = 0; i < STARLIN__NTASKS; i++)
        release(&op->buffers[i]);
}

starlin_status_t starlin__buffers_reserve(starlin__chunk_op_t *op, unsigned tasks)
{
    size_t count = most_buffers(op);

    for (int i = 0; i < STARLIN__NTASKS && count > STARPU_NMAXBUFS; i++) {
        starlin__buffers_t *buffers = &op->buffers[i];
        if ((tasks >> i & 1) == 0 || buffers->capacity >= count)
            continue;
        release(buffers);
        buffers->handles = malloc(count * sizeof *buffers->handles);
        buffers->modes = malloc(count * sizeof *buffers->modes);
        if (buffers->handles == NULL || buffers->modes == NULL) {
            release(buffers);
            return starlin__error(STARLIN_ERR_NO_MEMORY, "tasks of %zu buffers", count);
        }
        buffers->capacity = count;
    }
    return STARLIN_SUCCESS;
}

void starlin__buffers_open(starlin__chunk_op_t *op, starlin__task_t kind, struct starpu_task *task)
{
    starlin__buffers_t *buffers = &op->buffers[kind];

    task->nbuffers = 0;
    if (most_buffers(op) <= STARPU_NMAXBUFS)
        return;
    task->dyn_handles = buffers->handles;
    task->dyn_modes = buffers->modes;
    *buffers = (starlin__buffers_t){0};
}

static void add(struct starpu_task *task, starpu_data_handle_t handle, enum starpu_data_access_mode mode)
{
    int i = task->nbuffers++;

    *(task->dyn_handles != NULL ? &task->dyn_handles[i] : &task->handles[i]) = handle;
    *(task->dyn_modes != NULL ? &task->dyn_modes[i] : &task->modes[i]) = mode;
}

void starlin__buffers_add(const starlin__chunk_op_t *op, struct starpu_task *task,
                          const starlin_matrix_t *matrix, enum starpu_data_access_mode mode)
{
    for (unsigned i = 0; i < op->nchunks; i++)
        add(task, matrix->handles[op->chunk + i], mode);
}

void starlin__buffers_add_weight(const starlin__chunk_op_t *op, struct starpu_task *task)
{
    add(task, op->w->handles[0], STARPU_R);
}
