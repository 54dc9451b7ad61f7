/* SPDX-License-Identifier: BSD-3-Clause */
/* A device: its memory, its two streams and its events. The host computes without one (NULL).
 *
 * Operators keep stream order: every gemm is launched on the compute stream, every collective on the
 * communication stream, and events carry the edges between the two, so no edge inside a device waits for
 * the host. One implementation, device_cuda*.c, the only file besides *_cublas.c, *_nccl.c and *.cu that
 * includes CUDA's headers. */
#ifndef STARLIN_DEVICE_H
#define STARLIN_DEVICE_H

#include "base/base.h"

typedef struct starlin__device starlin__device_t;
typedef struct starlin__event starlin__event_t; /* reusable; records overwrite */

typedef enum starlin__stream { STARLIN__STREAM_COMPUTE, STARLIN__STREAM_COMM } starlin__stream_t;

typedef struct starlin__device_ops {
    const char *name; /* "cuda" */
    /* GPUs this process could use and the PCI bus id of each; 0 without a driver. Makes no CUDA context. */
    unsigned (*count)(void);
    starlin_status_t (*busid)(unsigned index, char *busid, size_t size);
    /* Streams and events on device `index`, made current for the call only: the caller's current device is
     * restored. After starpu_init. */
    starlin_status_t (*create)(unsigned index, starlin__device_t **device_p);
    void (*destroy)(starlin__device_t *device);
    /* Makes the device current on a thread of the library; workers of StarPU have it already. */
    starlin_status_t (*attach_thread)(starlin__device_t *device);

    /* The calling thread's CUDA context (NULL: none), set aside while StarPU, which changes it, is called,
     * and put back. Meanwhile the device is current (NULL: none). */
    void *(*caller_take)(const starlin__device_t *device);
    void (*caller_give_back)(void *caller);

    starlin_status_t (*alloc)(starlin__device_t *device, size_t nbytes, void **memory_p); /* zeroed */
    void (*free)(starlin__device_t *device, void *memory);
    starlin_status_t (*free_nbytes)(starlin__device_t *device, size_t *nbytes_p);
    /* Blocking 2D copies, host <-> device; pitches in bytes. */
    starlin_status_t (*copy)(starlin__device_t *device, void *dst, size_t dst_pitch, const void *src,
                             size_t src_pitch, size_t width_nbytes, size_t rows);

    starlin_status_t (*event_create)(starlin__device_t *device,
                                     starlin__event_t **event_p); /* unrecorded: passed */
    void (*event_destroy)(starlin__device_t *device, starlin__event_t *event);
    starlin_status_t (*event_record)(starlin__device_t *device, starlin__event_t *event,
                                     starlin__stream_t stream);
    /* The stream's later work waits for the event's last record. No host wait. */
    starlin_status_t (*event_wait)(starlin__device_t *device, starlin__event_t *event,
                                   starlin__stream_t stream);
    /* The compute stream's later work starts a little after the event, which was recorded there, has passed:
     * by the time that another stream's work behind the same event needs to get in first. */
    starlin_status_t (*give_way)(starlin__device_t *device, starlin__event_t *event);
    starlin_status_t (*event_query)(starlin__device_t *device, starlin__event_t *event, bool *passed_p);
    /* A stream of the caller's (a cudaStream_t): our streams' later work waits for all that is in it so far;
     * its later work waits for the event's last record. No host wait. */
    starlin_status_t (*join)(starlin__device_t *device, void *foreign);
    starlin_status_t (*event_wait_foreign)(starlin__device_t *device, starlin__event_t *event, void *foreign);
    starlin_status_t (*idle)(starlin__device_t *device, bool *idle_p); /* both streams */
    starlin_status_t (*synchronize)(starlin__device_t *device);        /* until idle, host wait (spins) */
} starlin__device_ops_t;

struct starlin__device {
    const starlin__device_ops_t *ops;
    unsigned index;
    char model[128];      /* "NVIDIA H200" */
    char versions[64];    /* of driver and runtime */
    unsigned nprocessors; /* streaming multiprocessors */
};

/* The built device table, or NULL in a build without CUDA. */
extern const starlin__device_ops_t *const starlin__device_cuda;

#endif
