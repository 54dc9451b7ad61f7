/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress engine with a communicator and peers that only write down what happens: order, failures that
 * the peers hear of in time, and a time limit that does not cover the backlog. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "progress/progress.h"
#include "watchdog.h"

enum { MOST = 64 };

/* What happened, in order: "s1" collective 1 started, "t1" failure 1 sent, "w1" peers heard it, "e1" ended.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char events[MOST * 8];
static starlin__notice_t failure;
static atomic_uint nfailures;
static double collective_us; /* of the fake link, which carries one at a time; negative: for ever */
static double busy_until_us;
static bool refuses;

static void note(const char *what, uint64_t number)
{
    size_t used;
    pthread_mutex_lock(&lock);
    used = strlen(events);
    snprintf(events + used, sizeof events - used, "%s%s%d", used > 0 ? " " : "", what, (int)number);
    pthread_mutex_unlock(&lock);
}

static starlin_status_t fake_start(starlin__comm_t *comm, starlin__collective_t *collective)
{
    double now_us = starlin__now_us();
    (void)comm;
    if (refuses)
        return starlin__error(STARLIN_ERR_INVALID, "refused");
    busy_until_us = (busy_until_us > now_us ? busy_until_us : now_us) + collective_us;
    collective->opaque.numbers[0] = collective_us < 0 ? -1.0 : busy_until_us;
    return STARLIN_SUCCESS;
}

static starlin_status_t fake_test(starlin__comm_t *comm, starlin__collective_t *collective, bool *done_p)
{
    (void)comm;
    *done_p = collective->opaque.numbers[0] >= 0 && starlin__now_us() >= collective->opaque.numbers[0];
    return STARLIN_SUCCESS;
}

static starlin_status_t fake_notify(starlin__bootstrap_t *bootstrap, const starlin__notice_t *notice,
                                    unsigned timeout_ms,
                                    void (*received)(void *arg, const starlin__notice_t *notice), void *arg)
{
    (void)bootstrap;
    (void)received;
    (void)arg;
    note(timeout_ms > 0 ? "w" : "t", notice->sequence);
    return STARLIN_SUCCESS;
}

static const starlin__comm_ops_t comm_ops = {.name = "fake", .start = fake_start, .test = fake_test};
static const starlin__bootstrap_ops_t bootstrap_ops = {.name = "fake", .notify = fake_notify};
static starlin__comm_t comm = {.ops = &comm_ops, .nranks = 2};
static starlin__bootstrap_t bootstrap = {.ops = &bootstrap_ops, .nranks = 2};

static void failed(void *arg, const starlin__notice_t *notice)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    if (failure.status == STARLIN_SUCCESS)
        failure = *notice;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&nfailures, 1);
}

static void on_start(starlin__work_t *work)
{
    note("s", work->sequence);
}

static void on_end(starlin__work_t *work)
{
    note("e", work->sequence);
    atomic_fetch_add((atomic_uint *)work->owner, 1);
}

static starlin__progress_t *open_engine(unsigned timeout_ms, bool has_core, double time_us)
{
    starlin__progress_setup_t setup = {.comm = &comm,
                                       .bootstrap = &bootstrap,
                                       .timeout_ms = timeout_ms,
                                       .has_core = has_core,
                                       .pause_us = 500.0,
                                       .failed = failed};
    starlin__progress_t *progress = NULL;

    events[0] = '\0';
    memset(&failure, 0, sizeof failure);
    atomic_store(&nfailures, 0);
    collective_us = time_us;
    busy_until_us = 0.0;
    refuses = false;
    CHECK_STATUS(starlin__progress_create(&setup, &progress), STARLIN_SUCCESS);
    return progress;
}

static void submit(starlin__progress_t *progress, starlin__work_t *works, unsigned count, atomic_uint *nended)
{
    memset(works, 0, count * sizeof *works);
    for (unsigned i = 0; i < count; i++) {
        works[i].sequence = i + 1;
        works[i].on_start = on_start;
        works[i].on_end = on_end;
        works[i].owner = nended;
        starlin__progress_submit(progress, &works[i]);
    }
}

static void wait_until(atomic_uint *counter, unsigned count)
{
    while (atomic_load(counter) < count)
        usleep(200);
}

/* True once the events have come to `text`. */
static bool happens(const char *text)
{
    bool same = false;
    for (int i = 0; i < 20000 && !same; i++) {
        pthread_mutex_lock(&lock);
        same = strcmp(events, text) == 0;
        pthread_mutex_unlock(&lock);
        if (!same)
            usleep(200);
    }
    return same;
}

static void check_order(bool has_core)
{
    starlin__work_t works[4];
    atomic_uint nended = 0;
    starlin__progress_t *progress = open_engine(10000, has_core, 0.0);

    step_begin("order", has_core);
    submit(progress, works, 4, &nended);
    for (int i = 3; i >= 0; i--)
        starlin__progress_ready(progress, &works[i]);
    wait_until(&nended, 4);
    starlin__progress_destroy(progress);
    CHECK_EQ_STR(events, "s1 s2 s3 s4 e1 e2 e3 e4");
    CHECK_EQ_INT(atomic_load(&nfailures), 0);
}

