/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking MPI collectives on a communicator of our own, on host memory. MPI has no half-precision sums,
 * so f16 and bf16 bring reduction operators: sum in f32, one rounding per step. */
#include "comm/comm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "ranks/bootstrap_mpi.h"

typedef struct starlin__comm_mpi {
    starlin__comm_t base;
    MPI_Comm comm;
    int rank;
    MPI_Datatype type[4];
    MPI_Op op[4];
    unsigned inflight; /* nonzero at destruction: given up, the communicator cannot be freed */
} comm_mpi_t;

_Static_assert(sizeof(MPI_Request) <= sizeof(((starlin__collective_t *)0)->opaque), "room for a request");

static void sum_f16(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        b[i] = starlin__f32_to_f16(starlin__f16_to_f32(a[i]) + starlin__f16_to_f32(b[i]));
}

static void sum_bf16(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        b[i] = starlin__f32_to_bf16(starlin__bf16_to_f32(a[i]) + starlin__bf16_to_f32(b[i]));
}

static bool mpi_usable(const starlin__comm_setup_t *setup, char *why, size_t whysize)
{
    if (setup->bootstrap->nranks > 1)
        return true;
    snprintf(why, whysize, "there is one rank");
    return false;
}

static void mpi_destroy(starlin__comm_t *base)
{
    comm_mpi_t *comm = (comm_mpi_t *)base;
    int finalized = 0;

    MPI_Finalized(&finalized);
    if (!finalized && comm->inflight == 0) {
        for (int i = STARLIN_F16; i <= STARLIN_BF16; i++) {
            if (comm->op[i] != MPI_OP_NULL)
                MPI_Op_free(&comm->op[i]);
        }
        MPI_Comm_free(&comm->comm);
    }
    starlin__free(comm);
}

static starlin_status_t mpi_create(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Comm dup = MPI_COMM_NULL;
    int length;
    starlin_status_t status;
    comm_mpi_t *comm;

    if (!setup->bootstrap->has_mpi)
        return starlin__error(
            STARLIN_ERR_INVALID,
            "communicator mpi needs a context made from an MPI communicator (starlin_mpi.h)");
    STARLIN__FORWARD(starlin__mpi_dup(setup->bootstrap->mpi_comm, setup->config->timeout_ms, &dup));
    status = starlin__comm_alloc(&starlin__comm_mpi_ops, setup, sizeof *comm, comm_p);
    if (status != STARLIN_SUCCESS) {
        MPI_Comm_free(&dup);
        return status;
    }
    comm = (comm_mpi_t *)*comm_p;
    comm->base.space = STARLIN__HOST;
    comm->base.device = NULL;
    comm->base.most_elements = INT_MAX;
    comm->rank = setup->bootstrap->rank;
    comm->comm = dup;
    comm->type[STARLIN_F32] = MPI_FLOAT;
    comm->type[STARLIN_F64] = MPI_DOUBLE;
    comm->type[STARLIN_F16] = comm->type[STARLIN_BF16] = MPI_UINT16_T;
    comm->op[STARLIN_F32] = comm->op[STARLIN_F64] = MPI_SUM;
    comm->op[STARLIN_F16] = comm->op[STARLIN_BF16] = MPI_OP_NULL;
    if (MPI_Get_library_version(library, &length) == MPI_SUCCESS)
        snprintf(comm->base.version, sizeof comm->base.version, "%.*s", (int)strcspn(library, ",\n"),
                 library);
    status = starlin__mpi_status(MPI_Op_create(sum_f16, 1, &comm->op[STARLIN_F16]), "MPI_Op_create");
    if (status == STARLIN_SUCCESS)
        status = starlin__mpi_status(MPI_Op_create(sum_bf16, 1, &comm->op[STARLIN_BF16]), "MPI_Op_create");
    if (status != STARLIN_SUCCESS) {
        mpi_destroy(&comm->base);
        *comm_p = NULL;
    }
    return status;
}

