/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured curves that outlive a process: one file per user, entries for this and other machines in it.
 *
 * The directory is STARLIN_TUNE_DIR, or ${XDG_CACHE_HOME:-~/.cache}/starlin/tune. A file that cannot be
 * read, is damaged or of another version, and entries of another device or other library versions, are
 * ignored with a notice (starlin__log), never an error: the caller measures again. Everything here is local
 * and reads the environment and the file system: one rank loads, and the ranks agree on what it found. */
#ifndef STARLIN_TUNE_H
#define STARLIN_TUNE_H

#include "plan/planner.h"

#define STARLIN__TUNE_COMMS 8
#define STARLIN__TUNE_TEXT  256 /* bytes of a text in a key, with its end */

/* What a measurement holds for. Texts are not NULL, shorter than STARLIN__TUNE_TEXT, without control
 * characters. */
typedef struct starlin__tune_key {
    const char *device;   /* "NVIDIA H200", or the processor's model and number of cores */
    const char *versions; /* of driver and libraries, in any notation */
    const char *compute;  /* backends */
    const char *comm;
    const char *parameters; /* of the communicator, such as "gbps=223,ctas=8"; may be "" */
    int nranks;
    int64_t n, k;                     /* of the gemm; k of the largest slice */
    starlin_dtype_t dtype, out_dtype; /* of the inputs, of what is summed */
} starlin__tune_key_t;

/* The collective with one number of CTAs, alone and beside gemms. */
typedef struct starlin__tune_comm {
    unsigned ctas; /* 0: the communicator's own choice */
    starlin__curve_t curve;
    double gemm_slowdown, comm_slowdown; /* >= 1 */
    double comm_delay_us;
} starlin__tune_comm_t;

typedef struct starlin__tune_entry {
    starlin__curve_t gemm;
    double task_us;
    size_t ncomms; /* 1 ... STARLIN__TUNE_COMMS, `ctas` differ */
    starlin__tune_comm_t comms[STARLIN__TUNE_COMMS];
} starlin__tune_entry_t;

/* The file's path ("" and false when no directory is known or the path is too long). */
bool starlin__tune_path(char *path, size_t size);

/* Looks for the key. False, and *entry_p as it was, when there is nothing usable. */
bool starlin__tune_load(const starlin__tune_key_t *key, starlin__tune_entry_t *entry_p);

/* Adds the entry, or replaces the whole one of this key; all others stay. The file is replaced in one step,
 * so readers see the old or the new one; writers take turns. ERR_INVALID for a key or an entry that breaks
 * the rules above, ERR_UNSUPPORTED when the file cannot be read or written, ERR_NO_MEMORY; the old file is
 * then still there. */
starlin_status_t starlin__tune_store(const starlin__tune_key_t *key, const starlin__tune_entry_t *entry);

#endif
