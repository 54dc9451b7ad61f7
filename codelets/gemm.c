/* SPDX-License-Identifier: BSD-3-Clause */
/* gemm: one row chunk of a rank's partial product, sum_i = x_i w^T, or all chunks that lie in one piece. */
#define _POSIX_C_SOURCE 200809L
#include <starpu.h>

#include "plan/figures.h"
#include "graph/operator.h"
#include "record/ranges.h"

starlin__gemm_hook_fn_t starlin__gemm_hook;
void *starlin__gemm_hook_arg;

/* --- bodies: the argument is the chunk's record; buffers are x_i (R) of each
 * chunk, w (R), sum_i (W) of each chunk */

static starlin__gemm_t bind_buffers(const starlin__chunk_op_t *op, void *buffers[])
{
    starlin__gemm_t gemm = op->gemm;
    size_t ldx = 0, ldw = 0, ldy;

    if (gemm.k > 0) { /* an empty slice's handle is StarPU's void interface, which not even has an id */
        gemm.x = starlin__buffer_data(buffers[0], &ldx);
        gemm.w = starlin__buffer_data(buffers[op->nchunks], &ldw);
    }
    gemm.y = starlin__buffer_data(buffers[op->nchunks + 1], &ldy);
    gemm.ldx = ldx != 0 ? (int64_t)ldx : gemm.k;
    gemm.ldw = ldw != 0 ? (int64_t)ldw : gemm.k;
    gemm.ldy = ldy != 0 ? (int64_t)ldy : gemm.n;
    return gemm;
}

