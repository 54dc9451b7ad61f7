/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement over the ranks. What differs is found by hashes, so that the common case exchanges a few bytes.
 */
#define _POSIX_C_SOURCE 200809L
#include "ranks/agreement.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void starlin__fields_open(starlin__fields_t *fields, const char *call)
{
    memset(fields, 0, sizeof *fields);
    starlin__fields_add(fields, "the call", "%s", call);
}

void starlin__fields_add(starlin__fields_t *fields, const char *name, const char *format, ...)
{
    starlin__field_t *field = &fields->field[fields->count++];
    va_list arguments;

    assert(fields->count <= STARLIN__MOST_FIELDS);
    snprintf(field->name, sizeof field->name, "%s", name);
    va_start(arguments, format);
    vsnprintf(field->value, sizeof field->value, format, arguments);
    va_end(arguments);
}

uint64_t starlin__fields_hash(const starlin__fields_t *fields)
{
    uint64_t hash = STARLIN__HASH_INIT;

    for (size_t i = 0; i < fields->count; i++) {
        hash = starlin__hash(hash, fields->field[i].name, strlen(fields->field[i].name) + 1);
        hash = starlin__hash(hash, fields->field[i].value, strlen(fields->field[i].value) + 1);
    }
    return hash;
}

static starlin_status_t compare(const starlin__fields_t *all, int nranks)
{
    for (size_t i = 0; i < STARLIN__MOST_FIELDS; i++) {
        for (int rank = 1; rank < nranks; rank++) {
            const starlin__field_t *first = &all[0].field[i], *other = &all[rank].field[i];
            if (strcmp(first->name, other->name) != 0)
                return starlin__error(STARLIN_ERR_MISMATCH, "ranks disagree: rank 0 compares %s, rank %d %s",
                                      first->name[0] != '\0' ? first->name : "nothing more", rank,
                                      other->name[0] != '\0' ? other->name : "nothing more");
            if (strcmp(first->value, other->value) != 0)
                return starlin__error(STARLIN_ERR_MISMATCH,
                                      "ranks disagree: %s is %s on rank 0 and %s on rank %d", first->name,
                                      first->value, other->value, rank);
        }
    }
    return starlin__error(STARLIN_ERR_MISMATCH, "ranks disagree");
}

/* all[rank] of every rank; the caller frees it. */
static starlin_status_t gather(starlin__bootstrap_t *bootstrap, const void *mine, size_t nbytes,
                               unsigned timeout_ms, void **all_p)
{
    void *all = starlin__alloc(nbytes * (size_t)bootstrap->nranks);
    starlin_status_t status;

    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "agreement of %d ranks", bootstrap->nranks);
    status = bootstrap->ops->allgather(bootstrap, mine, nbytes, all, timeout_ms);
    if (status != STARLIN_SUCCESS)
        starlin__free(all);
    else
        *all_p = all;
    return status;
}

starlin_status_t starlin__agree(starlin__bootstrap_t *bootstrap, const starlin__fields_t *fields,
                                unsigned timeout_ms)
{
    uint64_t mine = starlin__fields_hash(fields);
    bool differ = false;
    void *all = NULL;
    starlin_status_t status;

    if (bootstrap->nranks == 1)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(gather(bootstrap, &mine, sizeof mine, timeout_ms, &all));
    for (int rank = 0; rank < bootstrap->nranks; rank++)
        differ = differ || ((uint64_t *)all)[rank] != mine;
    starlin__free(all);
    if (!differ)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(gather(bootstrap, fields, sizeof *fields, timeout_ms, &all));
    status = compare(all, bootstrap->nranks);
    starlin__free(all);
    return status;
}

starlin_status_t starlin__agree_status(starlin__bootstrap_t *bootstrap, const char *what,
                                       starlin_status_t status, unsigned timeout_ms)
{
    starlin__fields_t fields;
    starlin_status_t agreement;
    char text[1024];

    snprintf(text, sizeof text, "%s", status != STARLIN_SUCCESS ? starlin_last_error() : "");
    starlin__fields_open(&fields, what);
    starlin__fields_add(&fields, what, status == STARLIN_SUCCESS ? "ready" : "refused (%s)", text);
    agreement = starlin__agree(bootstrap, &fields, timeout_ms);
    return status != STARLIN_SUCCESS ? starlin__error(status, "%s", text) : agreement;
}
