/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the calibration share. */
#ifndef STARLIN_CALIBRATE_PRIVATE_H
#define STARLIN_CALIBRATE_PRIVATE_H

#include "graph/context.h"

/* What is measured, and how. */
typedef struct starlin__calibration {
    starlin_context_t *context;
    starlin__gemm_t gemm; /* m: rows of the point */
    starlin__allreduce_t request;
    bool thorough;
} starlin__calibration_t;

typedef starlin_status_t (*starlin__calibration_fn_t)(starlin__calibration_t *calibration);

/* Shortest of a few runs, or the median of many, after one that is not counted; the slowest rank's. As many
 * runs on every rank, and an error of one is every rank's. Collective. */
starlin_status_t starlin__calibration_time(starlin__calibration_t *calibration,
                                           starlin__calibration_fn_t once, double *time_us);

/* The curve of collectives of up to m rows with the request's number of CTAs, which has been prepared. As
 * predicted, where the communicator does that. Collective. */
starlin_status_t starlin__calibration_comm(starlin__calibration_t *calibration, int64_t m,
                                           starlin__curve_t *curve);

#endif
