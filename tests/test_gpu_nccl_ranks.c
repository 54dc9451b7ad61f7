/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL over several ranks, each on a GPU of its own where there are enough, else on a shared one: the refusal
 * that names the switch, then each collective, dtype and shape of runs, several in flight, exact. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>

#include "gpu.h"

#include "gpu_nccl.h"
#include "watchdog.h"

static starlin__bootstrap_t *bootstrap;

static void check_kind(starlin__comm_t *comm, starlin__collective_kind_t kind, starlin_dtype_t dtype,
                       const int64_t *rows)
{
    enum { INFLIGHT = 3 };
    gpu_transfer_t transfers[INFLIGHT];
    memset(transfers, 0, sizeof(transfers));
    for (int i = 0; i < INFLIGHT; i++) { /* every other one is registered, and one in place where it may be */
        transfers[i].host.collective.kind = kind;
        transfers[i].host.collective.dtype = dtype;
        gpu_transfer_open(&transfers[i], comm, bootstrap->rank, bootstrap->nranks, rows, 1 + 40 * i,
                          kind == STARLIN__ALLREDUCE && i > 0, i % 2 == 1);
    }
    for (int i = 0; i < INFLIGHT; i++)
        CHECK_STATUS(comm->ops->start(comm, &transfers[i].host.collective), STARLIN_SUCCESS);
    for (int i = 0; i < INFLIGHT; i++) {
        collective_wait(comm, &transfers[i].host.collective);
        gpu_transfer_close(&transfers[i], comm, bootstrap->rank);
    }
}

static void check_all(starlin__comm_t *comm)
{
    for (int kind = 0; kind < STARLIN__NCOLLECTIVES; kind++) {
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
            for (int shape = 0; shape < COLLECTIVE_NSHAPES; shape++) {
                step_begin(starlin__collective_name((starlin__collective_kind_t)kind), shape);
                check_kind(comm, (starlin__collective_kind_t)kind, (starlin_dtype_t)dtype,
                           collective_shapes[shape]);
            }
        }
    }
}

/* What was set for NCCL is put back. */
static void check_environment(void)
{
    static const char *const names[] = {"NCCL_MULTI_RANK_GPU_ENABLE", "NCCL_HOSTID", "NCCL_SOCKET_IFNAME"};
    for (int i = 0; i < 3; i++)
        CHECK(getenv(names[i]) == NULL);
}

/* One rank that cannot go on makes all of them fail, soon. */
static void check_missing_device(const starlin__comm_ops_t *ops, starlin__comm_setup_t setup)
{
    starlin__comm_t *comm = NULL;
    if (bootstrap->rank == 0)
        setup.device = NULL;
    CHECK_STATUS(ops->create(&setup, &comm),
                 bootstrap->rank == 0 ? STARLIN_ERR_UNSUPPORTED : STARLIN_ERR_MISMATCH);
    CHECK_CONTAINS(starlin_last_error(), "computes on the host");
}

static void run(starlin__device_t *device, const starlin__comm_ops_t *ops, bool is_shared)
{
    starlin__config_t config;
    starlin__comm_t *comm = NULL;
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    config.timeout_ms = 60000;
    config.share_gpu = false;
    starlin__comm_setup_t setup = {
        .config = &config, .bootstrap = bootstrap, .device = device, .parameters = ""};
    check_missing_device(ops, setup);
    if (is_shared) {
        CHECK_STATUS(ops->create(&setup, &comm), STARLIN_ERR_NO_DEVICE);
        CHECK_CONTAINS(starlin_last_error(), "STARLIN_SHARE_GPU=1");
        config.share_gpu = true;
    }
    CHECK_STATUS(ops->create(&setup, &comm), STARLIN_SUCCESS);
    if (comm == NULL)
        return;
    CHECK_EQ_INT(comm->nranks, bootstrap->nranks);
    if (is_shared)
        check_environment();
    check_all(comm);
    ops->destroy(comm);
    config.max_ctas = 4;
    comm = NULL;
    CHECK_STATUS(ops->create(&setup, &comm), STARLIN_SUCCESS);
    if (comm == NULL)
        return;
    check_kind(comm, STARLIN__ALLREDUCE, STARLIN_F32, collective_shapes[COLLECTIVE_NSHAPES - 1]);
    ops->destroy(comm);
}

int main(int argc, char **argv)
{
    int provided = 0, failures;
    step_limit(280);
    unsetenv("NCCL_HOSTID");
    unsetenv("NCCL_SOCKET_IFNAME");
    unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    unsigned count = starlin__device_cuda != NULL ? starlin__device_cuda->count() : 0;
    const starlin__comm_ops_t *ops = find_nccl();
    if (count == 0 || ops == NULL) {
        if (count == 0)
            printf("skipped: no CUDA device is visible\n");
        MPI_Finalize();
        return 77;
    }
    CHECK_STATUS(starlin__bootstrap_mpi_create(MPI_Comm_c2f(MPI_COMM_WORLD), 60000, &bootstrap),
                 STARLIN_SUCCESS);
    CHECK_STATUS(starlin__bootstrap_locate(bootstrap, 60000), STARLIN_SUCCESS);
    starlin__device_t *device = NULL;
    unsigned index = (unsigned)bootstrap->local_rank % count;
    CHECK_STATUS(starlin__device_cuda->create(index, &device), STARLIN_SUCCESS);
    if (device != NULL) {
        run(device, ops, (unsigned)bootstrap->local_size > count);
        device->ops->destroy(device);
    }
    bootstrap->ops->destroy(bootstrap);
    failures = CHECK_RESULT();
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures;
}
