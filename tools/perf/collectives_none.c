/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without NCCL. */
#include "collectives.h"

bool perf_collectives_open(int rank, int nranks, perf_collectives_t **collectives_p, perf_error_t *error)
{
    (void)rank;
    (void)nranks;
    (void)collectives_p;
    return perf_error_status(error, STARLIN_ERR_UNSUPPORTED, "this build of the tool has no NCCL");
}

void perf_collectives_close(perf_collectives_t *collectives)
{
    (void)collectives;
}

void *perf_collectives_alloc(perf_collectives_t *collectives, size_t nbytes)
{
    (void)collectives;
    (void)nbytes;
    return NULL;
}

void perf_collectives_free(perf_collectives_t *collectives, void *data)
{
    (void)collectives;
    (void)data;
}

bool perf_collectives_launch(perf_collectives_t *collectives, const perf_collective_t *collective,
                             struct CUstream_st *stream, perf_error_t *error)
{
    (void)collectives;
    (void)collective;
    (void)stream;
    return perf_error_status(error, STARLIN_ERR_UNSUPPORTED, "this build of the tool has no NCCL");
}
