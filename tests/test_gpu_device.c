/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, copies, events and the caller's context on a CUDA device. */
#include "gpu.h"

static void test_identity(starlin__device_t *device)
{
    char busid[32] = "";
    starlin__device_t *none = NULL;
    unsigned count = starlin__device_cuda->count();
    CHECK_STATUS(starlin__device_cuda->busid(0, busid, sizeof(busid)), STARLIN_SUCCESS);
    CHECK_CONTAINS(busid, ":");
    CHECK(strlen(device->model) > 0);
    CHECK_EQ_INT(device->index, 0);
    CHECK_STATUS(starlin__device_cuda->create(count, &none), STARLIN_ERR_NO_DEVICE);
    CHECK(none == NULL);
    printf("device 0: %s at %s\n", device->model, busid);
}

static void test_memory(starlin__device_t *device)
{
    enum { ROWS = 5, WIDTH = 12, PITCH = 20 };
    unsigned char in[ROWS * PITCH], out[ROWS * PITCH];
    void *memory = NULL, *empty = NULL;
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (unsigned char)(i + 1);
    CHECK_STATUS(device->ops->alloc(device, sizeof(in), &memory), STARLIN_SUCCESS);
    memset(out, 0xff, sizeof(out));
    gpu_download(device, out, memory, sizeof(out));
    for (size_t i = 0; i < sizeof(out); i++)
        CHECK_EQ_INT(out[i], 0);
    /* rows of 12 bytes, 20 apart here and 12 apart there */
    CHECK_STATUS(device->ops->copy(device, memory, WIDTH, in, PITCH, WIDTH, ROWS), STARLIN_SUCCESS);
    gpu_download(device, out, memory, sizeof(out));
    for (size_t row = 0; row < ROWS; row++)
        CHECK(memcmp(out + row * WIDTH, in + row * PITCH, WIDTH) == 0);
    memset(out, 0, sizeof(out));
    CHECK_STATUS(device->ops->copy(device, out, PITCH, memory, WIDTH, WIDTH, ROWS), STARLIN_SUCCESS);
    for (size_t row = 0; row < ROWS; row++) {
        CHECK(memcmp(out + row * PITCH, in + row * PITCH, WIDTH) == 0);
        CHECK_EQ_INT(out[row * PITCH + WIDTH], 0);
    }
    CHECK_STATUS(device->ops->copy(device, memory, 0, in, 0, 0, ROWS), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->alloc(device, 0, &empty), STARLIN_SUCCESS);
    CHECK(empty != NULL);
    device->ops->free(device, empty);
    device->ops->free(device, memory);
    device->ops->free(device, NULL);
    memory = NULL;
    CHECK_STATUS(device->ops->alloc(device, (size_t)1 << 50, &memory), STARLIN_ERR_NO_MEMORY);
    CHECK(memory == NULL);
}

static void test_events(starlin__device_t *device)
{
    starlin__event_t *event = NULL;
    bool passed = false;
    CHECK_STATUS(device->ops->event_create(device, &event), STARLIN_SUCCESS);
    CHECK_STATUS(device->ops->event_query(device, event, &passed), STARLIN_SUCCESS);
    CHECK(passed);
    /* recorded again and again, as in the steady state */
    for (int i = 0; i < 100; i++) {
        CHECK_STATUS(device->ops->event_record(device, event, STARLIN__STREAM_COMPUTE), STARLIN_SUCCESS);
        CHECK_STATUS(device->ops->event_wait(device, event, STARLIN__STREAM_COMM), STARLIN_SUCCESS);
        CHECK_STATUS(device->ops->event_record(device, event, STARLIN__STREAM_COMM), STARLIN_SUCCESS);
    }
    CHECK_STATUS(device->ops->synchronize(device), STARLIN_SUCCESS);
    passed = false;
    CHECK_STATUS(device->ops->event_query(device, event, &passed), STARLIN_SUCCESS);
    CHECK(passed);
    device->ops->event_destroy(device, event);
    device->ops->event_destroy(device, NULL);
}

int main(void)
{
    starlin__device_t *device = gpu_open();
    test_identity(device);
    test_memory(device);
    test_events(device);
    CHECK_STATUS(device->ops->attach_thread(device), STARLIN_SUCCESS);
    device->ops->destroy(device);
    starlin__device_cuda->destroy(NULL);
    return CHECK_RESULT();
}
