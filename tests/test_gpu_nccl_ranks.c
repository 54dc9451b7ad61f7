/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL over several ranks, each on a GPU of its own where there are enough, else on a shared one: the refusal
 * that names the switch, then exact sums. */
#include <mpi.h>

#include "comm/comm.h"
#include "compute/compute.h"
#include "gpu.h"
#include "row_linear.h"

static starlin__bootstrap_t *bootstrap;

static const starlin__comm_ops_t *find_nccl(void)
{
    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        if (strcmp(starlin__comm_registry[i]->name, "nccl") == 0)
            return starlin__comm_registry[i];
    }
    return NULL;
}

static void wait_for(starlin__comm_t *comm, starlin__allreduce_t *request)
{
    bool done = false;
    while (!done) {
        starlin_status_t status = comm->ops->allreduce_test(comm, request, &done);
        CHECK_STATUS(status, STARLIN_SUCCESS);
        if (status != STARLIN_SUCCESS)
            return;
    }
}

/* Rank r contributes (i + r) % 8: the sums of up to 8 ranks are exact in every dtype. */
static void check_sum(starlin__comm_t *comm, starlin_dtype_t dtype, size_t count, bool is_registered)
{
    starlin__device_t *device = comm->device;
    size_t nbytes = count * starlin_dtype_nbytes(dtype);
    void *mine = calloc(nbytes + 1, 1), *expected = calloc(nbytes + 1, 1), *registration = NULL;
    starlin__allreduce_t request = {.count = count, .dtype = dtype};
    for (size_t i = 0; i < count; i++) {
        int sum = 0;
        for (int rank = 0; rank < bootstrap->nranks; rank++)
            sum += (int)((i + (size_t)rank) % 8);
        element_store(dtype, mine, i, (int)((i + (size_t)bootstrap->rank) % 8));
        element_store(dtype, expected, i, sum);
    }
    CHECK_STATUS(comm->ops->buffer_alloc(comm, nbytes, &request.buffer), STARLIN_SUCCESS);
    if (is_registered)
        CHECK_STATUS(comm->ops->buffer_register(comm, request.buffer, nbytes, &registration),
                     STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_create(device, &request.done), STARLIN_SUCCESS);
    for (int i = 0; i < 3; i++) {
        gpu_upload(device, request.buffer, mine, nbytes);
        CHECK_STATUS(comm->ops->allreduce_start(comm, &request), STARLIN_SUCCESS);
        wait_for(comm, &request);
        void *actual = calloc(nbytes + 1, 1);
        gpu_download(device, actual, request.buffer, nbytes);
        check_count++;
        if (memcmp(actual, expected, nbytes) != 0)
            CHECK_FAIL("rank %d: %zu x %s: the sum is wrong", bootstrap->rank, count,
                       starlin_dtype_name(dtype));
        free(actual);
    }
    if (bootstrap->rank == 0)
        printf("%s x %zu: registered %s\n", starlin_dtype_name(dtype), count,
               registration != NULL ? "yes" : "no");
    device->ops->event_destroy(device, request.done);
    comm->ops->buffer_deregister(comm, registration);
    comm->ops->buffer_free(comm, request.buffer);
    free(mine);
    free(expected);
}

/* One rank that cannot go on makes all of them fail, soon. */
static void check_missing_device(const starlin__comm_ops_t *ops, starlin__comm_setup_t setup)
{
    starlin__comm_t *comm = NULL;
    if (bootstrap->rank == 0)
        setup.device = NULL;
    CHECK_STATUS(ops->create(&setup, &comm), STARLIN_ERR_UNSUPPORTED);
    CHECK_CONTAINS(starlin_last_error(), bootstrap->rank == 0 ? "host" : "rank 0");
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
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        check_sum(comm, (starlin_dtype_t)dtype, 0, false);
        check_sum(comm, (starlin_dtype_t)dtype, 1, true);
        check_sum(comm, (starlin_dtype_t)dtype, 1000, false);
        check_sum(comm, (starlin_dtype_t)dtype, 300007, true);
    }
    ops->destroy(comm);
}

int main(int argc, char **argv)
{
    int provided = 0, failures;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    unsigned count = starlin__device_cuda != NULL ? starlin__device_cuda->count() : 0;
    const starlin__comm_ops_t *ops = find_nccl();
    if (count == 0 || ops == NULL) {
        printf("skipped: %s\n", ops == NULL ? "this build has no NCCL" : "no CUDA device is visible");
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
