/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of MPI_COMM_WORLD. MPI's default error handler ends all ranks, so returns need no check. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include <starlin/starlin_mpi.h>

#include "element.h"

enum { SUM_BLOCK = 1024 }; /* elements that are widened at a time: two blocks stay in the first cache */

static MPI_Datatype half_type;
static MPI_Op half_ops[2]; /* f16, bf16 */
static MPI_Request requests[PERF_MAX_SLOTS];

static void sum_half(starlin_dtype_t dtype, const uint16_t *in, uint16_t *inout, size_t count)
{
    float a[SUM_BLOCK], b[SUM_BLOCK];
    for (size_t first = 0; first < count; first += SUM_BLOCK) {
        size_t n = count - first < SUM_BLOCK ? count - first : SUM_BLOCK;
        perf_half_to_f32(dtype, in + first, a, n);
        perf_half_to_f32(dtype, inout + first, b, n);
        for (size_t i = 0; i < n; i++)
            b[i] += a[i];
        perf_f32_to_half(dtype, b, inout + first, n);
    }
}

static void sum_f16(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    sum_half(STARLIN_F16, in, inout, (size_t)*count);
}

static void sum_bf16(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    sum_half(STARLIN_BF16, in, inout, (size_t)*count);
}

bool perf_ranks_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                        "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]) != NULL)
            return true;
    return false;
}

bool perf_ranks_start(perf_ranks_t *ranks, perf_error_t *error)
{
    int provided;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return perf_error_set(error, "MPI does not start");
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->nranks);
    MPI_Type_contiguous(2, MPI_BYTE, &half_type);
    MPI_Type_commit(&half_type);
    MPI_Op_create(sum_f16, 1, &half_ops[0]);
    MPI_Op_create(sum_bf16, 1, &half_ops[1]);
    for (size_t i = 0; i < PERF_MAX_SLOTS; i++)
        requests[i] = MPI_REQUEST_NULL;
    return true;
}

void perf_ranks_finish(void)
{
    MPI_Op_free(&half_ops[0]);
    MPI_Op_free(&half_ops[1]);
    MPI_Type_free(&half_type);
    MPI_Finalize();
}

void perf_ranks_abort(int exit_code)
{
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

void perf_ranks_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void perf_ranks_gather(const void *mine, size_t nbytes, void *all)
{
    MPI_Allgather(mine, (int)nbytes, MPI_BYTE, all, (int)nbytes, MPI_BYTE, MPI_COMM_WORLD);
}

void perf_ranks_max(double *values, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

void perf_ranks_sum(uint64_t *values, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

void perf_ranks_collect(const void *mine, const size_t *nbytes, void *all)
{
    int rank, nranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank != 0) {
        MPI_Send(mine, (int)nbytes[rank], MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        return;
    }
    char *at = all;
    memcpy(at, mine, nbytes[0]);
    for (int i = 1; i < nranks; i++) {
        at += nbytes[i - 1];
        MPI_Recv(at, (int)nbytes[i], MPI_BYTE, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

void perf_ranks_collective(unsigned slot, const perf_collective_t *collective)
{
    bool half = perf_dtype_is_half(collective->dtype);
    MPI_Datatype type = half ? half_type : collective->dtype == STARLIN_F64 ? MPI_DOUBLE : MPI_FLOAT;
    MPI_Op op = half ? half_ops[collective->dtype == STARLIN_BF16] : MPI_SUM;
    const void *send = collective->send == collective->receive ? MPI_IN_PLACE : collective->send;
    int count = (int)collective->count;
    switch (collective->kind) {
    case PERF_ALLREDUCE:
        MPI_Iallreduce(send, collective->receive, count, type, op, MPI_COMM_WORLD, &requests[slot]);
        break;
    case PERF_REDUCE_SCATTER:
        MPI_Ireduce_scatter_block(send, collective->receive, count, type, op, MPI_COMM_WORLD,
                                  &requests[slot]);
        break;
    case PERF_ALLGATHER:
        MPI_Iallgather(send, count, type, collective->receive, count, type, MPI_COMM_WORLD, &requests[slot]);
        break;
    }
}

bool perf_ranks_test(unsigned slot)
{
    int done;
    MPI_Test(&requests[slot], &done, MPI_STATUS_IGNORE);
    return done != 0;
}

starlin_status_t perf_ranks_context_create(const starlin_context_options_t *options,
                                           starlin_context_t **context_p)
{
    return starlin_mpi_context_create(MPI_COMM_WORLD, options, context_p);
}
