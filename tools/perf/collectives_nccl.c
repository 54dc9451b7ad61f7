/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL for the hand on a GPU, as a good program uses it: buffers from NCCL, registered as symmetric windows
 * where the version has them (2.27) and the machine lets it. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdlib.h>

#include "collectives.h"
#include "ranks.h"

#define HAS_WINDOWS (NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0))

enum { MOST_BUFFERS = 16 };

typedef struct buffer {
    void *data;
#if HAS_WINDOWS
    ncclWindow_t window;
#endif
} buffer_t;

struct perf_collectives {
    ncclComm_t comm;
    buffer_t buffers[MOST_BUFFERS];
};

static bool ok(ncclResult_t ret, const char *doing, perf_error_t *error)
{
    return ret == ncclSuccess || perf_error_status(error, STARLIN_ERR_COMM, "baselines: NCCL: %s while %s",
                                                   ncclGetErrorString(ret), doing);
}

bool perf_collectives_open(int rank, int nranks, perf_collectives_t **collectives_p, perf_error_t *error)
{
    typedef struct hello {
        ncclUniqueId id;
        bool ok;
    } hello_t;
    hello_t mine = {.ok = true}, *all = calloc((size_t)nranks, sizeof(*all));
    perf_collectives_t *collectives = calloc(1, sizeof(*collectives));
    const char *limit = getenv("STARLIN_MAX_CTAS");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (limit != NULL && atoi(limit) > 0) /* as few as the library may use */
        config.maxCTAs = atoi(limit);
    if (all == NULL || collectives == NULL)
        perf_ranks_abort(1);
    if (rank == 0)
        mine.ok = ok(ncclGetUniqueId(&mine.id), "making an id", error);
    perf_ranks_gather(&mine, sizeof(mine), all);
    bool done = all[0].ok || perf_error_status(error, STARLIN_ERR_COMM, "baselines: rank 0 has no NCCL id");
    done = done && ok(ncclCommInitRankConfig(&collectives->comm, nranks, all[0].id, rank, &config),
                      "opening a communicator", error);
    free(all);
    if (!done) {
        free(collectives);
        return false;
    }
    *collectives_p = collectives;
    return true;
}

void perf_collectives_close(perf_collectives_t *collectives)
{
    if (collectives == NULL)
        return;
    (void)ncclCommDestroy(collectives->comm);
    free(collectives);
}

void *perf_collectives_alloc(perf_collectives_t *collectives, size_t nbytes)
{
    buffer_t *buffer = NULL;
    for (size_t i = 0; i < MOST_BUFFERS && buffer == NULL; i++)
        if (collectives->buffers[i].data == NULL)
            buffer = &collectives->buffers[i];
    if (buffer == NULL || ncclMemAlloc(&buffer->data, nbytes) != ncclSuccess)
        return NULL;
#if HAS_WINDOWS
    buffer->window = NULL; /* a refusal costs speed alone */
    (void)ncclCommWindowRegister(collectives->comm, buffer->data, nbytes, &buffer->window,
                                 NCCL_WIN_COLL_SYMMETRIC);
    (void)cudaGetLastError();
#endif
    return buffer->data;
}

void perf_collectives_free(perf_collectives_t *collectives, void *data)
{
    for (size_t i = 0; i < MOST_BUFFERS; i++) {
        buffer_t *buffer = &collectives->buffers[i];
        if (buffer->data != data)
            continue;
#if HAS_WINDOWS
        if (buffer->window != NULL)
            (void)ncclCommWindowDeregister(collectives->comm, buffer->window);
#endif
        (void)ncclMemFree(data);
        buffer->data = NULL;
    }
}

static ncclDataType_t data_type(starlin_dtype_t dtype)
{
    switch (dtype) {
    case STARLIN_F64:
        return ncclFloat64;
    case STARLIN_F16:
        return ncclFloat16;
    case STARLIN_BF16:
        return ncclBfloat16;
    default:
        return ncclFloat32;
    }
}

bool perf_collectives_launch(perf_collectives_t *collectives, const perf_collective_t *collective,
                             struct CUstream_st *stream, perf_error_t *error)
{
    ncclDataType_t type = data_type(collective->dtype);
    switch (collective->kind) {
    case PERF_ALLREDUCE:
        return ok(ncclAllReduce(collective->send, collective->receive, collective->count, type, ncclSum,
                                collectives->comm, stream),
                  "launching an allreduce", error);
    case PERF_REDUCE_SCATTER:
        return ok(ncclReduceScatter(collective->send, collective->receive, collective->count, type, ncclSum,
                                    collectives->comm, stream),
                  "launching a reduce-scatter", error);
    case PERF_ALLGATHER:
        break;
    }
    return ok(ncclAllGather(collective->send, collective->receive, collective->count, type, collectives->comm,
                            stream),
              "launching an all-gather", error);
}
