/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of the tune file: a header line, then entries of fixed lines. Only tune.c and its tests use it. */
#ifndef STARLIN_TUNE_TEXT_H
#define STARLIN_TUNE_TEXT_H

#include "plan/tune.h"

#include <stdio.h>

#define STARLIN__TUNE_HEADER "starlin-tune 1" /* raise the number with every change of the format */

/* An entry of the file with its key's texts. */
typedef struct starlin__tune_record {
    char device[STARLIN__TUNE_TEXT], versions[STARLIN__TUNE_TEXT];
    char compute[STARLIN__TUNE_TEXT], comm[STARLIN__TUNE_TEXT], parameters[STARLIN__TUNE_TEXT];
    starlin__tune_key_t key; /* its texts are the five above */
    starlin__tune_entry_t entry;
    const char *begin, *end; /* where it stands in the file's text */
} starlin__tune_record_t;

/* Reads entry after entry of a text that stays where it is. */
typedef struct starlin__tune_reader {
    const char *at, *end;
    unsigned line;     /* the last one read, from 1 on */
    const char *error; /* what is wrong with that line; NULL */
} starlin__tune_reader_t;

/* Reads the header line; false with reader->error set when it is another one. */
bool starlin__tune_reader_open(starlin__tune_reader_t *reader, const char *text, size_t nbytes);

/* The next entry; false at the end (error NULL) or at a damaged line. */
bool starlin__tune_reader_next(starlin__tune_reader_t *reader, starlin__tune_record_t *record);

/* What is wrong with a key and entry that are to be written, or NULL. */
const char *starlin__tune_fault(const starlin__tune_key_t *key, const starlin__tune_entry_t *entry);

/* Writes one entry. Both directions need the C locale. */
void starlin__tune_print(FILE *out, const starlin__tune_key_t *key, const starlin__tune_entry_t *entry);

#endif
