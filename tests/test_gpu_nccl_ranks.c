/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL over several ranks, each on a GPU of its own where there are enough, else on a shared one: the refusal
 * that names the switch, then exact sums, with several numbers of CTAs at once. */
#define _POSIX_C_SOURCE 200809L
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

/* Collectives with three numbers of CTAs, all under way before the first is waited for; every other buffer is
 * registered. */
static void check_mixed(starlin__comm_t *comm, size_t count)
{
    enum { MIXED = 9 };
    static const unsigned ctas[3] = {8, 0, 4};
    starlin__device_t *device = comm->device;
    size_t nbytes = count * sizeof(float);
    float *values = calloc(count + 1, sizeof(float));
    starlin__allreduce_t requests[MIXED] = {0};
    void *registrations[MIXED] = {NULL};
    int shift = bootstrap->nranks * (bootstrap->nranks - 1) / 2;
    for (int r = 0; r < MIXED; r++) {
        requests[r] = (starlin__allreduce_t){.count = count, .dtype = STARLIN_F32, .ctas = ctas[r % 3]};
        CHECK_STATUS(comm->ops->buffer_alloc(comm, nbytes, &requests[r].buffer), STARLIN_SUCCESS);
        if (r % 2)
            CHECK_STATUS(comm->ops->buffer_register(comm, requests[r].buffer, nbytes, &registrations[r]),
                         STARLIN_SUCCESS);
        CHECK_STATUS(device->ops->event_create(device, &requests[r].done), STARLIN_SUCCESS);
        for (size_t i = 0; i < count; i++)
            values[i] = (float)((int)(i % 1000) + r + bootstrap->rank);
        gpu_upload(device, requests[r].buffer, values, nbytes);
    }
    for (int r = 0; r < MIXED; r++)
        CHECK_STATUS(comm->ops->allreduce_start(comm, &requests[r]), STARLIN_SUCCESS);
    for (int r = 0; r < MIXED; r++) {
        size_t wrong = 0;
        wait_for(comm, &requests[r]);
        gpu_download(device, values, requests[r].buffer, nbytes);
        for (size_t i = 0; i < count; i++)
            wrong += (int)values[i] != bootstrap->nranks * ((int)(i % 1000) + r) + shift;
        check_count++;
        if (wrong > 0)
            CHECK_FAIL("rank %d: request %d of %u CTAs: %zu of %zu sums are wrong", bootstrap->rank, r,
                       requests[r].ctas, wrong, count);
        device->ops->event_destroy(device, requests[r].done);
        comm->ops->buffer_deregister(comm, registrations[r]);
        comm->ops->buffer_free(comm, requests[r].buffer);
    }
    free(values);
}

/* What one rank alone asks for is an error on all of them, before anything is opened, and harms nothing. */
static void check_disagreement(starlin__comm_t *comm)
{
    bool is_first = bootstrap->rank == 0;
    CHECK_STATUS(comm->ops->ctas_prepare(comm, is_first ? 4 : 8), STARLIN_ERR_MISMATCH);
    CHECK_CONTAINS(starlin_last_error(), "4 on rank 0 and 8 on rank 1");
    CHECK_STATUS(comm->ops->ctas_prepare(comm, is_first ? 5 : 4), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "rank 0: communicator nccl: 5 CTAs are not one of its choices");
    check_sum(comm, STARLIN_F32, 1000, false);
}

static void check_ctas(starlin__comm_t *comm)
{
    static const unsigned expected[] = {4, 8, 16, 32};
    unsigned ctas[8];
    CHECK_EQ_INT(comm->ops->ctas_choices(comm, ctas, 8), 4);
    CHECK(memcmp(ctas, expected, sizeof(expected)) == 0);
    check_disagreement(comm);
    for (int i = 0; i < 2; i++) { /* once or again */
        CHECK_STATUS(comm->ops->ctas_prepare(comm, 8), STARLIN_SUCCESS);
        CHECK_STATUS(comm->ops->ctas_prepare(comm, 4), STARLIN_SUCCESS);
        check_mixed(comm, 1);
        check_mixed(comm, 100003);
        check_disagreement(comm);
    }
}

/* The choices are the same on every rank: below the lowest limit, none where NCCL's variable rules. */
static void check_limits(const starlin__comm_ops_t *ops, const starlin__comm_setup_t *setup)
{
    starlin__config_t config = *setup->config;
    starlin__comm_setup_t limited = *setup;
    bool is_last = bootstrap->rank == bootstrap->nranks - 1;
    limited.config = &config;
    for (int by_variable = 0; by_variable < 2; by_variable++) {
        starlin__comm_t *comm = NULL;
        unsigned ctas[8];
        config.max_ctas = is_last && !by_variable ? 16 : 0;
        if (is_last && by_variable)
            setenv("NCCL_MAX_CTAS", "16", 1);
        CHECK_STATUS(ops->create(&limited, &comm), STARLIN_SUCCESS);
        unsetenv("NCCL_MAX_CTAS");
        if (comm == NULL)
            return;
        CHECK_EQ_INT(ops->ctas_choices(comm, ctas, 8), by_variable ? 0 : 2);
        CHECK_STATUS(ops->ctas_prepare(comm, 16), STARLIN_ERR_INVALID);
        check_sum(comm, STARLIN_F32, 1000, false);
        ops->destroy(comm);
    }
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
    check_ctas(comm);
    ops->destroy(comm);
    check_limits(ops, &setup);
}

int main(int argc, char **argv)
{
    int provided = 0, failures;
    unsetenv("NCCL_MAX_CTAS"); /* would leave no choice */
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
