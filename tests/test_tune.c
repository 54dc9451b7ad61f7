/* SPDX-License-Identifier: BSD-3-Clause */
/* The tune file: round trip, damage of every kind, other versions and machines, writers side by side. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "plan/tune_text.h"

#include <locale.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64], path[256];

static starlin__tune_key_t key_make(void)
{
    return (starlin__tune_key_t){.device = "NVIDIA H200",
                                 .versions = "driver 580.1 cublas 13.1",
                                 .compute = "cublas",
                                 .comm = "model",
                                 .parameters = "gbps=223,ctas=8",
                                 .nranks = 2,
                                 .n = 8192,
                                 .k = 16384,
                                 .dtype = STARLIN_BF16,
                                 .out_dtype = STARLIN_BF16};
}

/* Numbers that need all their digits; `mark` tells entries apart. */
static starlin__tune_entry_t entry_make(double mark)
{
    starlin__tune_entry_t entry = {.task_us = mark, .ncomms = 2};
    for (size_t i = 0; i < STARLIN__CURVE_POINTS; i++)
        starlin__curve_add(&entry.gemm, 512.0 * (double)(i + 1), 1e3 / 3 * (double)(i + 1));
    for (size_t c = 0; c < entry.ncomms; c++) {
        entry.comms[c].ctas = 8 * (unsigned)c;
        entry.comms[c].gemm_slowdown = 1 + 1.0 / 7;
        entry.comms[c].comm_slowdown = 1.1;
        entry.comms[c].comm_delay_us = 950.25;
        starlin__curve_add(&entry.comms[c].curve, 0, 1e-300);
        starlin__curve_add(&entry.comms[c].curve, 1e15 / 3, 12345.678901234567);
    }
    return entry;
}

static void file_write(const char *text, size_t nbytes)
{
    FILE *out = fopen(path, "w");
    CHECK(out != NULL);
    if (out == NULL)
        return;
    CHECK_EQ_INT(fwrite(text, 1, nbytes, out), nbytes);
    fclose(out);
}

static size_t file_read(char *text, size_t size)
{
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return 0;
    size_t nbytes = fread(text, 1, size - 1, in);
    text[nbytes] = 0;
    fclose(in);
    return nbytes;
}

static bool loads(const starlin__tune_key_t *key, double mark)
{
    starlin__tune_entry_t entry;
    return starlin__tune_load(key, &entry) && entry.task_us >= mark && entry.task_us <= mark;
}

static void test_round_trip(void)
{
    starlin__tune_key_t key = key_make(), other = key_make();
    starlin__tune_entry_t entry = entry_make(4.5), loaded;
    memset(&loaded, 0x55, sizeof(loaded));
    starlin__tune_entry_t before = loaded;
    CHECK(!starlin__tune_load(&key, &loaded)); /* no file yet, nor a directory */
    CHECK(memcmp(&before, &loaded, sizeof(loaded)) == 0);
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    CHECK(starlin__tune_load(&key, &loaded));
    CHECK(memcmp(&entry, &loaded, sizeof(entry)) == 0);

    other.k = 1;
    other.parameters = "";
    CHECK(!starlin__tune_load(&other, &loaded));
    entry = entry_make(7);
    CHECK_STATUS(starlin__tune_store(&other, &entry), STARLIN_SUCCESS);
    entry = entry_make(5.5); /* replaces the first, keeps the second */
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    CHECK(loads(&key, 5.5));
    CHECK(loads(&other, 7));
}

/* As many numbers of CTAs as there is room for, every curve full; one more is refused, and so is a number
 * that comes twice or a damaged last curve. */
static void test_most_comms(void)
{
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(2), loaded;
    for (size_t c = 0; c < STARLIN__TUNE_COMMS; c++) {
        entry.comms[c] = entry.comms[0];
        entry.comms[c].ctas = (unsigned)(c * c);
        entry.comms[c].gemm_slowdown = 1 + (double)c / 3;
        entry.comms[c].curve.npoints = 0;
        for (size_t i = 0; i < STARLIN__CURVE_POINTS; i++)
            CHECK(starlin__curve_add(&entry.comms[c].curve, 1e15 / 3 * (double)(i + 1),
                                     1e5 / 7 * (double)(i + c + 1)));
    }
    entry.ncomms = STARLIN__TUNE_COMMS;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    CHECK(starlin__tune_load(&key, &loaded));
    CHECK(memcmp(&entry, &loaded, sizeof(entry)) == 0);

    entry.ncomms = STARLIN__TUNE_COMMS + 1;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
    entry.ncomms = STARLIN__TUNE_COMMS;
    entry.comms[STARLIN__TUNE_COMMS - 1].ctas = 1;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
    entry.comms[STARLIN__TUNE_COMMS - 1].ctas = 99;
    entry.comms[STARLIN__TUNE_COMMS - 1].curve.size[1] = 0;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
    CHECK(starlin__tune_load(&key, &loaded)); /* the one that was stored */
    CHECK_EQ_INT(loaded.comms[STARLIN__TUNE_COMMS - 1].ctas, 49);
}

