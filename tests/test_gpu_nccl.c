/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL over one rank: create, register, sum with several numbers of CTAs, close. Sums over more ranks are
 * tested elsewhere. */
#define _POSIX_C_SOURCE 200809L
#include "comm/comm.h"
#include "gpu.h"

static const starlin__comm_ops_t *find_nccl(void)
{
    for (size_t i = 0; starlin__comm_registry[i] != NULL; i++) {
        if (strcmp(starlin__comm_registry[i]->name, "nccl") == 0)
            return starlin__comm_registry[i];
    }
    printf("skipped: this build has no NCCL\n");
    exit(77);
}

/* With the communicator's own number of CTAs, then with four, one after the other. */
static void check_sum(starlin__comm_t *comm, starlin_dtype_t dtype, size_t count)
{
    starlin__device_t *device = comm->device;
    size_t nbytes = count * starlin_dtype_nbytes(dtype);
    unsigned char *before = calloc(nbytes + 1, 1), *after = calloc(nbytes + 1, 1);
    starlin__allreduce_t request = {.count = count, .dtype = dtype};
    void *registration = NULL, *buffer = NULL;
    for (size_t i = 0; i < nbytes; i++)
        before[i] = (unsigned char)(i % 60); /* no NaN in any dtype */
    CHECK_STATUS(comm->ops->buffer_alloc(comm, nbytes, &buffer), STARLIN_SUCCESS);
    CHECK_STATUS(comm->ops->buffer_register(comm, buffer, nbytes, &registration), STARLIN_SUCCESS);
    printf("%s x %zu: registered %s\n", starlin_dtype_name(dtype), count,
           registration != NULL ? "yes" : "no");
    gpu_upload(device, buffer, before, nbytes);
    request.buffer = buffer;
    CHECK_STATUS(device->ops->event_create(device, &request.after), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_create(device, &request.done), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_record(device, request.after, STARLIN__STREAM_COMPUTE), STARLIN_SUCCESS);
    for (int i = 0; i < 4; i++) {
        bool done = false;
        request.ctas = i % 2 ? 4 : 0;
        CHECK_STATUS(comm->ops->allreduce_start(comm, &request), STARLIN_SUCCESS);
        while (!done) {
            starlin_status_t status = comm->ops->allreduce_test(comm, &request, &done);
            CHECK_STATUS(status, STARLIN_SUCCESS);
            if (status != STARLIN_SUCCESS)
                break;
        }
    }
    gpu_download(device, after, buffer, nbytes);
    CHECK(memcmp(before, after, nbytes) == 0);
    device->ops->event_destroy(device, request.after);
    device->ops->event_destroy(device, request.done);
    comm->ops->buffer_deregister(comm, registration);
    comm->ops->buffer_free(comm, buffer);
    free(before);
    free(after);
}

/* What may be asked for, and what is refused. Prepared is what is in the choices, as often as one likes. */
static void check_choices(starlin__comm_t *comm)
{
    unsigned ctas[8] = {0};
    starlin__allreduce_t request = {.count = 1, .dtype = STARLIN_F32, .ctas = 4};
    CHECK_EQ_INT(comm->ops->ctas_choices(comm, ctas, 8), 1); /* below the limit of 8 */
    CHECK_EQ_INT(ctas[0], 4);
    CHECK_EQ_INT(comm->ops->ctas_choices(comm, ctas, 0), 0);
    CHECK_STATUS(comm->device->ops->event_create(comm->device, &request.done), STARLIN_SUCCESS);
    CHECK_STATUS(comm->device->ops->alloc(comm->device, sizeof(float), &request.buffer), STARLIN_SUCCESS);
    CHECK_STATUS(comm->ops->allreduce_start(comm, &request), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "4 CTAs were not prepared");
    for (unsigned wrong = 5; wrong <= 16; wrong += wrong == 5 ? 3 : 8) {
        CHECK_STATUS(comm->ops->ctas_prepare(comm, wrong), STARLIN_ERR_INVALID);
        CHECK_CONTAINS(starlin_last_error(), "CTAs are not one of its choices");
    }
    CHECK_STATUS(comm->ops->ctas_prepare(comm, 0), STARLIN_SUCCESS);
    CHECK_STATUS(comm->ops->ctas_prepare(comm, 4), STARLIN_SUCCESS);
    CHECK_STATUS(comm->ops->ctas_prepare(comm, 4), STARLIN_SUCCESS);
    request.ctas = 5;
    CHECK_STATUS(comm->ops->allreduce_start(comm, &request), STARLIN_ERR_INVALID);
    comm->device->ops->free(comm->device, request.buffer);
    comm->device->ops->event_destroy(comm->device, request.done);
}

