/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator: collectives over the ranks, started in the same order on each. Backends are const tables in
 * a const registry. */
#ifndef STARLIN_COMM_H
#define STARLIN_COMM_H

#include "ranks/bootstrap.h"
#include "base/config.h"
#include "machine/device.h"

typedef struct starlin__comm starlin__comm_t;

typedef enum starlin__collective_kind {
    STARLIN__ALLREDUCE,
    STARLIN__ALLGATHER,
    STARLIN__REDUCE_SCATTER,
    STARLIN__NCOLLECTIVES
} starlin__collective_kind_t;

/* Does it move the ranks' runs, rather than the same rows everywhere? */
static inline bool starlin__collective_moves_runs(starlin__collective_kind_t kind)
{
    return kind != STARLIN__ALLREDUCE;
}

/* "allreduce", "allgather", "reduce_scatter" */
const char *starlin__collective_name(starlin__collective_kind_t kind);

/* One collective in flight. Owned by the caller, reused without allocation; zeroed at first. */
typedef struct starlin__collective {
    starlin__collective_kind_t kind;
    /* Contiguous, in the communicator's space. The same pointer: in place, which is allowed for an allreduce,
     * and for the others where the bootstrap has one rank. */
    const void *send;
    void *recv;
    /* Rows of each rank's run. ALLGATHER: `send` has rows[rank] rows, `recv` the runs of all ranks, one after
     * the other; REDUCE_SCATTER: `send` has the runs of all ranks, `recv` rows[rank] rows. Runs may be empty
     * and may differ. Lives at least until the collective has ended. NULL for an ALLREDUCE. */
    const int64_t *rows;
    int64_t count; /* rows in all */
    int64_t cols;  /* elements of a row */
    starlin_dtype_t dtype;
    /* Device communicators: `start` makes the communication stream wait for `after` (may be NULL) and records
     * `done` behind the collective. */
    starlin__event_t *after;
    starlin__event_t *done;
    /* The backend's: MPI's counts and places of runs, made on first use and kept. */
    int *counts;
    size_t ncounts;
    bool inflight; /* the counts may still be read */
    union {
        uint64_t words[8];
        double numbers[8];
        void *pointers[8];
    } opaque;
} starlin__collective_t;

/* Frees what the backend has made for it; keeps it where the collective was given up in flight. */
void starlin__collective_release(starlin__collective_t *collective);

/* Elements of the full matrix part, and its bytes. */
static inline uint64_t starlin__collective_elements(const starlin__collective_t *collective)
{
    return (uint64_t)collective->count * (uint64_t)collective->cols;
}

static inline size_t starlin__collective_nbytes(const starlin__collective_t *collective)
{
    return starlin__collective_elements(collective) * starlin_dtype_nbytes(collective->dtype);
}

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
    /* Starts the collective; never blocks. Called in submission order, by one thread at a time. */
    starlin_status_t (*start)(starlin__comm_t *comm, starlin__collective_t *collective);
    /* Host: is it complete? Device: are the stream's errors clean and `done` passed? Same thread. */
    starlin_status_t (*test)(starlin__comm_t *comm, starlin__collective_t *collective, bool *done_p);
    /* Zeroed memory that buffer_register can use. Both NULL: any memory of the space will do. */
    starlin_status_t (*buffer_alloc)(starlin__comm_t *comm, size_t nbytes, void **buffer_p);
    void (*buffer_free)(starlin__comm_t *comm, void *buffer);
    /* Makes or forgets a buffer for faster collectives; a registration of NULL is a polite refusal.
     * Registering is collective and comes while no collective is in flight. May be NULL. */
    starlin_status_t (*buffer_register)(starlin__comm_t *comm, void *buffer, size_t nbytes,
                                        void **registration_p);
    void (*buffer_deregister)(starlin__comm_t *comm, void *registration);
    /* Exact cost of one collective on a matrix part of nbytes in all. May be NULL: it has to be measured. */
    double (*predict_us)(const starlin__comm_t *comm, starlin__collective_kind_t kind, double nbytes);
    /* Time (starlin__now_us() clock) before which a test is in vain. May be NULL: poll. */
    double (*wake_us)(const starlin__comm_t *comm, const starlin__collective_t *collective);
    /* Has the communicator failed in the meantime? Any thread. May be NULL. */
    starlin_status_t (*check)(starlin__comm_t *comm);
    /* Gives up on the collectives in flight so that nobody hangs. May be NULL. */
    void (*abort)(starlin__comm_t *comm);
} starlin__comm_ops_t;

struct starlin__comm {
    const starlin__comm_ops_t *ops;
    starlin__space_t space;    /* where buffers must lie */
    starlin__device_t *device; /* NULL for host buffers */
    int nranks;                /* ranks that take part, virtual ones included */
    unsigned ctas;             /* thread blocks of its collectives; 0: not known */
    int64_t most_elements;     /* of one collective; 0: as many as there is memory for */
    char version[64];          /* of the library behind it; "" where there is none */
    /* Host: collectives that never ended may write to their buffers until the process ends. */
    bool given_up;
};

extern const starlin__comm_ops_t starlin__comm_self_ops, starlin__comm_mpi_ops, starlin__comm_nccl_ops,
    starlin__comm_model_ops;

/* The modelled link's device half: launches a kernel of `ctas` thread blocks that reads and writes the bytes
 * of `recv` within time_us, on the communication stream, between `after` and `done`. NULL in builds without a
 * device. */
typedef starlin_status_t starlin__model_launch_fn_t(starlin__device_t *device,
                                                    const starlin__collective_t *collective, unsigned ctas,
                                                    double time_us);
extern starlin__model_launch_fn_t *const starlin__model_launch;
/* The kernel alone; returns a cudaError_t. */
struct CUstream_st;
typedef int starlin__paced_copy_fn_t(void *buffer, size_t nbytes, unsigned ctas, double time_us,
                                     struct CUstream_st *stream);
extern starlin__paced_copy_fn_t *const starlin__paced_copy;

/* NULL-terminated, in order of preference; the reference backend `self` is last. */
extern const starlin__comm_ops_t *const starlin__comm_registry[];

/* For backends: a zeroed communicator of nbytes with its base filled; ERR_INVALID
 * for a collective that is not in place. */
starlin_status_t starlin__comm_alloc(const starlin__comm_ops_t *ops, const starlin__comm_setup_t *setup,
                                     size_t nbytes, starlin__comm_t **comm_p);
starlin_status_t starlin__collective_check_in_place(const starlin__comm_t *comm,
                                                    const starlin__collective_t *collective);

/* Is this request ("auto", "mpi", "model:gbps=1", ...) one that the build can try to follow? Local, before
 * anything starts. */
starlin_status_t starlin__comm_check(const char *request);

/* Opens the communicator that setup->config->comm asks for ("auto": the first usable one). ERR_UNSUPPORTED
 * for a name that is not built lists those that are. */
starlin_status_t starlin__comm_create(starlin__comm_setup_t *setup, starlin__comm_t **comm_p);
void starlin__comm_destroy(starlin__comm_t *comm); /* NULL does nothing */

/* starlin__free() for memory that collectives may have written to: kept where one was given up. */
void starlin__comm_host_free(const starlin__comm_t *comm, void *memory);

#endif
