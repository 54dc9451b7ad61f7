/* SPDX-License-Identifier: BSD-3-Clause */
/* What every source file shares: errors, logging and small helpers. No third-party header. */
#ifndef STARLIN_INTERNAL_H
#define STARLIN_INTERNAL_H

#include "starlin/starlin.h"

#define STARLIN__MAX_CHUNKS 256

/* Stores the text for starlin_last_error(), logs it where STARLIN_LOG asks for it, returns `status`.
 * The function that first decides on an error calls this; callers forward the status silently. */
starlin_status_t starlin__error(starlin_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Informational line on stderr, only with STARLIN_LOG=info or debug. */
void starlin__log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns from the calling function with the status of `call` unless it is a success. */
#define STARLIN__FORWARD(call)                                                                               \
    do {                                                                                                     \
        starlin_status_t status__ = (call);                                                                  \
        if (status__ != STARLIN_SUCCESS)                                                                     \
            return status__;                                                                                 \
    } while (0)

/* Monotonic clock in microseconds. */
double starlin__now_us(void);

/* Zeroed memory of the library; counted, and can be made to fail, by the tests. NULL when out of memory. */
void *starlin__alloc(size_t nbytes);
void starlin__free(void *memory);

/* Test instrumentation of the allocator: calls of starlin__alloc so far; the call number that fails (0:
 * none). */
extern uint64_t starlin__alloc_count;
extern uint64_t starlin__alloc_fail_at;

/* FNV-1a over nbytes, continuing from `hash` (start with STARLIN__HASH_INIT). */
#define STARLIN__HASH_INIT 14695981039346656037ull
uint64_t starlin__hash(uint64_t hash, const void *data, size_t nbytes);

/* Structs that grow. The first member of each that crosses the border is size_t struct_size; 0 stands for
 * this version's size. `what` is its name in errors; ERR_INVALID: struct_size is less than its own size.
 *
 * The caller's struct into this version's: a shorter one is extended with zeros, NULL is all zero. A longer
 * one is accepted if what this version does not know is zero, else ERR_UNSUPPORTED names both sizes; *known
 * holds the part that it knows even then. */
starlin_status_t starlin__struct_copy(void *known, size_t known_size, const void *given, const char *what);
/* This version's struct into the caller's, as much as that has room for; a longer one gets zeros at its end.
 */
starlin_status_t starlin__struct_fill(void *given, const void *known, size_t known_size, const char *what);

/* Where a matrix or a communicator's buffer lies. */
typedef enum starlin__space { STARLIN__HOST, STARLIN__DEVICE } starlin__space_t;

#endif
