/* SPDX-License-Identifier: BSD-3-Clause */
/* A test that does not come to its end says in which step it was. */
#ifndef STARLIN_TESTS_WATCHDOG_H
#define STARLIN_TESTS_WATCHDOG_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char step_text[128] = "no step has begun\n";

/* Before anything that may hang; `size` tells repetitions apart. One thread only. */
static inline void step_begin(const char *name, int size)
{
    snprintf(step_text, sizeof(step_text), "out of time in step: %s (%d)\n", name, size);
}

static inline void step_expired(int number)
{
    ssize_t written = write(STDERR_FILENO, step_text, strlen(step_text));
    (void)written;
    (void)number;
    _exit(1);
}

/* Call once. Choose less than the runner's own limit, which tells nothing. */
static inline void step_limit(unsigned seconds)
{
    struct sigaction action = {.sa_handler = step_expired};
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

#endif
