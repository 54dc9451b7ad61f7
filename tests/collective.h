/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives with small integers, whose sums over 4 ranks are exact in every dtype, and what they must give.
 * Include check.h first. */
#ifndef STARLIN_TESTS_COLLECTIVE_H
#define STARLIN_TESTS_COLLECTIVE_H

#include <stdlib.h>

#include "base/half.h"
#include "comm/comm.h"

enum { COLLECTIVE_MOST_RANKS = 4, COLLECTIVE_NSHAPES = 7, COLLECTIVE_GUARD = 0x5a };

/* Rows of each rank's run: even, uneven, empty on some ranks, empty everywhere, one row in all, many. */
static const int64_t collective_shapes[COLLECTIVE_NSHAPES][COLLECTIVE_MOST_RANKS] = {
    {5, 5, 5, 5}, {3, 2, 7, 1}, {0, 4, 0, 3}, {6, 0, 0, 0}, {0, 0, 0, 0}, {0, 1, 0, 0}, {700, 701, 699, 700}};

/* One collective of one rank, with host memory of its own: what it sends, what it must receive and what it
 * did, each with a guard behind it. */
typedef struct transfer {
    starlin__collective_t collective;
    int64_t rows[COLLECTIVE_MOST_RANKS];
    size_t send_nbytes, recv_nbytes;
    unsigned char *send, *recv, *expected;
} transfer_t;

static inline void transfer_put(starlin_dtype_t dtype, void *data, int64_t index, int value)
{
    if (dtype == STARLIN_F32)
        ((float *)data)[index] = (float)value;
    else if (dtype == STARLIN_F64)
        ((double *)data)[index] = value;
    else
        starlin__f32_to_half(dtype, &(float){(float)value}, (uint16_t *)data + index, 1);
}

/* What a rank contributes at an element of the full matrix part. */
static inline int transfer_value(int rank, int64_t index, int salt)
{
    return (int)((index * 7 + rank * 3 + salt) % 17) - 8;
}

static inline int transfer_expect(const transfer_t *transfer, int nranks, int64_t index, int salt)
{
    int64_t end = transfer->rows[0] * transfer->collective.cols;
    int owner = 0, sum = 0;

    if (transfer->collective.kind == STARLIN__ALLGATHER) {
        while (index >= end)
            end += transfer->rows[++owner] * transfer->collective.cols;
        return transfer_value(owner, index, salt);
    }
    for (int rank = 0; rank < nranks; rank++)
        sum += transfer_value(rank, index, salt);
    return sum;
}

static inline unsigned char *transfer_memory(size_t nbytes)
{
    unsigned char *memory = malloc(nbytes + 1);
    memset(memory, COLLECTIVE_GUARD, nbytes + 1);
    return memory;
}

/* Of the kind and dtype that the collective has; host pointers are set. */
static inline void transfer_open(transfer_t *transfer, int rank, int nranks, const int64_t *rows,
                                 int64_t cols, int salt)
{
    starlin__collective_t *collective = &transfer->collective;
    size_t size = starlin_dtype_nbytes(collective->dtype);
    int64_t begin = 0, sent, received;

    collective->count = 0;
    collective->cols = cols;
    for (int i = 0; i < nranks; i++) {
        begin += i < rank ? rows[i] * cols : 0;
        transfer->rows[i] = rows[i];
        collective->count += rows[i];
    }
    sent = (collective->kind == STARLIN__ALLGATHER ? rows[rank] : collective->count) * cols;
    received = (collective->kind == STARLIN__REDUCE_SCATTER ? rows[rank] : collective->count) * cols;
    transfer->send_nbytes = (size_t)sent * size;
    transfer->recv_nbytes = (size_t)received * size;
    transfer->send = transfer_memory(transfer->send_nbytes);
    transfer->recv = transfer_memory(transfer->recv_nbytes);
    transfer->expected = transfer_memory(transfer->recv_nbytes);
    for (int64_t i = 0; i < sent; i++)
        transfer_put(collective->dtype, transfer->send, i,
                     transfer_value(rank, collective->kind == STARLIN__ALLGATHER ? begin + i : i, salt));
    for (int64_t i = 0; i < received; i++) {
        int64_t at = collective->kind == STARLIN__REDUCE_SCATTER ? begin + i : i;
        transfer_put(collective->dtype, transfer->expected, i, transfer_expect(transfer, nranks, at, salt));
    }
    collective->rows = collective->kind == STARLIN__ALLREDUCE ? NULL : transfer->rows;
    collective->send = transfer->send;
    collective->recv = transfer->recv;
}

/* Compares and frees the memory, not the request. */
static inline void transfer_close(transfer_t *transfer, int rank)
{
    const int64_t *rows = transfer->rows;

    check_count++;
    if (memcmp(transfer->recv, transfer->expected, transfer->recv_nbytes + 1) != 0)
        CHECK_FAIL("rank %d: %s of %s, %d columns, runs %d %d %d %d: wrong", rank,
                   starlin__collective_name(transfer->collective.kind),
                   starlin_dtype_name(transfer->collective.dtype), (int)transfer->collective.cols,
                   (int)rows[0], (int)rows[1], (int)rows[2], (int)rows[3]);
    free(transfer->send);
    free(transfer->recv);
    free(transfer->expected);
}

static inline void collective_wait(starlin__comm_t *comm, starlin__collective_t *collective)
{
    bool done = false;
    while (!done) {
        starlin_status_t status = comm->ops->test(comm, collective, &done);
        CHECK_STATUS(status, STARLIN_SUCCESS);
        if (status != STARLIN_SUCCESS)
            return;
    }
}

#endif
