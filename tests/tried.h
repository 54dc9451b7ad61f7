/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of first steps share: lists on trial, gemms that are slow by call, steps that are checked.
 * Include check.h first. */
#ifndef STARLIN_TESTS_TRIED_H
#define STARLIN_TESTS_TRIED_H

#include <time.h>

#include "linear.h"
#include "graph/matrix.h"
#include "starlin/starlin_plan.h"
#include "world.h"

/* What a gemm call takes beyond its work. */
typedef struct slowness {
    long call_us;
    const char *order; /* by operator behind `before`, 'w': this operator takes late_us more */
    uint64_t before;
    long late_us;
} slowness_t;

static inline bool slow(void *arg, int rank, uint64_t sequence, unsigned chunk)
{
    const slowness_t *slowness = arg;
    long time_us = slowness->call_us;

    (void)rank;
    if (slowness->order != NULL && chunk == 0 && sequence > slowness->before &&
        sequence <= slowness->before + strlen(slowness->order) &&
        slowness->order[sequence - slowness->before - 1] == 'w')
        time_us += slowness->late_us;
    nanosleep(&(struct timespec){.tv_sec = time_us / 1000000, .tv_nsec = time_us % 1000000 * 1000}, NULL);
    return true;
}

static inline void set_slow(const slowness_t *slowness)
{
    starlin__gemm_hook_arg = (void *)(uintptr_t)slowness;
    starlin__gemm_hook = slowness != NULL ? slow : NULL;
}

/* A list that is on trial as if it had been planned, against an expected time. */
static inline void open_tried(linear_t *linear, double serial_us)
{
    starlin_chunking_t *rows;

    CHECK_STATUS(linear_open(linear), STARLIN_SUCCESS);
    rows = linear->rows;
    rows->trial = starlin__trial_create(rows->nchunks, serial_us, NULL);
    linear->x->trial = starlin__trial_retain(rows->trial);
    linear->y->trial = starlin__trial_retain(rows->trial);
}

static inline uint64_t result_hash(const linear_t *linear)
{
    size_t nbytes = (size_t)(linear->m * linear->n) * starlin_dtype_nbytes(linear->dtype);
    return starlin__hash(STARLIN__HASH_INIT, linear->y_data, nbytes);
}

/* The same on every rank? */
static inline void check_same(uint64_t mine)
{
    uint64_t others[2];
    MPI_Allreduce(&mine, &others[0], 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &others[1], 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    CHECK(others[0] == others[1]);
}

/* One operator; true: in one piece. Overwrites the result first: what is exact is new. */
static inline bool submit(linear_t *linear)
{
    uint64_t before = linear->context->ntasks, ntasks;

    CHECK_STATUS(linear_submit(linear), STARLIN_SUCCESS);
    ntasks = linear->context->ntasks - before;
    CHECK(ntasks == 2 || ntasks == 3 || ntasks >= 4);
    return ntasks < 4;
}

/* Steps of `nlayers` operators, each checked; the bits of `pattern` say which steps were in one piece. */
static inline uint64_t run_steps(linear_t *linear, int nsteps, int nlayers)
{
    size_t nbytes = (size_t)(linear->m * linear->n) * starlin_dtype_nbytes(linear->dtype);
    uint64_t pattern = STARLIN__HASH_INIT, hash = 0;

    for (int step = 0; step < nsteps; step++) {
        bool whole = false;
        memset(linear->y_data, 0xff, nbytes);
        for (int layer = 0; layer < nlayers; layer++) {
            bool one = submit(linear);
            CHECK(layer == 0 || one == whole);
            whole = one;
        }
        CHECK_STATUS(step % 3 ? starlin_context_wait(linear->context) : starlin_matrix_wait(linear->y),
                     STARLIN_SUCCESS);
        pattern = starlin__hash(pattern, &whole, 1);
        hash = step == 0 ? result_hash(linear) : hash;
        CHECK(hash == result_hash(linear));
    }
    CHECK_EQ_INT(linear_wrong(linear), 0);
    return pattern;
}

static inline bool is_replaced(const linear_t *linear)
{
    const char *fallback = starlin_chunking_fallback(linear->rows);
    char text[4096];

    CHECK_STATUS(starlin_chunking_explain(linear->rows, text, sizeof text, NULL), STARLIN_SUCCESS);
    CHECK_CONTAINS(text, "first steps: ");
    check_same(starlin__hash(STARLIN__HASH_INIT, text, strlen(text)));
    CHECK_CONTAINS(text, fallback != NULL ? fallback : "kept");
    if (fallback != NULL)
        CHECK_CONTAINS(fallback, "replaced from operator ");
    return fallback != NULL;
}

#endif
