/* SPDX-License-Identifier: BSD-3-Clause */
/* An automatic chunk list in the making, and the record of how it came about. */
#ifndef STARLIN_PLANNING_H
#define STARLIN_PLANNING_H

#include "plan/planner.h"

#define STARLIN__MOST_LISTS 10

typedef struct starlin__rehearsed {
    unsigned ctas;      /* of collectives; 0: the communicator's own number */
    int64_t piece_rows; /* of gemms; 0: each chunk's in one */
    size_t nchunks;
    int64_t rows[STARLIN__MAX_CHUNKS];
    double simulated_us, measured_us; /* per layer */
} starlin__rehearsed_t;

/* All figures are the same on every rank. */
typedef struct starlin__planning {
    starlin__costs_t costs;
    starlin__plan_t plan;    /* predicted_us: as tried where it was, else as simulated */
    starlin__plan_t second;  /* the planner's next best with other CTAs or pieces; nchunks 0: none */
    double simulated_us;     /* of the chosen list, per layer */
    const char *unrehearsed; /* why nothing was tried, or NULL; static text */
    size_t nlists;           /* that were tried, one chunk first; 0: none */
    starlin__rehearsed_t lists[STARLIN__MOST_LISTS];
    unsigned nsummed;   /* layers that such a layer stands for: all of a chain of different ones */
    double measured_us; /* of the chosen list, per layer; 0: not tried */
    double planning_us; /* all of it, on the slowest rank */
} starlin__planning_t;

/* Plans a chain of layers; the record is the caller's, for starlin__free(). Collective; blocks. */
starlin_status_t starlin__planning_create(starlin_context_t *context, const starlin_linear_shape_t *shapes,
                                          size_t nshapes, starlin__planning_t **planning_p);

/* What a chunking keeps of it, or NULL when the list was asked for. */
const starlin__planning_t *starlin__chunking_planning(const starlin_chunking_t *chunking);

#endif
