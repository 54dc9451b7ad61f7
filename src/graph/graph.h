/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of operators become tasks: checked, compared over the ranks and prepared once per combination, then
 * inserted stage by stage, chunk by chunk. */
#ifndef STARLIN_GRAPH_H
#define STARLIN_GRAPH_H

#include "graph/record.h"

/* Submits a call, whose scratch is still empty. What public operators do. */
starlin_status_t starlin__graph_submit(starlin__call_t *call);

/* Refuses a call of `kind` for what options say (`status`, with its text set): peers that compare the call
 * hear of it. Returns the status. */
starlin_status_t starlin__graph_refuse(const starlin__call_t *call, starlin_status_t status);

/* Inserts what an open group has put off, before a wait. */
void starlin__graph_flush(starlin_context_t *context);

/* Inserts the tasks of a call's next chunk. */
void starlin__graph_insert(const starlin__call_t *call, starlin__record_t *record);

/* Keeps a call that is ready to be inserted in the open group. */
void starlin__graph_put_off(const starlin__call_t *call, starlin__record_t *records);

/* Is a group open? */
bool starlin__graph_is_grouping(const starlin_context_t *context);

/* At the context's end. */
void starlin__graph_close(starlin_context_t *context);

/* For operators: an access of each mode; of the own block's run; an absent one where matrix is NULL. */
#define STARLIN__ACCESS(matrix_, mode_)                                                                      \
    (starlin__access_t)                                                                                      \
    {                                                                                                        \
        .matrix = (matrix_), .mode = (mode_)                                                                 \
    }

/* Can collectives use the matrix's chunks where they lie? */
bool starlin__matrix_is_collectable(const starlin_matrix_t *matrix);

/* How many real ranks take part: with one, redistributions happen in place. */
static inline bool starlin__call_is_alone(const starlin__call_t *call)
{
    return call->context->bootstrap->nranks == 1;
}

#endif
