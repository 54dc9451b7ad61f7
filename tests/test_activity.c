/* SPDX-License-Identifier: BSD-3-Clause */
/* From launches to spans, with a source that makes the times up: what waits for what, clocks that disagree,
 * launches without a time, and no room. */
#include "record/activity.h"
#include "check.h"

enum { CAPACITY = 8 };

/* What the source will say of each slot. */
static struct {
    double start_us, end_us;
    bool found;
} answers[CAPACITY];
static unsigned nbegun, nended, nopens, ncloses;
static bool open_fails, begin_fails;

static starlin_status_t fake_open(starlin__device_t *device, size_t capacity, void **state_p)
{
    (void)device;
    CHECK_EQ_INT(capacity, CAPACITY);
    nopens++;
    if (open_fails)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "fake: refused");
    *state_p = answers;
    return STARLIN_SUCCESS;
}

static void fake_close(void *state)
{
    CHECK(state == answers);
    ncloses++;
}

static bool fake_begin(void *state, size_t slot, starlin__stream_t stream, starlin__event_t *after)
{
    (void)state;
    (void)after;
    CHECK(slot < CAPACITY);
    CHECK(stream == STARLIN__STREAM_COMPUTE || stream == STARLIN__STREAM_COMM);
    nbegun++;
    return !begin_fails;
}

static bool fake_end(void *state, size_t slot, starlin__stream_t stream)
{
    (void)state;
    (void)stream;
    CHECK(slot < CAPACITY);
    nended++;
    return true;
}

static starlin_status_t fake_resolve(void *state, starlin__launch_t *launches, size_t n)
{
    (void)state;
    for (size_t i = 0; i < n; i++) {
        launches[i].span.start_us = answers[i].start_us;
        launches[i].span.end_us = answers[i].end_us;
        launches[i].found = answers[i].found;
    }
    return STARLIN_SUCCESS;
}

static const starlin__activity_ops_t fake = {.source = "fake",
                                             .open = fake_open,
                                             .close = fake_close,
                                             .begin = fake_begin,
                                             .end = fake_end,
                                             .resolve = fake_resolve};

static starlin__launch_t *mark(starlin__activity_t *activity, starlin__span_kind_t kind, uint64_t sequence,
                               const void *reads, const void *writes)
{
    starlin__launch_t what = {
        .span = {.kind = kind, .sequence = sequence, .rows = 1}, .reads = reads, .writes = writes};
    starlin__launch_t *launch = starlin__activity_begin(activity, &what, NULL);
    starlin__activity_end(activity, launch);
    return launch;
}

static void answer(size_t slot, double start_us, double end_us)
{
    answers[slot].start_us = start_us;
    answers[slot].end_us = end_us;
    answers[slot].found = true;
}

static void test_spans(starlin__activity_t *activity, starlin__timeline_t *timeline)
{
    int x, y, z; /* stand for matrices */
    starlin__span_t spans[CAPACITY];
    double now_us = starlin__now_us() + 1e6;
    CHECK(mark(activity, STARLIN__SPAN_GEMM, 1, &x, &y) == NULL); /* not enabled */
    CHECK_STATUS(starlin__activity_enable(activity, true), STARLIN_SUCCESS);
    mark(activity, STARLIN__SPAN_GEMM, 1, &x, &y);
    mark(activity, STARLIN__SPAN_COLLECTIVE, 1, &y, &y);
    mark(activity, STARLIN__SPAN_GEMM, 2, &y, &z);    /* needs the sum of the first */
    mark(activity, STARLIN__SPAN_GEMM, 3, &x, &z);    /* needs nothing */
    mark(activity, STARLIN__SPAN_GEMM, 4, &x, &z);    /* its time is lost */
    mark(activity, STARLIN__SPAN_ROWWISE, 5, &y, &z); /* needs the sum as well */
    answer(0, now_us, now_us + 10);
    answer(1, now_us + 15, now_us + 20);
    answer(2, now_us + 30, now_us + 40);
    answer(3, 1, 2); /* before its launch: the clocks are wrong */
    answers[4].found = false;
    answer(5, now_us + 50, now_us + 60);
    CHECK_STATUS(starlin__activity_collect(activity, timeline), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__timeline_read(timeline, spans, CAPACITY), 5);
    for (int i = 0; i < 5; i++)
        CHECK(spans[i].launch_us <= spans[i].start_us && spans[i].ready_us <= spans[i].start_us &&
              spans[i].start_us <= spans[i].end_us);
    CHECK(spans[0].start_us == now_us && spans[0].ready_us == spans[0].launch_us);
    CHECK(spans[1].ready_us == now_us + 10 && spans[1].start_us == now_us + 15);
    CHECK(spans[2].ready_us == now_us + 20 && spans[2].end_us == now_us + 40);
    CHECK(spans[4].ready_us == now_us + 20 && spans[4].kind == STARLIN__SPAN_ROWWISE);
    CHECK(spans[3].start_us == spans[3].launch_us && spans[3].end_us == spans[3].launch_us);
    CHECK_STATUS(starlin__activity_collect(activity, timeline), STARLIN_SUCCESS); /* nothing new */
    CHECK_EQ_INT(starlin__timeline_count(timeline, NULL), 5);
}

static void test_room(starlin__activity_t *activity, starlin__timeline_t *timeline)
{
    starlin__timeline_clear(timeline);
    for (size_t i = 0; i < CAPACITY; i++) {
        answer(i, 1, 2);
        CHECK(starlin__activity_is_full(activity) == (2 * i > CAPACITY));
        CHECK(mark(activity, STARLIN__SPAN_GEMM, 1, NULL, NULL) != NULL);
    }
    CHECK(mark(activity, STARLIN__SPAN_GEMM, 1, NULL, NULL) == NULL);
    CHECK_STATUS(starlin__activity_collect(activity, timeline), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__timeline_count(timeline, NULL), CAPACITY);
    starlin__timeline_clear(timeline);
    begin_fails = true;
    CHECK(mark(activity, STARLIN__SPAN_GEMM, 1, NULL, NULL) != NULL);
    begin_fails = false;
    CHECK_STATUS(starlin__activity_collect(activity, timeline), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__timeline_count(timeline, NULL), 0);
}

int main(void)
{
    starlin__activity_t *activity = NULL;
    starlin__timeline_t *timeline = NULL;
    CHECK_STATUS(starlin__timeline_create(64, &timeline), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__activity_create(&fake, NULL, CAPACITY, &activity), STARLIN_SUCCESS);
    if (timeline == NULL || activity == NULL)
        return 1;
    CHECK_STATUS(starlin__timeline_enable(timeline, true), STARLIN_SUCCESS);
    CHECK_EQ_STR(starlin__activity_source(activity), "fake");
    test_spans(activity, timeline);
    test_room(activity, timeline);
    CHECK_STATUS(starlin__activity_enable(activity, true), STARLIN_SUCCESS); /* twice is once */
    CHECK_EQ_INT(nopens, 1);
    CHECK_EQ_INT(nbegun, nended);
    CHECK_STATUS(starlin__activity_enable(activity, false), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__activity_enable(activity, false), STARLIN_SUCCESS);
    CHECK_EQ_INT(ncloses, 1);
    open_fails = true;
    CHECK_STATUS(starlin__activity_enable(activity, true), STARLIN_ERR_UNSUPPORTED);
    CHECK(mark(activity, STARLIN__SPAN_GEMM, 1, NULL, NULL) == NULL);
    starlin__activity_close(activity);
    CHECK_EQ_INT(ncloses, 1);
    starlin__activity_close(NULL);
    starlin__timeline_destroy(timeline);
    return CHECK_RESULT();
}
