/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking MPI collectives on a communicator of our own, in place on host memory. MPI has no
 * half-precision sums, so f16 and bf16 bring reduction operators: sum in f32, one rounding per step. */
#include "comm/comm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ranks/bootstrap_mpi.h"
#include "compute/compute.h"

typedef struct starlin__comm_mpi {
    starlin__comm_t base;
    MPI_Comm comm;
    MPI_Datatype type[4];
    MPI_Op op[4];
    unsigned inflight; /* nonzero at destruction: given up, the communicator cannot be freed */
} comm_mpi_t;

_Static_assert(sizeof(MPI_Request) <= sizeof(((starlin__allreduce_t *)0)->opaque), "room for a request");

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
    comm = starlin__alloc(sizeof *comm);
    if (comm == NULL) {
        MPI_Comm_free(&dup);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "communicator mpi");
    }
    comm->comm = dup;
    comm->type[STARLIN_F32] = MPI_FLOAT;
    comm->type[STARLIN_F64] = MPI_DOUBLE;
    comm->type[STARLIN_F16] = comm->type[STARLIN_BF16] = MPI_UINT16_T;
    comm->op[STARLIN_F32] = comm->op[STARLIN_F64] = MPI_SUM;
    comm->op[STARLIN_F16] = comm->op[STARLIN_BF16] = MPI_OP_NULL;
    comm->base.ops = &starlin__comm_mpi_ops;
    comm->base.space = STARLIN__HOST;
    comm->base.nranks = setup->bootstrap->nranks;
    if (MPI_Get_library_version(library, &length) == MPI_SUCCESS)
        snprintf(comm->base.version, sizeof comm->base.version, "%.*s", (int)strcspn(library, ",\n"),
                 library);
    comm->base.uses_core = true;
    status = starlin__mpi_status(MPI_Op_create(sum_f16, 1, &comm->op[STARLIN_F16]), "MPI_Op_create");
    if (status == STARLIN_SUCCESS)
        status = starlin__mpi_status(MPI_Op_create(sum_bf16, 1, &comm->op[STARLIN_BF16]), "MPI_Op_create");
    if (status != STARLIN_SUCCESS) {
        mpi_destroy(&comm->base);
        return status;
    }
    *comm_p = &comm->base;
    return STARLIN_SUCCESS;
}

static starlin_status_t mpi_start(starlin__comm_t *base, starlin__allreduce_t *request)
{
    comm_mpi_t *comm = (comm_mpi_t *)base;
    MPI_Request *handle = (MPI_Request *)&request->opaque;

    if (request->count > INT_MAX)
        return starlin__error(STARLIN_ERR_INVALID, "a collective of %zu elements: MPI counts at most %d",
                              request->count, INT_MAX);
    STARLIN__FORWARD(starlin__mpi_status(MPI_Iallreduce(MPI_IN_PLACE, request->buffer, (int)request->count,
                                                        comm->type[request->dtype], comm->op[request->dtype],
                                                        comm->comm, handle),
                                         "MPI_Iallreduce"));
    comm->inflight++;
    return STARLIN_SUCCESS;
}

static starlin_status_t mpi_test(starlin__comm_t *base, starlin__allreduce_t *request, bool *done_p)
{
    comm_mpi_t *comm = (comm_mpi_t *)base;
    int done = 0;

    STARLIN__FORWARD(
        starlin__mpi_status(MPI_Test((MPI_Request *)&request->opaque, &done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (done)
        comm->inflight--;
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
    .allreduce_start = mpi_start,
    .allreduce_test = mpi_test,
    .abort = mpi_abort,
};
