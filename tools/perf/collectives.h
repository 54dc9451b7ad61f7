/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's collectives for the hand on a GPU (collectives_nccl.c), or none (collectives_none.c). All functions
 * are collective. */
#ifndef PERF_COLLECTIVES_H
#define PERF_COLLECTIVES_H

#include "hand.h"

struct CUstream_st;

typedef struct perf_collectives perf_collectives_t;

bool perf_collectives_open(int rank, int nranks, perf_collectives_t **collectives_p, perf_error_t *error);
void perf_collectives_close(perf_collectives_t *collectives); /* NULL does nothing */
/* Memory that is fast to communicate from; NULL: there is none. */
void *perf_collectives_alloc(perf_collectives_t *collectives, size_t nbytes);
void perf_collectives_free(perf_collectives_t *collectives, void *data);
bool perf_collectives_launch(perf_collectives_t *collectives, const perf_collective_t *collective,
                             struct CUstream_st *stream, perf_error_t *error);

#endif