/* Elements of each rank's run, then where each begins. *equal_p: all runs are as long. */
static starlin_status_t count_runs(const comm_mpi_t *comm, starlin__collective_t *collective, bool *equal_p)
{
    size_t nranks = (size_t)comm->base.nranks;
    int *places, place = 0;

    if (collective->ncounts < 2 * nranks) {
        starlin__free(collective->counts);
        collective->ncounts = 0;
        collective->counts = starlin__alloc(2 * nranks * sizeof *collective->counts);
        if (collective->counts == NULL)
            return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the runs of %zu ranks", nranks);
        collective->ncounts = 2 * nranks;
    }
    places = collective->counts + nranks;
    *equal_p = true;
    for (size_t rank = 0; rank < nranks; rank++) {
        collective->counts[rank] = (int)(collective->rows[rank] * collective->cols);
        places[rank] = place;
        place += collective->counts[rank];
        *equal_p = *equal_p && collective->counts[rank] == collective->counts[0];
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t start_gather(const comm_mpi_t *comm, const starlin__collective_t *collective,
                                     bool equal, MPI_Request *request)
{
    MPI_Datatype type = comm->type[collective->dtype];
    const int *counts = collective->counts;
    int mine = counts[comm->rank];

    if (equal)
        return starlin__mpi_status(
            MPI_Iallgather(collective->send, mine, type, collective->recv, mine, type, comm->comm, request),
            "MPI_Iallgather");
    return starlin__mpi_status(MPI_Iallgatherv(collective->send, mine, type, collective->recv, counts,
                                               counts + comm->base.nranks, type, comm->comm, request),
                               "MPI_Iallgatherv");
}

static starlin_status_t start_scatter(const comm_mpi_t *comm, const starlin__collective_t *collective,
                                      bool equal, MPI_Request *request)
{
    MPI_Datatype type = comm->type[collective->dtype];
    MPI_Op op = comm->op[collective->dtype];

    if (equal)
        return starlin__mpi_status(MPI_Ireduce_scatter_block(collective->send, collective->recv,
                                                             collective->counts[0], type, op, comm->comm,
                                                             request),
                                   "MPI_Ireduce_scatter_block");
    return starlin__mpi_status(MPI_Ireduce_scatter(collective->send, collective->recv, collective->counts,
                                                   type, op, comm->comm, request),
                               "MPI_Ireduce_scatter");
}

/* Over one rank each kind is the sum of one summand. */
static starlin_status_t mpi_start(starlin__comm_t *base, starlin__collective_t *collective)
{
    comm_mpi_t *comm = (comm_mpi_t *)base;
    MPI_Request *request = (MPI_Request *)&collective->opaque;
    uint64_t count = starlin__collective_elements(collective);
    bool equal = false;

    if (count > INT_MAX)
        return starlin__error(STARLIN_ERR_INVALID, "a collective of %llu elements: MPI counts at most %d",
                              (unsigned long long)count, INT_MAX);
    if (collective->kind == STARLIN__ALLREDUCE || base->nranks == 1) {
        const void *send = collective->send == collective->recv ? MPI_IN_PLACE : collective->send;
        STARLIN__FORWARD(starlin__mpi_status(MPI_Iallreduce(send, collective->recv, (int)count,
                                                            comm->type[collective->dtype],
                                                            comm->op[collective->dtype], comm->comm, request),
                                             "MPI_Iallreduce"));
    } else {
        STARLIN__FORWARD(count_runs(comm, collective, &equal));
        STARLIN__FORWARD(collective->kind == STARLIN__ALLGATHER
                             ? start_gather(comm, collective, equal, request)
                             : start_scatter(comm, collective, equal, request));
    }
    collective->inflight = true;
    comm->inflight++;
    return STARLIN_SUCCESS;
}

static starlin_status_t mpi_test(starlin__comm_t *base, starlin__collective_t *collective, bool *done_p)
{
    comm_mpi_t *comm = (comm_mpi_t *)base;
    int done = 0;

    STARLIN__FORWARD(starlin__mpi_status(
        MPI_Test((MPI_Request *)&collective->opaque, &done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (done) {
        collective->inflight = false;
        comm->inflight--;
    }
    *done_p = done != 0;
    return STARLIN_SUCCESS;
}

/* MPI cannot cancel a collective: a peer that comes late completes it, in our buffer. */
static void mpi_abort(starlin__comm_t *base)
{
    base->given_up = ((comm_mpi_t *)base)->inflight > 0;
}

const starlin__comm_ops_t starlin__comm_mpi_ops = {
    .name = "mpi",
    .usable = mpi_usable,
    .create = mpi_create,
    .destroy = mpi_destroy,
    .start = mpi_start,
    .test = mpi_test,
    .abort = mpi_abort,
};
