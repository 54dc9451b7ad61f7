/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress line. A thread of its own prints it four times a second, so that it also moves while one
 * call takes long; without a terminal there is no thread. */
#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define FIRST_US 2e6
#define TICK_NS  250000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ending = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool running, visible, stop;
static double start_us;
static char text[160];

static void erase(void)
{
    if (visible)
        fputs("\r\033[K", stderr);
    visible = false;
}

static void *tick(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    while (!stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&ending, &lock, &until);
        double elapsed_us = perf_now_us() - start_us;
        if (stop || elapsed_us < FIRST_US || text[0] == '\0')
            continue;
        fprintf(stderr, "\r\033[K%s, %.0f s", text, elapsed_us / 1e6);
        fflush(stderr);
        visible = true;
    }
    erase();
    pthread_mutex_unlock(&lock);
    return NULL;
}

void perf_progress_begin(bool shown)
{
    if (!shown || running || !isatty(STDERR_FILENO))
        return;
    start_us = perf_now_us();
    stop = false;
    running = pthread_create(&thread, NULL, tick, NULL) == 0;
}

void perf_progress_end(void)
{
    if (!running)
        return;
    pthread_mutex_lock(&lock);
    stop = true;
    pthread_cond_signal(&ending);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    running = false;
}

void perf_progress_set(const char *format, ...)
{
    if (!running)
        return;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&lock);
    vsnprintf(text, sizeof(text), format, arguments);
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}

void perf_progress_clear(void)
{
    if (!running)
        return;
    pthread_mutex_lock(&lock);
    erase();
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}
