/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner: from measured curves to a chunk list, by simulating the pipeline. Pure functions, no clock. */
#ifndef STARLIN_PLANNER_H
#define STARLIN_PLANNER_H

#include "base/base.h"

#define STARLIN__CURVE_POINTS 24

/* A measured cost: time over size, piecewise linear, sizes rising. Below the first point the time of the
 * first point (a launch costs what it costs), beyond the last the last segment's slope (proportional for a
 * single point). */
typedef struct starlin__curve {
    size_t npoints;
    double size[STARLIN__CURVE_POINTS];
    double time_us[STARLIN__CURVE_POINTS];
} starlin__curve_t;

double starlin__curve_eval(const starlin__curve_t *curve, double size);
/* Inserts a point, keeping the sizes rising; replaces a point of the same size. False, and nothing is
 * changed, when full or when a number is negative, infinite or NaN. */
bool starlin__curve_add(starlin__curve_t *curve, double size, double time_us);

/* What is known when rows are cut. All of it agreed over the ranks before it gets here. */
typedef struct starlin__plan_input {
    int64_t m;                  /* rows */
    double nbytes_per_row;      /* of a collective */
    starlin__curve_t gemm;      /* rows -> us, one gemm task */
    starlin__curve_t comm;      /* bytes -> us, one collective alone */
    starlin__curve_t last_comm; /* the same for the last one of a layer, which has the communicator's own
                                   CTAs; no points: as comm */
    double task_us;             /* cost of a chunk beyond its kernels (launch, tasks) */
    double wait_us;             /* once for all layers: the first launch, and the host's wait */
    double gemm_slowdown;       /* factor on a gemm while a collective runs beside it, >= 1 */
    double comm_slowdown;       /* factor on a collective while a gemm runs, >= 1 */
    double comm_delay_us; /* a collective that becomes ready beside a running gemm starts this much later */
    bool comm_uses_core;  /* collective and gemm compete for the same core: no free overlap */
    int64_t row_quantum;  /* chunk sizes are multiples of this (the last may be less); >= 1 */
    unsigned nlayers; /* such layers one after the other, chunk i of each behind chunk i of the one before; 0
                         means 1 */
    unsigned ctas;    /* thread blocks of the collectives; 0: the communicator's own number */
    int64_t piece_rows; /* a chunk's gemm is launched in pieces of so many rows; 0: in one */
    double prompt_rows; /* gemms of at most this many rows leave a collective room beside them: it starts at
                           once and does not slow them down */
    double yield_rows;  /* gemms of more rows let the collective of the chunk before start first; 0: none */
    double yield_us;    /* what that costs */
    int64_t even_rows;  /* gemms of more rows that are no multiple of this are slower; 0: they are not */
    double uneven_slowdown; /* by this factor, >= 1 */
    double min_gain;        /* relative: below this predicted gain one chunk is chosen, such as 0.01 */
} starlin__plan_input_t;

/* What one layer costs with each number of thread blocks; the communicator's own number comes first. */
#define STARLIN__MOST_CTAS   8
#define STARLIN__MOST_INPUTS (2 * STARLIN__MOST_CTAS)
typedef struct starlin__costs {
    bool tuned; /* from the tune file, else measured now */
    size_t ninputs;
    starlin__plan_input_t inputs[STARLIN__MOST_INPUTS]; /* differ in ctas, costs of collectives, pieces */
} starlin__costs_t;

typedef struct starlin__plan {
    unsigned ctas;      /* of the collectives; 0: the communicator's own number */
    int64_t piece_rows; /* of the gemms; 0: each chunk's in one */
    size_t nchunks;
    int64_t rows[STARLIN__MAX_CHUNKS];
    double predicted_us;     /* of this list, per layer */
    double serial_us;        /* of one chunk, per layer: one gemm (with task_us), then one collective */
    double gemm_us, comm_us; /* in one piece, alone */
    char reason[192];        /* why one chunk was chosen; "" otherwise */
} starlin__plan_t;

static inline unsigned starlin__plan_nlayers(const starlin__plan_input_t *input)
{
    return input->nlayers > 1 ? input->nlayers : 1;
}

/* Simulated time of a chunk list, all layers: gemms one after the other, collectives one after the other,
 * collective i after gemm i. 1 <= nchunks <= STARLIN__MAX_CHUNKS. */
double starlin__plan_simulate(const starlin__plan_input_t *input, const int64_t *rows, size_t nchunks);

/* The best of the candidates (one chunk; equal chunks; lists that shrink towards the end, start small, or
 * both), improved by small steps. Deterministic; about a millisecond or less, whatever m is. m >= 1. */
void starlin__plan_choose(const starlin__plan_input_t *input, starlin__plan_t *plan_p);

/* The best plan over all inputs; one chunk has the communicator's own number of thread blocks, and so have
 * serial_us and comm_us. *second_p: the best chunked one of another input; nchunks 0: there is none. */
void starlin__plan_choose_ctas(const starlin__costs_t *costs, starlin__plan_t *plan_p,
                               starlin__plan_t *second_p);

/* The input for this number of thread blocks and these pieces; the first one where there is none. */
const starlin__plan_input_t *starlin__costs_input(const starlin__costs_t *costs, unsigned ctas,
                                                  int64_t piece_rows);

/* Simulates a list without pieces, per layer, with the number of thread blocks that suits it best, and stores
 * that number. */
double starlin__plan_best_ctas(const starlin__costs_t *costs, const int64_t *rows, size_t nchunks,
                               unsigned *ctas_p);

/* Is it left to chance when collectives of this list start? A gemm that neither leaves room nor yields may
 * keep one out until its end. */
bool starlin__plan_is_chancy(const starlin__plan_input_t *input, const int64_t *rows, size_t nchunks);

/* Cuts m rows into at most `count` chunks of nearly equal size, larger ones first. Returns the number of
 * chunks. */
size_t starlin__plan_equal(int64_t m, size_t count, int64_t *rows);

#endif
