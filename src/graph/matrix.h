/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix's inside: a handle per chunk over one area of memory. */
#ifndef STARLIN_MATRIX_H
#define STARLIN_MATRIX_H

#include <starpu.h>

#include "graph/context.h"
#include "graph/rows.h"

/* Device only: the last work on a chunk in each stream. */
typedef struct starlin__chunk_events {
    starlin__event_t *compute, *comm;
} starlin__chunk_events_t;

struct starlin_matrix {
    starlin_context_t *context;
    starlin__rows_t *rows; /* NULL: not cut */
    int64_t local_rows;    /* that this rank has */
    int64_t cols, ld;
    starlin_dtype_t dtype;
    starlin_placement_t placement;
    uint64_t id; /* never used again in a process */
    size_t nchunks;
    bool ordered;           /* rows lie in order, else chunk by chunk */
    starlin__space_t space; /* where the memory lies: the handles' home */
    void *data;             /* NULL for a matrix made of handles */
    bool owns_data, owns_handles, owns_events;
    bool comm_memory;       /* data came from the communicator, which can register it */
    bool is_scratch;        /* another matrix's */
    starlin_matrix_t *root; /* the matrix itself; of a view: what it shows */
    /* of the root: */
    bool is_sent;     /* collectives read or write it: other work waits for their events */
    bool is_received; /* collectives alone write it: reading it leaves an event, too */
    bool is_read;     /* an operator's input, of which no event tells when it has been read */
    bool exposed;     /* the application has the handles: tasks must end when their work is really over */
    starpu_data_handle_t *handles;
    starlin__chunk_events_t *events; /* NULL on the host */
    void *registration;              /* the communicator's, or NULL */
    unsigned inflight;               /* records that use it and have not ended; the context's lock */
    uint64_t last_sequence;          /* of the last operator that uses it */
    struct starlin__known *known;    /* as an output: the call that was set up last */
    starlin_matrix_t *scratch[3];    /* as an output: made on demand, for what its operators need */
    starlin_matrix_t *replaced;      /* scratch of before, to be destroyed with the matrix; a list */
};

/* Rows of a chunk that this rank has; 0 where its block has none. Of a matrix that is not cut: all. */
int64_t starlin__matrix_chunk_rows(const starlin_matrix_t *matrix, size_t chunk);

/* Does each chunk lie in one run of memory, where collectives can use it? */
bool starlin__matrix_is_contiguous(const starlin_matrix_t *matrix);

/* First element of a chunk in the matrix's own memory; NULL where that is StarPU's alone. Of a chunk in
 * several runs: of the first. */
void *starlin__matrix_chunk_data(const starlin_matrix_t *matrix, size_t chunk);

/* The chunk, or (nruns > 1) its run in block `run`. `base` and ld: where the chunk lies now. */
starlin__view_t starlin__matrix_run(const starlin_matrix_t *matrix, size_t chunk, unsigned run,
                                    unsigned nruns, void *base, int64_t ld);

/* A matrix without memory and handles, to plan with: starlin__matrix_free() it. */
starlin_status_t starlin__matrix_shape(starlin_context_t *context, starlin__rows_t *rows,
                                       const starlin_matrix_layout_t *layout, starlin_matrix_t **matrix_p);
void starlin__matrix_free(starlin_matrix_t *matrix);

/* starlin_matrix_create() and starlin_matrix_wrap() for a row list, in either space; data NULL: the
 * library's. */
starlin_status_t starlin__matrix_make(starlin_context_t *context, starlin__rows_t *rows, void *data,
                                      const starlin_matrix_layout_t *layout, starlin__space_t space,
                                      starlin_matrix_t **matrix_p);

/* Waits for the operators that use the matrix, those that were only launched too; returns the first error. */
starlin_status_t starlin__matrix_wait_operators(starlin_matrix_t *matrix);

/* Waits until the tasks of all operators that use the matrix have ended (on a device: are launched), and
 * returns the last such operator's sequence number. */
uint64_t starlin__matrix_wait_launched(starlin_matrix_t *matrix);

/* Does one chunk of these matrices fit into the device, as far as they lie on the host? StarPU tries an
 * allocation again until it succeeds, so what never can must not begin. Entries may be NULL. ERR_NO_MEMORY.
 */
starlin_status_t starlin__matrix_check_room(const starlin_context_t *context,
                                            starlin_matrix_t *const *matrices, size_t count);

/* Registers the memory with the communicator, if that is possible on every rank. Collective; waits until no
 * operator of this rank is in flight. */
starlin_status_t starlin__matrix_register(starlin_matrix_t *matrix);

/* First element of a codelet's buffer and its leading dimension in elements (0: contiguous), for StarPU's
 * matrix, block, vector and variable interfaces. NULL for an empty one. */
void *starlin__buffer_data(void *interface, int64_t *ld_p);

#endif