/* Every field of the key counts. */
static void test_key(void)
{
    starlin__tune_key_t keys[10];
    for (size_t i = 0; i < 10; i++)
        keys[i] = key_make();
    keys[0].device = "another device";
    keys[1].versions = "driver 999";
    keys[2].compute = "cblas";
    keys[3].comm = "nccl";
    keys[4].parameters = "gbps=60,ctas=8";
    keys[5].nranks = 3;
    keys[6].n = 1;
    keys[7].k = 2;
    keys[8].dtype = STARLIN_F32;
    keys[9].out_dtype = STARLIN_F32;
    starlin__tune_entry_t entry = entry_make(1);
    starlin__tune_key_t key = key_make();
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    for (size_t i = 0; i < 10; i++)
        CHECK(!starlin__tune_load(&keys[i], &entry));
    for (size_t i = 0; i < 10; i++) {
        entry = entry_make(10 + (double)i);
        CHECK_STATUS(starlin__tune_store(&keys[i], &entry), STARLIN_SUCCESS);
    }
    for (size_t i = 0; i < 10; i++)
        CHECK(loads(&keys[i], 10 + (double)i));
    CHECK(loads(&key, 1));
}

/* Cut anywhere, or with any one byte changed: refused, or read as an entry that keeps the rules. */
static void test_damage(void)
{
    static char text[65536], broken[65536];
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(1), loaded;
    unlink(path);
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    size_t nbytes = file_read(text, sizeof(text));
    CHECK(nbytes > 500);
    for (size_t length = 0; length < nbytes; length += 1 + length % 7) {
        file_write(text, length);
        CHECK(!starlin__tune_load(&key, &loaded));
    }
    size_t accepted = 0, count = 0;
    for (size_t at = 0; at < nbytes; at += 3) {
        static const char bytes[] = {'\0', '\n', ' ', '9', '-', 'x', '\xff'};
        memcpy(broken, text, nbytes);
        broken[at] = bytes[at % sizeof(bytes)];
        file_write(broken, nbytes);
        count++;
        if (!starlin__tune_load(&key, &loaded))
            continue;
        accepted++;
        CHECK(starlin__tune_fault(&key, &loaded) == NULL);
    }
    CHECK(accepted < count / 2); /* another digit is another number, the rest is seen */
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS); /* replaces a damaged file */
    CHECK(loads(&key, 1));
}

/* A line replaced by another: `line` is what it starts with. */
static void refused(const char *line, const char *replacement)
{
    static char text[65536], changed[65536];
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(1);
    unlink(path);
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    file_read(text, sizeof(text));
    const char *at = strstr(text, line);
    CHECK(at != NULL);
    if (at == NULL)
        return;
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, replacement, strchr(at, '\n'));
    file_write(changed, strlen(changed));
    check_count++;
    if (starlin__tune_load(&key, &entry))
        CHECK_FAIL("accepted: \"%s\"", replacement);
}

static void test_refused(void)
{
    refused("starlin-tune 1", "starlin-tune 2"); /* another version */
    refused("starlin-tune 1", "");
    refused("shape ", "shape 0 8192 16384 bf16 bf16");
    refused("shape ", "shape 2 8192 99999999999999999999 bf16 bf16");
    refused("shape ", "shape 2 8192 16384 bf16 bf17");
    refused("shape ", "shape 2 8192 16384 bf16 bf16 x");
    refused("task ", "task nan 2");
    refused("task ", "task 1e999 2");
    refused("task ", "task -1 2");
    refused("task ", "task 0x1p3 2");
    refused("task ", "task 1 3");
    refused("task ", "task 1 9");
    refused("gemm ", "gemm 25 1 1");
    refused("gemm ", "gemm 0");
    refused("gemm ", "gemm 2 1 1 1 2");
    refused("gemm ", "gemm 2 1 1 2");
    refused("gemm ", "gemm 1 1 1 2 2");
    refused("gemm ", "gemm 99999999999999999999 1 1");
    refused("ctas 0", "ctas 8 1 1 0"); /* 8 is there already */
    refused("ctas 0", "ctas 0 0.5 1 0");
    refused("end", "entry");
}