/* Of so many rows each. */
static starlin_status_t run_pieces(starlin__compute_t *compute, int64_t piece_rows,
                                   const starlin__gemm_t *whole)
{
    size_t x_nbytes = (size_t)whole->ldx * starlin_dtype_nbytes(whole->dtype);
    size_t y_nbytes = (size_t)whole->ldy * starlin_dtype_nbytes(whole->out_dtype);
    unsigned worker = (unsigned)starpu_worker_get_id();

    for (int64_t first = 0; first < whole->m; first += piece_rows) {
        starlin__gemm_t gemm = *whole;
        gemm.m = whole->m - first < piece_rows ? whole->m - first : piece_rows;
        if (first > 0 && whole->k > 0)
            gemm.x = (const char *)whole->x + (size_t)first * x_nbytes;
        if (first > 0)
            gemm.y = (char *)whole->y + (size_t)first * y_nbytes;
        STARLIN__FORWARD(compute->ops->gemm(compute, worker, &gemm));
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t run(starlin__chunk_op_t *op, const starlin__gemm_t *gemm)
{
    starlin_context_t *context = op->context;

    if (starlin__gemm_hook != NULL &&
        !starlin__gemm_hook(starlin__gemm_hook_arg, context->bootstrap->rank, op->sequence, op->chunk))
        return starlin__error(STARLIN_ERR_COMPUTE, "gemm of chunk %u failed (injected)", op->chunk);
    return run_pieces(context->compute, starlin__chunk_op_piece_rows(op), gemm);
}

static void gemm_cpu(void *buffers[], void *arg)
{
    starlin__chunk_op_t *op = arg;
    double start_us = starlin__now_us();
    starlin__gemm_t gemm;
    starlin_status_t status;

    if (starlin__chunk_op_skips(op))
        return;
    gemm = bind_buffers(op, buffers);
    starlin__range_begin("gemm", op->sequence, op->chunk);
    status = run(op, &gemm);
    starlin__range_end();
    if (status != STARLIN_SUCCESS)
        starlin__chunk_op_fail(op, status, starlin_last_error());
    else
        starlin__chunk_op_ran(op, STARLIN__SPAN_GEMM, start_us);
}

/* Behind the collectives that wrote the inputs, or that still use the output's memory. One stream carries
 * them all, chunk after chunk, so the last chunk's event stands for the chunks before it. */
static starlin_status_t order_before(starlin__chunk_op_t *op)
{
    starlin__device_t *device = op->context->device;
    const starlin_matrix_t *matrices[3] = {op->x, op->w, op->sum};
    unsigned last = starlin__chunk_op_last(op), chunks[3] = {last, 0, last};

    for (int i = 0; i < 3; i++) {
        if (matrices[i]->events != NULL)
            STARLIN__FORWARD(device->ops->event_wait(device, matrices[i]->events[chunks[i]].comm,
                                                     STARLIN__STREAM_COMPUTE));
    }
    return STARLIN_SUCCESS;
}

/* The chunk's collective starts before the next gemm takes all of the device, if that is a long one. */
static starlin_status_t order_after(starlin__chunk_op_t *op)
{
    starlin__device_t *device = op->context->device;
    starlin__event_t *event;
    size_t next = starlin__chunk_op_last(op) + 1u;
    int64_t next_rows = 0;

    if (op->sum->events == NULL)
        return STARLIN_SUCCESS;
    event = op->sum->events[op->chunk].compute; /* the first chunk's; nothing waits for the others' alone */
    STARLIN__FORWARD(device->ops->event_record(device, event, STARLIN__STREAM_COMPUTE));
    if (next < op->sum->nchunks)
        next_rows = op->sum->chunk_rows[next];
    if (op->y->piece_rows > 0 && op->y->piece_rows < next_rows)
        next_rows = op->y->piece_rows;
    if (2.0 * (double)next_rows * (double)op->gemm.n * (double)op->gemm.k <= STARLIN__LONG_GEMM_FLOP ||
        op->context->comm->nranks == 1)
        return STARLIN_SUCCESS;
    return device->ops->give_way(device, event);
}

/* Marks the launch where spans are recorded: when it ran, the device tells later. */
static starlin__launch_t *mark_begin(const starlin__chunk_op_t *op)
{
    if (!starlin__timeline_enabled(op->context->timeline))
        return NULL;
    starlin__launch_t what = {.span = {.kind = STARLIN__SPAN_GEMM,
                                       .sequence = op->sequence,
                                       .chunk = op->chunk,
                                       .rows = op->gemm.m},
                              .nchunks = op->nchunks,
                              .reads = op->x,
                              .writes = op->sum};
    return starlin__activity_begin(op->context->activity, &what, NULL);
}

static starlin_status_t launch(starlin__chunk_op_t *op, const starlin__gemm_t *gemm, bool waits)
{
    starlin__device_t *device = op->context->device;
    starlin__launch_t *mark;
    starlin_status_t status;

    if (waits)
        STARLIN__FORWARD(order_before(op));
    mark = mark_begin(op);
    status = run(op, gemm);
    if (mark != NULL)
        starlin__activity_end(op->context->activity, mark);
    STARLIN__FORWARD(status);
    STARLIN__FORWARD(order_after(op));
    return op->synchronous ? device->ops->synchronize(device) : STARLIN_SUCCESS;
}

/* On whichever thread. `waits`: earlier work of the streams may not have passed. */
static void launch_or_fail(starlin__chunk_op_t *op, const starlin__gemm_t *gemm, bool waits)
{
    starlin_status_t status;

    starlin__range_begin("gemm", op->sequence, op->chunk);
    status = launch(op, gemm, waits);
    starlin__range_end();
    if (status != STARLIN_SUCCESS)
        starlin__chunk_op_fail(op, status, starlin_last_error());
}

static void gemm_cuda(void *buffers[], void *arg)
{
    starlin__chunk_op_t *op = arg;
    starlin__gemm_t gemm;

    if (starlin__chunk_op_skips(op))
        return;
    gemm = bind_buffers(op, buffers);
    launch_or_fail(op, &gemm, true);
}

/* --- without a task */

void starlin__gemm_launch(starlin__chunk_op_t *op)
{
    starlin__gemm_t gemm = op->gemm;

    gemm.x = starlin__matrix_chunk_data(op->x, op->chunk);
    gemm.w = starlin__matrix_chunk_data(op->w, 0);
    gemm.y = starlin__matrix_chunk_data(op->sum, op->chunk);
    if (!starlin__chunk_op_skips(op))
        launch_or_fail(op, &gemm, !op->context->settled);
    starlin__chunk_op_ended(op);
}

/* --- performance model: by shape and inner size, one symbol per dtype */

static uint32_t footprint(struct starpu_task *task)
{
    const starlin__chunk_op_t *op = task->cl_arg;
    int64_t shape[3] = {op->gemm.m, op->gemm.n, op->gemm.k};
    uint64_t hash = starlin__hash(STARLIN__HASH_INIT, shape, sizeof shape);
    return (uint32_t)(hash ^ (hash >> 32));
}

#define GEMM_MODEL(text)                                                                                     \
    {                                                                                                        \
        .type = STARPU_HISTORY_BASED, .symbol = "starlin_gemm_" text, .footprint = footprint                 \
    }
static struct starpu_perfmodel models[4] = {GEMM_MODEL("f32"), GEMM_MODEL("f64"), GEMM_MODEL("f16"),
                                            GEMM_MODEL("bf16")};

/* --- codelet */

#define GEMM_CODELET(dtype)                                                                                  \
    {                                                                                                        \
        .name = "starlin_gemm", .cpu_funcs = {gemm_cpu}, .cuda_funcs = {gemm_cuda},                          \
        .nbuffers = STARPU_VARIABLE_NBUFFERS, .model = &models[dtype]                                        \
    }
static struct starpu_codelet codelets[4] = {GEMM_CODELET(STARLIN_F32), GEMM_CODELET(STARLIN_F64),
                                            GEMM_CODELET(STARLIN_F16), GEMM_CODELET(STARLIN_BF16)};

/* --- insert */

void starlin__gemm_insert(starlin__chunk_op_t *op)
{
    struct starpu_task *task = starpu_task_create();

    task->cl = &codelets[op->gemm.dtype];
    task->where = (int32_t)starlin__compute_where(op->context);
    starlin__buffers_open(op, STARLIN__TASK_GEMM, task);
    starlin__buffers_add(op, task, op->x, STARPU_R);
    starlin__buffers_add_weight(op, task);
    starlin__buffers_add(op, task, op->sum, STARPU_W);
    task->cl_arg = op;
    task->cl_arg_size = 0;
    task->priority = op->priority;
    starlin__task_submit(task, op);
}