/* A buffer that was registered before four CTAs were prepared works with them, and is forgotten in order. */
static void check_registered_before(starlin__comm_t *comm)
{
    enum { COUNT = 4096 };
    float before[COUNT], after[COUNT];
    starlin__device_t *device = comm->device;
    starlin__allreduce_t request = {.count = COUNT, .dtype = STARLIN_F32};
    void *registration = NULL;
    bool done = false;
    for (int i = 0; i < COUNT; i++)
        before[i] = (float)(i % 97);
    CHECK_STATUS(comm->ops->buffer_alloc(comm, sizeof(before), &request.buffer), STARLIN_SUCCESS);
    CHECK_STATUS(comm->ops->buffer_register(comm, request.buffer, sizeof(before), &registration),
                 STARLIN_SUCCESS);
    check_choices(comm);
    gpu_upload(device, request.buffer, before, sizeof(before));
    CHECK_STATUS(device->ops->event_create(device, &request.done), STARLIN_SUCCESS);
    request.ctas = 4;
    CHECK_STATUS(comm->ops->allreduce_start(comm, &request), STARLIN_SUCCESS);
    while (!done && comm->ops->allreduce_test(comm, &request, &done) == STARLIN_SUCCESS)
        ;
    CHECK(done);
    gpu_download(device, after, request.buffer, sizeof(after));
    CHECK(memcmp(before, after, sizeof(after)) == 0);
    device->ops->event_destroy(device, request.done);
    comm->ops->buffer_deregister(comm, registration);
    comm->ops->buffer_free(comm, request.buffer);
}

/* After an abort everything fails with an error, and the end is quiet. */
static void check_abort(starlin__comm_t *comm)
{
    starlin__allreduce_t request = {.count = 1, .dtype = STARLIN_F32};
    bool done = false;
    CHECK_STATUS(comm->device->ops->event_create(comm->device, &request.done), STARLIN_SUCCESS);
    CHECK_STATUS(comm->device->ops->alloc(comm->device, sizeof(float), &request.buffer), STARLIN_SUCCESS);
    comm->ops->abort(comm);
    comm->ops->abort(comm);
    for (request.ctas = 0; request.ctas <= 4; request.ctas += 4) {
        CHECK_STATUS(comm->ops->allreduce_start(comm, &request), STARLIN_ERR_COMM);
        CHECK_STATUS(comm->ops->allreduce_test(comm, &request, &done), STARLIN_ERR_COMM);
        CHECK_STATUS(comm->ops->check(comm), STARLIN_ERR_COMM);
        CHECK_CONTAINS(starlin_last_error(), "aborted");
        CHECK_STATUS(comm->ops->ctas_prepare(comm, request.ctas), STARLIN_ERR_COMM);
        CHECK_CONTAINS(starlin_last_error(), "aborted");
    }
    comm->device->ops->free(comm->device, request.buffer);
    comm->device->ops->event_destroy(comm->device, request.done);
}

int main(void)
{
    starlin__device_t *device = gpu_open();
    const starlin__comm_ops_t *ops = find_nccl();
    starlin__config_t config;
    starlin__bootstrap_t *bootstrap = NULL;
    starlin__comm_t *comm = NULL;
    char why[128] = "";
    unsetenv("NCCL_MAX_CTAS"); /* would leave no choice */
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__bootstrap_self_create(&bootstrap), STARLIN_SUCCESS);
    config.max_ctas = 8;
    config.timeout_ms = 60000;
    starlin__comm_setup_t setup = {.config = &config, .bootstrap = bootstrap, .parameters = ""};
    CHECK(!ops->usable(&setup, why, sizeof(why)));
    CHECK_CONTAINS(why, "host");
    CHECK_STATUS(ops->create(&setup, &comm), STARLIN_ERR_UNSUPPORTED);
    CHECK(comm == NULL);
    setup.device = device;
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(ops->create(&setup, &comm), STARLIN_SUCCESS);
        if (comm == NULL)
            return 1;
        CHECK_EQ_INT(comm->nranks, 1);
        check_registered_before(comm);
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
            check_sum(comm, (starlin_dtype_t)dtype, 0);
            check_sum(comm, (starlin_dtype_t)dtype, 1);
            check_sum(comm, (starlin_dtype_t)dtype, 100003);
        }
        if (round == 1)
            check_abort(comm);
        ops->destroy(comm);
        comm = NULL;
    }
    bootstrap->ops->destroy(bootstrap);
    device->ops->destroy(device);
    return CHECK_RESULT();
}
