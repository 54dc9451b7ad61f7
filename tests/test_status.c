/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses, error texts, log lines, dtypes, the allocator's counters, the hash. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "base/base.h"

static void test_strings(void)
{
    char version[32];

    CHECK_EQ_STR(starlin_status_string(STARLIN_SUCCESS), "success");
    CHECK_EQ_STR(starlin_status_string(STARLIN_ERR_NO_DEVICE), "no usable device");
    CHECK_EQ_STR(starlin_status_string((starlin_status_t)-999), "unknown status");
    CHECK_EQ_STR(starlin_status_string((starlin_status_t)1), "unknown status");
    CHECK_EQ_INT(STARLIN_ERR_RUNTIME, -9);
    snprintf(version, sizeof(version), "%d.%d.%d", STARLIN_VERSION_MAJOR, STARLIN_VERSION_MINOR,
             STARLIN_VERSION_PATCH);
    CHECK_EQ_STR(starlin_version(), version);
}

static void test_dtypes(void)
{
    CHECK_EQ_INT(starlin_dtype_nbytes(STARLIN_F32), 4);
    CHECK_EQ_INT(starlin_dtype_nbytes(STARLIN_F64), 8);
    CHECK_EQ_INT(starlin_dtype_nbytes(STARLIN_F16), 2);
    CHECK_EQ_INT(starlin_dtype_nbytes(STARLIN_BF16), 2);
    CHECK_EQ_INT(starlin_dtype_nbytes((starlin_dtype_t)4), 0);
    CHECK_EQ_STR(starlin_dtype_name(STARLIN_F32), "f32");
    CHECK_EQ_STR(starlin_dtype_name(STARLIN_F64), "f64");
    CHECK_EQ_STR(starlin_dtype_name(STARLIN_F16), "f16");
    CHECK_EQ_STR(starlin_dtype_name(STARLIN_BF16), "bf16");
    CHECK(starlin_dtype_name((starlin_dtype_t)-1) == NULL);
}

static void *other_thread(void *arg)
{
    snprintf(arg, 32, "%s.",
             starlin_last_error()); /* checked by the main thread: the counts are not atomic */
    starlin__error(STARLIN_ERR_BUSY, "of the other thread");
    return NULL;
}

static void test_last_error(void)
{
    char text[2000], of_thread[32] = "";
    pthread_t thread;

    CHECK_EQ_STR(starlin_last_error(), "");
    CHECK_STATUS(starlin__error(STARLIN_ERR_INVALID, "rows is %d", -3), STARLIN_ERR_INVALID);
    CHECK_EQ_STR(starlin_last_error(), "rows is -3");
    CHECK_EQ_INT(pthread_create(&thread, NULL, other_thread, of_thread), 0);
    CHECK_EQ_INT(pthread_join(thread, NULL), 0);
    CHECK_EQ_STR(of_thread, ".");
    CHECK_EQ_STR(starlin_last_error(), "rows is -3");
    starlin__error(STARLIN_ERR_INVALID, "chunk 1: %s", starlin_last_error());
    CHECK_EQ_STR(starlin_last_error(), "chunk 1: rows is -3");
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    starlin__error(STARLIN_ERR_INVALID, "%s", text);
    CHECK(strlen(starlin_last_error()) >= 240 && strlen(starlin_last_error()) < sizeof(text));
}

/* What one error and one log line print on stderr with this STARLIN_LOG. */
static void capture(const char *level, char *text, size_t size)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    size_t length = 0;

    CHECK(file != NULL && saved >= 0);
    if (file == NULL || saved < 0)
        return;
    if (level == NULL)
        unsetenv("STARLIN_LOG");
    else
        setenv("STARLIN_LOG", level, 1);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    starlin__error(STARLIN_ERR_COMM, "link %d", 7);
    starlin__log("bound to %s", "0-3");
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    unsetenv("STARLIN_LOG");
    rewind(file);
    length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
}

static void test_log(void)
{
    static const char error_line[] = "starlin: error: communicator failure: link 7\n";
    static const char both_lines[] = "starlin: error: communicator failure: link 7\nstarlin: bound to 0-3\n";
    char text[256] = "";

    capture(NULL, text, sizeof(text));
    CHECK_EQ_STR(text, "");
    capture("error", text, sizeof(text));
    CHECK_EQ_STR(text, error_line);
    capture("info", text, sizeof(text));
    CHECK_EQ_STR(text, both_lines);
    capture("debug", text, sizeof(text));
    CHECK_EQ_STR(text, both_lines);
}

static void *allocate_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++)
        starlin__free(starlin__alloc(8));
    return NULL;
}

static void test_alloc(void)
{
    uint64_t before = starlin__alloc_count;
    pthread_t threads[4];
    unsigned char *memory = starlin__alloc(100);

    CHECK(memory != NULL);
    for (int i = 0; memory != NULL && i < 100; i++)
        CHECK_EQ_INT(memory[i], 0);
    starlin__free(memory);
    starlin__free(NULL);
    memory = starlin__alloc(0);
    CHECK(memory != NULL);
    starlin__free(memory);
    CHECK_EQ_INT(starlin__alloc_count - before, 2);

    starlin__alloc_fail_at = starlin__alloc_count + 2;
    memory = starlin__alloc(1);
    CHECK(memory != NULL);
    starlin__free(memory);
    CHECK(starlin__alloc(1) == NULL);
    memory = starlin__alloc(1);
    CHECK(memory != NULL);
    starlin__free(memory);
    starlin__alloc_fail_at = 0;

    before = starlin__alloc_count;
    for (int i = 0; i < 4; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, allocate_often, NULL), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ_INT(pthread_join(threads[i], NULL), 0);
    CHECK_EQ_INT(starlin__alloc_count - before, 40000);
}

static void test_hash_and_clock(void)
{
    uint64_t whole = starlin__hash(STARLIN__HASH_INIT, "foobar", 6);
    double start = starlin__now_us();

    /* published values of 64-bit FNV-1a */
    CHECK(starlin__hash(STARLIN__HASH_INIT, "", 0) == 0xcbf29ce484222325u);
    CHECK(starlin__hash(STARLIN__HASH_INIT, "a", 1) == 0xaf63dc4c8601ec8cu);
    CHECK(whole == 0x85944171f73967e8u);
    CHECK(starlin__hash(starlin__hash(STARLIN__HASH_INIT, "foo", 3), "bar", 3) == whole);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    CHECK(starlin__now_us() - start >= 2000);
    CHECK(starlin__now_us() - start < 60e6);
}

int main(void)
{
    unsetenv("STARLIN_LOG");
    test_strings();
    test_dtypes();
    test_last_error();
    test_log();
    test_alloc();
    test_hash_and_clock();
    return CHECK_RESULT();
}