static void fail(starlin__progress_t *progress, uint64_t sequence)
{
    starlin__notice_t notice = {.sequence = sequence, .status = STARLIN_ERR_RUNTIME, .text = "gemm"};
    starlin__progress_fail(progress, &notice);
}

/* Sent at once though no collective is there; heard before the first one that is not earlier starts, once. */
static void check_failure(bool has_core)
{
    starlin__work_t works[4];
    atomic_uint nended = 0;
    starlin__progress_t *progress = open_engine(10000, has_core, 0.0);

    step_begin("failure", has_core);
    fail(progress, 3);
    CHECK(happens("t3"));
    submit(progress, works, 4, &nended);
    for (int i = 0; i < 4; i++) {
        starlin__progress_ready(progress, &works[i]);
        wait_until(&nended, (unsigned)i + 1);
    }
    starlin__progress_destroy(progress);
    CHECK_EQ_STR(events, "t3 s1 e1 s2 e2 w3 s3 e3 s4 e4");
    CHECK_EQ_INT(atomic_load(&nfailures), 0); /* the owner's own failure is no news to it */
}

/* A later failure is of no interest any more, an earlier one is. */
static void check_two_failures(bool has_core)
{
    starlin__work_t works[2];
    atomic_uint nended = 0;
    starlin__progress_t *progress = open_engine(10000, has_core, 0.0);

    step_begin("failures", has_core);
    fail(progress, 2);
    CHECK(happens("t2"));
    fail(progress, 5);
    fail(progress, 1);
    CHECK(happens("t2 t1"));
    submit(progress, works, 2, &nended);
    starlin__progress_ready(progress, &works[0]);
    starlin__progress_ready(progress, &works[1]);
    wait_until(&nended, 2);
    starlin__progress_destroy(progress);
    CHECK(strncmp(events, "t2 t1 w1 s1 ", 12) == 0);
    CHECK(strchr(events + 8, 'w') == NULL);
}

/* What could not start breaks the communicator: nothing is started any more, everything ends. */
static void check_refused(bool has_core)
{
    starlin__work_t works[3];
    atomic_uint nended = 0;
    starlin__progress_t *progress = open_engine(10000, has_core, 0.0);

    step_begin("refused", has_core);
    refuses = true;
    submit(progress, works, 3, &nended);
    for (int i = 0; i < 3; i++)
        starlin__progress_ready(progress, &works[i]);
    wait_until(&nended, 3);
    starlin__progress_destroy(progress);
    CHECK_EQ_STR(events, "s1 w1 e1 e2 e3");
    CHECK_EQ_INT(failure.status, STARLIN_ERR_INVALID);
    CHECK_CONTAINS(failure.text, "refused");
}

/* Ten collectives of a third of the limit, started at once: the last waits three times the limit. */
static void check_backlog(bool has_core)
{
    starlin__work_t works[10];
    atomic_uint nended = 0;
    starlin__progress_t *progress = open_engine(300, has_core, 100e3);

    step_begin("backlog", has_core);
    submit(progress, works, 10, &nended);
    for (int i = 0; i < 10; i++)
        starlin__progress_ready(progress, &works[i]);
    wait_until(&nended, 10);
    starlin__progress_destroy(progress);
    CHECK_EQ_INT(atomic_load(&nfailures), 0);
    CHECK(works[9].start_us - works[0].start_us < 100e3);
    CHECK(works[9].end_us - works[9].start_us > 900e3);
}

/* One that never ends is given up, and those behind it. */
static void check_time_limit(bool has_core)
{
    starlin__work_t works[2];
    atomic_uint nended = 0;
    starlin__progress_t *progress = open_engine(200, has_core, -1.0);
    double begin_us = starlin__now_us();

    step_begin("time limit", has_core);
    submit(progress, works, 2, &nended);
    starlin__progress_ready(progress, &works[0]);
    starlin__progress_ready(progress, &works[1]);
    wait_until(&nended, 2);
    CHECK(starlin__now_us() - begin_us >= 200e3);
    starlin__progress_destroy(progress);
    CHECK_EQ_INT(failure.status, STARLIN_ERR_TIMEOUT);
    CHECK_CONTAINS(failure.text, "a collective did not complete within 200 ms");
    CHECK_EQ_INT(atomic_load(&nfailures), 1);
}

int main(void)
{
    step_limit(100);
    for (int has_core = 0; has_core < 2; has_core++) {
        check_order(has_core);
        check_failure(has_core);
        check_two_failures(has_core);
        check_refused(has_core);
        check_backlog(has_core);
        check_time_limit(has_core);
    }
    return CHECK_RESULT();
}
