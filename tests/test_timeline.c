/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline: ring order, the switch, adding from many threads, no allocation and little time per span. */
#include <pthread.h>

#include "check.h"
#include "record/timeline.h"

#define NTHREADS    4
#define NPER_THREAD 20000

static starlin__span_t span_of(uint64_t sequence)
{
    starlin__span_t span = {.kind = STARLIN__SPAN_GEMM, .sequence = sequence, .end_us = (double)sequence};
    return span;
}

static void test_ring(void)
{
    starlin__timeline_t *timeline = NULL;
    starlin__span_t spans[8];
    CHECK_STATUS(starlin__timeline_create(0, &timeline), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin__timeline_create(SIZE_MAX / 16, &timeline), STARLIN_ERR_INVALID);
    CHECK(timeline == NULL);
    CHECK_STATUS(starlin__timeline_create(4, &timeline), STARLIN_SUCCESS);

    starlin__span_t ignored = span_of(99);
    CHECK(!starlin__timeline_enabled(timeline));
    starlin__timeline_add(timeline, &ignored);
    CHECK_EQ_INT(starlin__timeline_read(timeline, spans, 8), 0);

    /* memory when it is first needed, once */
    uint64_t nallocs = starlin__alloc_count;
    starlin__alloc_fail_at = nallocs + 1;
    CHECK_STATUS(starlin__timeline_enable(timeline, true), STARLIN_ERR_NO_MEMORY);
    CHECK(!starlin__timeline_enabled(timeline));
    starlin__alloc_fail_at = 0;
    CHECK_STATUS(starlin__timeline_enable(timeline, true), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__timeline_enable(timeline, false), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__timeline_enable(timeline, true), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__alloc_count, nallocs + 2);
    CHECK(starlin__timeline_enabled(timeline));
    for (uint64_t i = 1; i <= 3; i++) {
        starlin__span_t span = span_of(i);
        starlin__timeline_add(timeline, &span);
    }
    bool lost = true;
    CHECK_EQ_INT(starlin__timeline_count(timeline, &lost), 3);
    CHECK(!lost);
    CHECK_EQ_INT(starlin__timeline_read(timeline, spans, 8), 3);
    CHECK_EQ_INT(spans[0].sequence, 1);
    CHECK_EQ_INT(spans[2].sequence, 3);
    for (uint64_t i = 4; i <= 10; i++) {
        starlin__span_t span = span_of(i);
        starlin__timeline_add(timeline, &span);
    }
    bool overwritten = false;
    CHECK_EQ_INT(starlin__timeline_count(timeline, &overwritten), 4);
    CHECK(overwritten);
    CHECK_EQ_INT(starlin__timeline_read(timeline, spans, 8), 4);
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ_INT(spans[i].sequence, 7 + i);
    CHECK_EQ_INT(starlin__timeline_read(timeline, spans, 2), 2);
    CHECK_EQ_INT(spans[0].sequence, 7);

    starlin__timeline_clear(timeline);
    CHECK_EQ_INT(starlin__timeline_read(timeline, spans, 8), 0);
    CHECK(starlin__timeline_enabled(timeline));
    starlin__timeline_destroy(timeline);
    starlin__timeline_destroy(NULL);
}

static void *add_many(void *arg)
{
    starlin__timeline_t *timeline = arg;
    for (uint64_t i = 1; i <= NPER_THREAD; i++) {
        starlin__span_t span = span_of(i);
        span.nbytes = (double)i; /* a torn copy would not match the sequence */
        starlin__timeline_add(timeline, &span);
    }
    return NULL;
}

static void test_threads(void)
{
    static starlin__span_t spans[NTHREADS * NPER_THREAD + 1];
    starlin__timeline_t *timeline = NULL;
    CHECK_STATUS(starlin__timeline_create(NTHREADS * NPER_THREAD + 1, &timeline), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__timeline_enable(timeline, true), STARLIN_SUCCESS);
    uint64_t nallocs = starlin__alloc_count;

    double start_us = starlin__now_us();
    add_many(timeline);
    printf("%.3f us per span alone\n", (starlin__now_us() - start_us) / NPER_THREAD);
    starlin__timeline_clear(timeline);

    pthread_t threads[NTHREADS];
    for (int i = 0; i < NTHREADS; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, add_many, timeline), 0);
    for (int i = 0; i < NTHREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ_INT(starlin__alloc_count, nallocs);

    size_t nspans = starlin__timeline_read(timeline, spans, sizeof spans / sizeof spans[0]);
    CHECK_EQ_INT(nspans, NTHREADS * NPER_THREAD);
    uint64_t sum = 0;
    int ntorn = 0;
    for (size_t i = 0; i < nspans; i++) {
        sum += spans[i].sequence;
        ntorn += (double)spans[i].sequence != spans[i].nbytes;
    }
    CHECK_EQ_INT(sum, (uint64_t)NTHREADS * NPER_THREAD * (NPER_THREAD + 1) / 2);
    CHECK_EQ_INT(ntorn, 0);
    starlin__timeline_destroy(timeline);
}

static void test_no_memory(void)
{
    starlin__timeline_t *timeline = NULL;
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(starlin__timeline_create(4, &timeline), STARLIN_ERR_NO_MEMORY);
    CHECK(timeline == NULL);
    starlin__alloc_fail_at = 0;
}

int main(void)
{
    test_ring();
    test_threads();
    test_no_memory();
    return CHECK_RESULT();
}
