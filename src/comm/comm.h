/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator: sums a buffer over the ranks, in place. Backends are const tables in a const registry. */
#ifndef STARLIN_COMM_H
#define STARLIN_COMM_H

#include "ranks/bootstrap.h"
#include "base/config.h"
#include "machine/device.h"

typedef struct starlin__comm starlin__comm_t;

/* One collective in flight. Owned by the caller, reused without allocation; `opaque` is the backend's. */
typedef struct starlin__allreduce {
    void *buffer; /* contiguous, in the communicator's space */
    size_t count; /* elements; 0 is allowed */
    starlin_dtype_t dtype;
    unsigned ctas; /* device: thread blocks, one of ctas_choices(); 0: the communicator's own number */
    /* device communicators: allreduce_start makes its stream wait for `after` and records `done` behind the
     * collective */
    starlin__event_t *after;
    starlin__event_t *done;
    union {
        uint64_t words[8];
        double numbers[8];
        void *pointers[8];
    } opaque;
} starlin__allreduce_t;

/* What comm_create has to work with; lives only during the call. */
typedef struct starlin__comm_setup {
    const starlin__config_t *config;
    starlin__bootstrap_t *bootstrap;
    starlin__device_t *device; /* NULL: host computation */
    const char *parameters;    /* behind the colon of "name:...", or "" */
} starlin__comm_setup_t;

typedef struct starlin__comm_ops {
    const char *name;
    /* Fit for `auto`? On false, `why` (of whysize bytes) says why not. Cheap, local. */
    bool (*usable)(const starlin__comm_setup_t *setup, char *why, size_t whysize);
    /* Collective over the bootstrap's ranks. */
    starlin_status_t (*create)(const starlin__comm_setup_t *setup, starlin__comm_t **comm_p);
    void (*destroy)(starlin__comm_t *comm);
    /* Starts the sum, in place; never blocks. Called in submission order, by one thread at a time. */
    starlin_status_t (*allreduce_start)(starlin__comm_t *comm, starlin__allreduce_t *request);
    /* Host: is it complete? Device: are the stream's errors clean and `done` passed? Same thread. */
    starlin_status_t (*allreduce_test)(starlin__comm_t *comm, starlin__allreduce_t *request, bool *done_p);
    /* Zeroed memory that buffer_register can use. Both NULL: any memory of the space will do. */
    starlin_status_t (*buffer_alloc)(starlin__comm_t *comm, size_t nbytes, void **buffer_p);
    void (*buffer_free)(starlin__comm_t *comm, void *buffer);
    /* Makes or forgets a buffer for faster collectives; a registration of NULL is a polite refusal.
     * Registering is collective and comes while no collective is in flight. May be NULL. */
    starlin_status_t (*buffer_register)(starlin__comm_t *comm, void *buffer, size_t nbytes,
                                        void **registration_p);
    void (*buffer_deregister)(starlin__comm_t *comm, void *registration);
    /* Numbers of thread blocks that requests may ask for besides the communicator's own, rising, at most
     * `most`; returns how many. May be NULL: none. */
    size_t (*ctas_choices)(const starlin__comm_t *comm, unsigned *ctas, size_t most);
    /* Before the first request with this number, once or again. Collective; blocks; comes while no collective
     * is in flight. May be NULL: nothing has to be done. */
    starlin_status_t (*ctas_prepare)(starlin__comm_t *comm, unsigned ctas);
    /* Exact cost of one collective of nbytes. May be NULL: it has to be measured. */
    double (*predict_us)(const starlin__comm_t *comm, double nbytes);
    /* Time (starlin__now_us() clock) before which a test is in vain. May be NULL: poll. */
    double (*wake_us)(const starlin__comm_t *comm, const starlin__allreduce_t *request);
    /* Has the communicator failed in the meantime? Any thread. May be NULL. */
    starlin_status_t (*check)(starlin__comm_t *comm);
    /* Gives up on the collectives in flight so that nobody hangs. May be NULL. */
    void (*abort)(starlin__comm_t *comm);
} starlin__comm_ops_t;

struct starlin__comm {
    const starlin__comm_ops_t *ops;
    starlin__space_t space;    /* where buffers must lie */
    starlin__device_t *device; /* NULL for host buffers */
    int nranks;                /* ranks that are summed over, virtual ones included */
    unsigned ctas;    /* thread blocks of its collectives unless a request names some; 0: not known */
    char version[64]; /* of the library behind it; "" where there is none */
    bool given_up;    /* host: collectives that never ended may write to their buffers until the
                         process ends */
    bool uses_core;   /* progress costs CPU time (the planner then expects no free overlap) */
};

extern const starlin__comm_ops_t starlin__comm_self_ops, starlin__comm_mpi_ops, starlin__comm_nccl_ops,
    starlin__comm_model_ops;

/* NULL-terminated, in order of preference; the reference backend `self` is last. */
extern const starlin__comm_ops_t *const starlin__comm_registry[];

/* Is this request ("auto", "mpi", "model:gbps=1", ...) one that the build can try to follow? Local, before
 * anything starts. */
starlin_status_t starlin__comm_check(const char *request);

/* Opens the communicator that setup->config->comm asks for ("auto": the first usable one). ERR_UNSUPPORTED
 * for a name that is not built lists those that are. */
starlin_status_t starlin__comm_create(starlin__comm_setup_t *setup, starlin__comm_t **comm_p);
/* Before the first request with this number of CTAs: nothing for 0, the communicator's own. Collective;
 * blocks; while no collective is in flight. An error is every rank's. */
starlin_status_t starlin__comm_prepare_ctas(starlin__comm_t *comm, unsigned ctas);
void starlin__comm_destroy(starlin__comm_t *comm); /* NULL does nothing */

/* starlin__free() for memory that collectives may have summed in: kept where one was given up. */
void starlin__comm_host_free(const starlin__comm_t *comm, void *memory);

#endif
