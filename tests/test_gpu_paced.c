/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link's kernel: the data stays as it is, and the time is at least the link's.
 * usage: test_gpu_paced [small] */
#include "comm/comm.h"
#include "gpu.h"

static unsigned char *pattern(size_t nbytes)
{
    unsigned char *data = malloc(nbytes);
    uint32_t state = 1;
    for (size_t i = 0; i < nbytes; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (unsigned char)(state >> 24);
    }
    return data;
}

/* Host time of one collective, in us. */
static double run(starlin__comm_t *comm, starlin__collective_kind_t kind, void *buffer, size_t nbytes)
{
    starlin__device_t *device = comm->device;
    starlin__collective_t collective = {.kind = kind,
                                        .send = buffer,
                                        .recv = buffer,
                                        .count = (int64_t)(nbytes / 2),
                                        .cols = 1,
                                        .dtype = STARLIN_BF16};
    bool done = false;
    CHECK_STATUS(device->ops->event_create(device, &collective.after), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_create(device, &collective.done), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_record(device, collective.after, STARLIN__STREAM_COMPUTE),
                 STARLIN_SUCCESS);
    double begin_us = starlin__now_us();
    CHECK_STATUS(comm->ops->start(comm, &collective), STARLIN_SUCCESS);
    while (!done) {
        starlin_status_t status = comm->ops->test(comm, &collective, &done);
        CHECK_STATUS(status, STARLIN_SUCCESS);
        if (status != STARLIN_SUCCESS)
            break;
    }
    double elapsed_us = starlin__now_us() - begin_us;
    device->ops->event_destroy(device, collective.after);
    device->ops->event_destroy(device, collective.done);
    return elapsed_us;
}

static void check_paced(starlin__comm_t *comm, starlin__collective_kind_t kind, size_t nbytes, size_t offset)
{
    starlin__device_t *device = comm->device;
    size_t total = nbytes + offset + 64;
    unsigned char *before = pattern(total), *after = malloc(total);
    void *memory = NULL;
    double expected_us = comm->ops->predict_us(comm, kind, (double)nbytes);
    CHECK_STATUS(device->ops->alloc(device, total, &memory), STARLIN_SUCCESS);
    gpu_upload(device, memory, before, total);
    double best_us = 0;
    for (int i = 0; i < 5; i++) {
        double elapsed_us = run(comm, kind, (unsigned char *)memory + offset, nbytes);
        /* the kernel's clock and the host's may tick a little differently */
        CHECK(elapsed_us >= 0.99 * expected_us);
        if (best_us == 0 || elapsed_us < best_us)
            best_us = elapsed_us;
    }
    gpu_download(device, after, memory, total);
    CHECK(memcmp(before, after, total) == 0);
    printf("%-14s %10zu bytes, %4u CTAs: %9.1f us, measured %9.1f (ratio %.3f)\n",
           starlin__collective_name(kind), nbytes, comm->ctas, expected_us, best_us,
           expected_us > 0 ? best_us / expected_us : 0);
    device->ops->free(device, memory);
    free(before);
    free(after);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 2, 14, 16, 18, 4098, 65536, 1000002, (size_t)64 << 20};
    static const unsigned ctas[] = {1, 4, 8, 24};
    starlin__device_t *device = gpu_open();
    bool is_small = argc > 1 && strcmp(argv[1], "small") == 0; /* for tools that slow kernels down */
    starlin__bootstrap_t *bootstrap = NULL;
    starlin__config_t config;
    starlin__comm_setup_t setup = {.config = &config, .device = device};
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__bootstrap_self_create(&bootstrap), STARLIN_SUCCESS);
    setup.bootstrap = bootstrap;
    for (size_t j = 0; j < sizeof(ctas) / sizeof(ctas[0]); j++) {
        starlin__comm_t *comm = NULL;
        snprintf(config.comm, sizeof(config.comm), "model:gbps=223,latency_us=10,ctas=%u", ctas[j]);
        CHECK_STATUS(starlin__comm_create(&setup, &comm), STARLIN_SUCCESS);
        for (size_t i = 0; comm != NULL && i < sizeof(sizes) / sizeof(sizes[0]) - (is_small ? 2 : 0); i++) {
            for (int kind = 0; kind < STARLIN__NCOLLECTIVES; kind++)
                check_paced(comm, (starlin__collective_kind_t)kind, sizes[i], kind == 0 ? 0 : 3);
        }
        starlin__comm_destroy(comm);
    }
    bootstrap->ops->destroy(bootstrap);
    device->ops->destroy(device);
    return CHECK_RESULT();
}
