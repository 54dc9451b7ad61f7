/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement: every rank shows what it is about to do, as named texts, and a difference is an error with the
 * same text on every rank, before anything has started. */
#ifndef STARLIN_AGREEMENT_H
#define STARLIN_AGREEMENT_H

#include "ranks/bootstrap.h"

enum { STARLIN__MOST_FIELDS = 24 };

typedef struct starlin__field {
    char name[48];
    char value[208];
} starlin__field_t;

typedef struct starlin__fields {
    size_t count;
    starlin__field_t field[STARLIN__MOST_FIELDS];
} starlin__fields_t;

/* Empty, with the call as its first field. */
void starlin__fields_open(starlin__fields_t *fields, const char *call);
/* Names and values are cut short where they do not fit. */
void starlin__fields_add(starlin__fields_t *fields, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t starlin__fields_hash(const starlin__fields_t *fields);

/* Compares the fields over the ranks. ERR_MISMATCH, with the same text on every rank, names the first that
 * differs. Ranks exchange a hash, and the texts only where it differs. Collective; blocks. */
starlin_status_t starlin__agree(starlin__bootstrap_t *bootstrap, const starlin__fields_t *fields,
                                unsigned timeout_ms);

/* All ranks go on, or none: returns this rank's status if it failed, else the failure of the lowest rank that
 * did. `what` is compared first. Collective; blocks. */
starlin_status_t starlin__agree_status(starlin__bootstrap_t *bootstrap, const char *what,
                                       starlin_status_t status, unsigned timeout_ms);

#endif
