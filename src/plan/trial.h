/* SPDX-License-Identifier: BSD-3-Clause */
/* The trial of a planned list: the application's first steps are timed against what one chunk was expected to
 * take, if need be against one chunk itself, and a list that turns out slower is replaced by one chunk.
 *
 * Pure logic, without clock or exchange. What is decided, and before which operator, follows from agreed
 * figures and from the number of operators alone, so all ranks decide the same before the same operator,
 * however their waits and times differ. Used by the context's thread; is_over, text and replaced by any. */
#ifndef STARLIN_TRIAL_H
#define STARLIN_TRIAL_H

#include "base/base.h"

typedef struct starlin__trial starlin__trial_t;

#define STARLIN__TRIAL_FIGURES 7

/* Of a list of so many chunks. serial_us: what an operator of one chunk takes, as far as was planned; the
 * same on every rank. `why_not`: why nothing will be tried, or NULL. One reference is the caller's; NULL when
 * out of memory. */
starlin__trial_t *starlin__trial_create(size_t nchunks, double serial_us, const char *why_not);
starlin__trial_t *starlin__trial_retain(starlin__trial_t *trial); /* NULL stays NULL */
void starlin__trial_release(starlin__trial_t *trial);             /* NULL does nothing */

/* Have figures to be exchanged before the next operator? Then `figures` are this rank's, of which the ranks
 * agree on the largest, and decide() takes those. `sequence`: the next operator's number in the context. */
bool starlin__trial_is_due(const starlin__trial_t *trial);
void starlin__trial_figures(const starlin__trial_t *trial, double figures[STARLIN__TRIAL_FIGURES]);
void starlin__trial_decide(starlin__trial_t *trial, const double figures[STARLIN__TRIAL_FIGURES],
                           uint64_t sequence);

/* Is the next operator to be computed in one piece? */
bool starlin__trial_is_whole(const starlin__trial_t *trial);
/* It has been submitted. joins: it was possible to compute it in one piece. */
void starlin__trial_count(starlin__trial_t *trial, bool joins);
/* A step of `noperators` of the trial's operators and no others has ended: it began after `first` of them.
 * 0 us: was disturbed. */
void starlin__trial_step(starlin__trial_t *trial, uint64_t first, uint64_t noperators, double time_us);
uint64_t starlin__trial_noperators(const starlin__trial_t *trial); /* counted so far */

/* Nothing more will be exchanged or change. */
bool starlin__trial_is_over(const starlin__trial_t *trial);
/* What came of it, the same on every rank; NULL while it goes on. */
const char *starlin__trial_text(const starlin__trial_t *trial);
/* That text if one chunk has taken the list's place, else NULL. */
const char *starlin__trial_replaced(const starlin__trial_t *trial);

/* The trial of a chunking; NULL: none. */
const starlin__trial_t *starlin__chunking_trial(const starlin_chunking_t *chunking);

#endif
