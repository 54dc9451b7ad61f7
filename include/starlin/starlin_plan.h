/* SPDX-License-Identifier: BSD-3-Clause */
/* How an automatic chunk list came about, for people. */
#ifndef STARLIN_STARLIN_PLAN_H
#define STARLIN_STARLIN_PLAN_H

#include "starlin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Describes the planning of a chunking in lines of text: where the measured costs come from and what they
 * are, each list that was tried (rows, simulated and measured time, simulated / measured - 1), what was
 * chosen, how long planning took, and what the first real steps have said about a list of more than one
 * chunk. Times are per layer. A chunking that was asked for by count or rows says so in a line. The text is
 * the same on every rank; its form may change between versions. chunking   from starlin_chunking_plan() text
 * size bytes of the caller's that are written, always with a 0 at the end (cut short if need be); NULL only
 * if size is 0 length_p   the whole text's length without its end: a text of length + 1 bytes holds all; may
 * be NULL Local; thread-safe; does not block. Errors: ERR_INVALID (chunking is NULL; text is NULL and size is
 * not 0). */
STARLIN_API starlin_status_t starlin_chunking_explain(const starlin_chunking_t *chunking, char *text,
                                                      size_t size, size_t *length_p);

#ifdef __cplusplus
}
#endif

#endif
