/* SPDX-License-Identifier: BSD-3-Clause */
/* The thorough part of the calibration that concerns numbers of CTAs. */
#ifndef STARLIN_CALIBRATE_COMMS_H
#define STARLIN_CALIBRATE_COMMS_H

#include "plan/scratch.h"
#include "plan/tune.h"

/* The entry holds the gemm's curve and the collective of the communicator's own number of CTAs (comms[0]).
 * Adds the other numbers that the communicator offers, each with its curve, as many as an entry has room for.
 * On a device all get slowdowns that were measured, on the host they keep those of comms[0]. Collective;
 * blocks; nothing else may run in the context. A failure on one rank is every rank's. */
starlin_status_t starlin__calibrate_comms(starlin_context_t *context, const starlin__scratch_t *scratch,
                                          starlin__tune_entry_t *entry);

/* How many times longer something took while something else ran beside it: in one piece it took alone_us, now
 * together_us, of which the two overlapped for overlap_us. At least 1; at most 4, since a difference as long
 * as the overlap tells of waiting or noise. */
double starlin__calibrate_slowdown(double alone_us, double together_us, double overlap_us);

#endif
