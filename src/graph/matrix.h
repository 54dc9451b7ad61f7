/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix's inside: chunk handles over one piece of memory. */
#ifndef STARLIN_MATRIX_H
#define STARLIN_MATRIX_H

#include <starpu.h>

#include "graph/context.h"

/* Device only: the last work on a chunk in each stream. Every operator records those of `comm` in the order
 * of the chunks. */
typedef struct starlin__chunk_events {
    starlin__event_t *compute, *comm;
} starlin__chunk_events_t;

struct starlin_matrix {
    starlin_context_t *context;
    int64_t rows, cols, ld;
    starlin_dtype_t dtype;
    starlin__space_t space; /* where the memory lies: the handles' home */
    void *data;             /* NULL for a matrix made of handles */
    bool owns_data;
    bool comm_memory; /* data came from the communicator, which can register it */
    bool owns_handles;
    bool is_partial;    /* another matrix's `partial` */
    bool is_read;       /* an operator's input, of which no event tells when it has been read */
    bool exposed;       /* the application has the handles: tasks must end when their work is really over */
    unsigned ctas;      /* of collectives that sum it; 0: the communicator's own number */
    int64_t piece_rows; /* of gemms that compute its chunks; 0: each in one */
    size_t nchunks;
    int64_t *chunk_rows;
    starpu_data_handle_t *handles;
    starlin__chunk_events_t *events;   /* NULL on the host */
    void *registration;                /* the communicator's, or NULL */
    starlin_matrix_t *partial;         /* made on demand: where the ranks' partial sums travel, if not here */
    unsigned inflight;                 /* chunk operations that use it and have not ended; context's lock */
    uint64_t agreed_key, prepared_key; /* as an output: of the last operator whose shape was known; 0: none */
    uint64_t last_sequence;            /* of the last operator that uses it */
    starlin__trial_t *trial;           /* its chunking's; a reference, or NULL */
};

struct starlin_chunking {
    unsigned ctas;      /* thread blocks of each collective; 0: the communicator's own number */
    int64_t piece_rows; /* of the gemms; 0: each chunk's in one */
    size_t nchunks;
    char *fallback;                     /* NULL: the request was followed */
    struct starlin__planning *planning; /* NULL: the list was asked for */
    starlin__trial_t *trial;            /* a reference; NULL: nothing to be tried */
    int64_t rows[];
};

/* Copies the row counts. `fallback` may be NULL. */
starlin_status_t starlin__chunking_create(const int64_t *rows, size_t nchunks, const char *fallback,
                                          starlin_chunking_t **chunking_p);

/* "3072,3072,1536,512"; cut short with "..." where it does not fit. */
void starlin__rows_text(const int64_t *rows, size_t nchunks, char *text, size_t size);

/* A matrix in the library's memory with the chunks of another one. */
starlin_status_t starlin__matrix_create_like(const starlin_matrix_t *model, starlin_dtype_t dtype,
                                             starlin_matrix_t **matrix_p);

/* First element of a chunk, in the matrix's own memory. */
void *starlin__matrix_chunk_data(const starlin_matrix_t *matrix, size_t chunk);

/* Waits until the tasks of all operators that use the matrix have ended (on a device: are launched), and
 * returns the last such operator's sequence number. */
uint64_t starlin__matrix_wait_launched(starlin_matrix_t *matrix);

/* starlin_matrix_wrap() for memory in either space. */
starlin_status_t starlin__matrix_wrap(starlin_context_t *context, const starlin_chunking_t *chunking,
                                      void *data, const starlin_matrix_layout_t *layout,
                                      starlin__space_t space, starlin_matrix_t **matrix_p);

/* The library's memory, zeroed. Only a matrix that is cut into chunks can be summed over the ranks. */
starlin_status_t starlin__matrix_memory_create(starlin_matrix_t *matrix, bool is_chunked);
void starlin__matrix_memory_free(starlin_matrix_t *matrix); /* not the caller's */

/* Does one chunk of an operator's matrices x, w, y fit into the device, as far as they lie on the host?
 * StarPU tries an allocation again until it succeeds, so what never can must not begin. ERR_NO_MEMORY. */
starlin_status_t starlin__matrix_check_room(starlin_matrix_t *const matrices[3]);

/* Registers the memory with the communicator, if that is possible on every rank. Collective; waits until no
 * operator of this rank is in flight. */
starlin_status_t starlin__matrix_register(starlin_matrix_t *matrix);

/* First element of a codelet's buffer and its leading dimension in elements (0: contiguous), for StarPU's
 * matrix, vector and variable interfaces. */
void *starlin__buffer_data(void *interface, size_t *ld_p);

#endif
