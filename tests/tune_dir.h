/* SPDX-License-Identifier: BSD-3-Clause */
/* A tune file of the test's own, gone with its end. */
#ifndef STARLIN_TESTS_TUNE_DIR_H
#define STARLIN_TESTS_TUNE_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char tune_dir[64];

/* Before the first context. */
static inline void tune_dir_open(void)
{
    snprintf(tune_dir, sizeof tune_dir, "/tmp/starlin-tune-%d", (int)getpid());
    setenv("STARLIN_TUNE_DIR", tune_dir, 1);
}

static inline void tune_dir_close(void)
{
    for (int i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/curves-1.txt%s", tune_dir, i ? ".lock" : "");
        unlink(path);
    }
    rmdir(tune_dir);
}

#endif