static void test_writer_rules(void)
{
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(1);
    char longer[STARLIN__TUNE_TEXT + 1];
    memset(longer, 'x', sizeof(longer));
    longer[STARLIN__TUNE_TEXT - 1] = 0; /* just fits */
    key.device = longer;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    CHECK(loads(&key, 1));
    longer[STARLIN__TUNE_TEXT - 1] = 'x';
    longer[STARLIN__TUNE_TEXT] = 0;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
    key.device = "two\nlines";
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
    key = key_make();
    entry.ncomms = 0;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
    entry = entry_make(1);
    entry.comms[1].gemm_slowdown = 0.9;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_INVALID);
}

static void test_places(void)
{
    char place[256], expected[300];
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(1);
    unsetenv("STARLIN_TUNE_DIR");
    setenv("XDG_CACHE_HOME", "/a/cache", 1);
    setenv("HOME", directory, 1);
    CHECK(starlin__tune_path(place, sizeof(place)));
    CHECK_EQ_STR(place, "/a/cache/starlin/tune/curves-1.txt");
    CHECK(!starlin__tune_path(place, 10));
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(starlin__tune_path(place, sizeof(place)));
    snprintf(expected, sizeof(expected), "%s/.cache/starlin/tune/curves-1.txt", directory);
    CHECK_EQ_STR(place, expected);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_UNSUPPORTED);
    CHECK(!starlin__tune_load(&key, &entry));
    setenv("STARLIN_TUNE_DIR", "/dev/null/nowhere", 1);
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_UNSUPPORTED);
    CHECK(!starlin__tune_load(&key, &entry));
    snprintf(expected, sizeof(expected), "%s/tune", directory);
    setenv("STARLIN_TUNE_DIR", expected, 1);

    unlink(path); /* a directory in the file's place */
    CHECK_EQ_INT(mkdir(path, 0777), 0);
    CHECK(!starlin__tune_load(&key, &entry));
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_UNSUPPORTED);
    CHECK_EQ_INT(rmdir(path), 0);
}

/* Out of memory: no entry of others is lost. */
static void test_no_memory(void)
{
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(3);
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK(!loads(&key, 3));
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_ERR_NO_MEMORY);
    starlin__alloc_fail_at = 0;
    CHECK(loads(&key, 3));
}

/* Several processes store entries of their own at once; none is lost and a reader never sees half a file. */
static void test_writers(void)
{
    enum { WRITERS = 4, ENTRIES = 8 };
    pid_t children[WRITERS];
    starlin__tune_key_t key = key_make();
    starlin__tune_entry_t entry = entry_make(1);
    CHECK_STATUS(starlin__tune_store(&key, &entry), STARLIN_SUCCESS);
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        if (children[w] != 0)
            continue;
        int failures = 0;
        for (int e = 0; e < ENTRIES; e++) {
            starlin__tune_key_t own = key_make();
            own.n = 100000 + 100 * w + e;
            entry = entry_make((double)own.n);
            failures += starlin__tune_store(&own, &entry) != STARLIN_SUCCESS;
            failures += !loads(&own, (double)own.n) || !loads(&key, 1);
        }
        _exit(failures == 0 ? 0 : 1);
    }
    for (int w = 0; w < WRITERS; w++) {
        int state = -1;
        CHECK_EQ_INT(waitpid(children[w], &state, 0), children[w]);
        CHECK_EQ_INT(state, 0);
        for (int e = 0; e < ENTRIES; e++) {
            key.n = 100000 + 100 * w + e;
            CHECK(loads(&key, (double)key.n));
        }
    }
}

int main(void)
{
    char template[] = "/tmp/starlin-tune-XXXXXX", command[128];
    if (mkdtemp(template) == NULL) {
        perror(template);
        return 1;
    }
    snprintf(directory, sizeof(directory), "%s", template);
    snprintf(path, sizeof(path), "%s/tune", directory);
    setenv("STARLIN_TUNE_DIR", path, 1);
    snprintf(path, sizeof(path), "%s/tune/curves-1.txt", directory);
    setlocale(LC_ALL, "de_DE.UTF-8"); /* a decimal comma, where that locale is installed */

    test_round_trip();
    test_most_comms();
    test_key();
    test_damage();
    test_refused();
    test_writer_rules();
    test_places();
    test_no_memory();
    test_writers();
    snprintf(command, sizeof(command), "rm -r %s", directory);
    CHECK_EQ_INT(system(command), 0);
    return CHECK_RESULT();
}
