/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled link's kernel: the data stays as it is, and the time is at least the link's.
 * usage: test_gpu_paced [small] */
#include "comm/comm_model.h"
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
static double run(starlin__device_t *device, void *buffer, size_t nbytes,
                  const starlin__model_config_t *config)
{
    starlin__allreduce_t request = {.buffer = buffer, .count = nbytes};
    bool passed = false;
    CHECK_STATUS(device->ops->event_create(device, &request.after), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_create(device, &request.done), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_record(device, request.after, STARLIN__STREAM_COMPUTE), STARLIN_SUCCESS);
    double begin_us = starlin__now_us();
    CHECK_STATUS(starlin__model_device->start(device, &request, nbytes, config), STARLIN_SUCCESS);
    while (!passed) {
        starlin_status_t status = device->ops->event_query(device, request.done, &passed);
        CHECK_STATUS(status, STARLIN_SUCCESS);
        if (status != STARLIN_SUCCESS)
            break;
    }
    double elapsed_us = starlin__now_us() - begin_us;
    device->ops->event_destroy(device, request.after);
    device->ops->event_destroy(device, request.done);
    return elapsed_us;
}

static void check_paced(starlin__device_t *device, size_t nbytes, size_t offset,
                        const starlin__model_config_t *config)
{
    size_t total = nbytes + offset + 64;
    unsigned char *before = pattern(total), *after = malloc(total);
    void *memory = NULL;
    double expected_us = starlin__model_config_time_us(config, (double)nbytes);
    CHECK_STATUS(device->ops->alloc(device, total, &memory), STARLIN_SUCCESS);
    gpu_upload(device, memory, before, total);
    double best_us = 0;
    for (int i = 0; i < 5; i++) {
        double elapsed_us = run(device, (unsigned char *)memory + offset, nbytes, config);
        /* the kernel's clock and the host's may tick a little differently */
        CHECK(elapsed_us >= 0.99 * expected_us);
        if (best_us == 0 || elapsed_us < best_us)
            best_us = elapsed_us;
    }
    gpu_download(device, after, memory, total);
    CHECK(memcmp(before, after, total) == 0);
    printf("%10zu bytes, %4u CTAs, %6.1f GB/s: %9.1f us, measured %9.1f (ratio %.3f)\n", nbytes, config->ctas,
           config->gbps, expected_us, best_us, expected_us > 0 ? best_us / expected_us : 0);
    device->ops->free(device, memory);
    free(before);
    free(after);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 4097, 65536, 1000003, (size_t)64 << 20};
    static const unsigned ctas[] = {1, 4, 8, 24};
    starlin__device_t *device = gpu_open();
    bool is_small = argc > 1 && strcmp(argv[1], "small") == 0; /* for tools that slow kernels down */
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - (is_small ? 2 : 0); i++) {
        for (size_t j = 0; j < sizeof(ctas) / sizeof(ctas[0]); j++) {
            starlin__model_config_t config = {.gbps = 223, .latency_us = 10, .ctas = ctas[j], .ranks = 2};
            check_paced(device, sizes[i], 0, &config);
            check_paced(device, sizes[i], 3, &config);
        }
    }
    device->ops->destroy(device);
    return CHECK_RESULT();
}
