/* SPDX-License-Identifier: BSD-3-Clause */
/* The wisdom file: round trip, damage of every kind, writers side by side, places that cannot be written. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/plan.h"

enum { NENTRIES = 8, NDAMAGED = 400 };
static char directory[] = "/tmp/starlin-wisdom-XXXXXX", path[300], notice[224];

static const char *key_of(int i)
{
    static char key[64];
    snprintf(key, sizeof key, "m=%d ranks=2 device=CPU, a blank", 100 + i);
    return key;
}

static starlin__wisdom_t wisdom_of(int i)
{
    starlin__wisdom_t wisdom = {.nchunks = 3, .measured_ns = 1234567890123456ull, .serial_ns = (uint64_t)i};
    wisdom.rows[0] = 50 + i;
    wisdom.rows[1] = 49;
    wisdom.rows[2] = 1;
    return wisdom;
}

static void save(int i)
{
    starlin__wisdom_t wisdom = wisdom_of(i);
    starlin__wisdom_save(path, key_of(i), &wisdom, notice, sizeof notice);
}

/* Is the key's entry there, and what was put in? */
static bool loads(int i)
{
    starlin__wisdom_t wisdom, expected = wisdom_of(i);

    memset(&wisdom, 0, sizeof wisdom);
    if (!starlin__wisdom_load(path, key_of(i), &wisdom, notice, sizeof notice))
        return false;
    CHECK(memcmp(&wisdom, &expected, sizeof wisdom) == 0);
    return true;
}

static size_t file_read(char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t nbytes = file != NULL ? fread(text, 1, size, file) : 0;

    if (file != NULL)
        fclose(file);
    return nbytes;
}

static void file_write(const char *text, size_t nbytes)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL && fwrite(text, 1, nbytes, file) == nbytes);
    if (file != NULL)
        fclose(file);
}

static void test_round_trip(void)
{
    CHECK(!loads(0)); /* no file yet, nor its directory */
    CHECK_EQ_STR(notice, "");
    for (int i = 0; i < NENTRIES; i++) {
        save(i);
        CHECK_EQ_STR(notice, "");
    }
    save(3); /* again: its older entry goes */
    for (int i = 0; i < NENTRIES; i++)
        CHECK(loads(i));
    CHECK_EQ_STR(notice, "");
    CHECK(!loads(NENTRIES)); /* another key */
    CHECK_EQ_STR(notice, "");
}

/* One byte changed, taken out or put in, or the end cut off: always noticed, and no wrong entry believed. */
static void test_damage(void)
{
    char whole[8192], damaged[8192];
    size_t nbytes = file_read(whole, sizeof whole);
    uint64_t state = 42;

    CHECK(nbytes > 500 && nbytes < sizeof whole - 1);
    for (int i = 0; i < NDAMAGED; i++) {
        size_t at, now = nbytes;
        int nloaded = 0;
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        at = (size_t)(state >> 33) % nbytes;
        memcpy(damaged, whole, nbytes);
        if (i % 4 == 0)
            damaged[at] = (char)(damaged[at] ^ (1 << (state >> 20) % 8));
        else if (i % 4 == 1)
            damaged[at] = (char)(damaged[at] + 1 + (char)((state >> 20) % 255));
        else if (i % 4 == 2)
            memmove(damaged + at, damaged + at + 1, --now - at);
        else
            now = at;
        file_write(damaged, now);
        for (int k = 0; k < NENTRIES; k++)
            nloaded += loads(k);
        check_count++;
        if (notice[0] == '\0')
            CHECK_FAIL("damage %d at %zu of %zu goes unnoticed (%d entries)", i, at, nbytes, nloaded);
        CHECK(nloaded < NENTRIES || at < 32); /* the header's */
    }
    file_write(whole, nbytes);
    CHECK(loads(0));
    CHECK_EQ_STR(notice, "");
    memcpy(damaged, whole, nbytes);
    damaged[nbytes - 20] ^= 1; /* the last entry's key */
    file_write(damaged, nbytes);
    save(3); /* a writer leaves out what is damaged */
    for (int k = 0; k < NENTRIES; k++)
        CHECK(loads(k));
    CHECK_EQ_STR(notice, "");
}

static void test_writers(void)
{
    enum { NWRITERS = 6, EACH = 10 };
    pid_t writers[NWRITERS];

    for (int w = 0; w < NWRITERS; w++) {
        writers[w] = fork();
        if (writers[w] == 0) {
            for (int i = 0; i < EACH; i++)
                do
                    save(100 + w * EACH + i);
                while (strstr(notice, "cannot be kept") != NULL);
            _exit(0);
        }
    }
    for (int w = 0; w < NWRITERS; w++) {
        int state = 1;
        CHECK(writers[w] > 0 && waitpid(writers[w], &state, 0) == writers[w]);
        CHECK_EQ_INT(state, 0);
    }
    for (int i = 0; i < NWRITERS * EACH; i++)
        CHECK(loads(100 + i));
    CHECK_EQ_STR(notice, "");
}

static void test_places(void)
{
    char kept[200];

    snprintf(kept, sizeof kept, "%.190s", path);
    snprintf(path, sizeof path, "%s/wisdom/below-a-file", kept);
    CHECK(!loads(0));
    save(0);
    CHECK_CONTAINS(notice, "cannot be kept");
    snprintf(path, sizeof path, "/proc/starlin/wisdom");
    save(0);
    CHECK_CONTAINS(notice, "cannot be kept");
    snprintf(path, sizeof path, "%s", directory); /* a directory */
    CHECK(!loads(0));
    CHECK(notice[0] != '\0');
    save(0);
    CHECK_CONTAINS(notice, "cannot be kept");
    snprintf(path, sizeof path, "%s", kept);
}

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 1;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
        setlocale(LC_ALL, "");
    snprintf(path, sizeof path, "%s/a/b/wisdom", directory);
    test_round_trip();
    test_damage();
    test_writers();
    test_places();
    if (fork() == 0)
        execlp("rm", "rm", "-rf", directory, (char *)NULL);
    wait(NULL);
    return CHECK_RESULT();
}
