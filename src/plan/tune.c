/* SPDX-License-Identifier: BSD-3-Clause */
/* The tune file: where it lies, lookups, and replacing it while others read and write. Invariants: the file
 * under its final name is always complete; nothing but this user's directory is touched. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "plan/tune.h"

#include "plan/tune_text.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_SIZE 1024
/* Another version of the format has another name, so two versions of the library leave each other alone. */
#define FILE_NAME   "curves-1.txt"
#define MAX_NBYTES  (16 << 20)
#define MAX_ENTRIES 1024
/* Writers hold the lock for about a millisecond; on a file system without locks nobody waits for ever. */
#define LOCK_WAIT_MS 2000

/* ---------------------------------------------------------------------- path */

static bool tune_directory(char *path, size_t size)
{
    const char *directory = getenv("STARLIN_TUNE_DIR"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length;
    if (directory != NULL && directory[0] != 0)
        length = snprintf(path, size, "%s", directory);
    else if (cache != NULL && cache[0] == '/') /* a relative one is to be ignored, says its specification */
        length = snprintf(path, size, "%s/starlin/tune", cache);
    else if (home != NULL && home[0] != 0)
        length = snprintf(path, size, "%s/.cache/starlin/tune", home);
    else
        length = -1;
    return length >= 0 && (size_t)length < size;
}

bool starlin__tune_path(char *path, size_t size)
{
    char directory[PATH_SIZE];
    if (tune_directory(directory, sizeof(directory))) {
        int length = snprintf(path, size, "%s/%s", directory, FILE_NAME);
        if (length >= 0 && (size_t)length < size)
            return true;
    }
    if (size > 0)
        path[0] = 0;
    return false;
}

/* The directory and those above it. A failure shows when the file is opened. */
static void make_directories(const char *file)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s", file);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
}

/* ------------------------------------------------------------------- reading */

/* The whole file; *text_p is NULL when there is none. False with errno set when it cannot be read. */
static bool read_file(const char *path, char **text_p, size_t *nbytes_p)
{
    struct stat stat;
    int error = 0;
    *text_p = NULL;
    *nbytes_p = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT;
    if (fstat(file, &stat) != 0)
        error = errno;
    else if (!S_ISREG(stat.st_mode))
        error = EINVAL;
    else if (stat.st_size > MAX_NBYTES)
        error = EFBIG;
    char *text = error != 0 ? NULL : starlin__alloc((size_t)stat.st_size + 1);
    if (error == 0 && text == NULL)
        error = ENOMEM;
    while (error == 0 && *nbytes_p < (size_t)stat.st_size) {
        ssize_t ret = read(file, text + *nbytes_p, (size_t)stat.st_size - *nbytes_p);
        if (ret > 0)
            *nbytes_p += (size_t)ret;
        else if (ret == 0 || errno != EINTR)
            error = ret == 0 ? EIO : errno;
    }
    close(file);
    if (error == 0) {
        *text_p = text;
        return true;
    }
    starlin__free(text);
    errno = error;
    return false;
}

static bool same_but_machine(const starlin__tune_key_t *a, const starlin__tune_key_t *b)
{
    return strcmp(a->compute, b->compute) == 0 && strcmp(a->comm, b->comm) == 0 &&
           strcmp(a->parameters, b->parameters) == 0 && a->nranks == b->nranks && a->n == b->n &&
           a->k == b->k && a->dtype == b->dtype && a->out_dtype == b->out_dtype;
}

static bool same_machine(const starlin__tune_key_t *a, const starlin__tune_key_t *b)
{
    return strcmp(a->device, b->device) == 0 && strcmp(a->versions, b->versions) == 0;
}

/* Numbers are written with a point whatever the program's language is. */
static locale_t locale_enter(locale_t *saved_p)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *saved_p = plain == (locale_t)0 ? (locale_t)0 : uselocale(plain);
    return plain;
}

static void locale_leave(locale_t plain, locale_t saved)
{
    if (plain == (locale_t)0)
        return;
    uselocale(saved);
    freelocale(plain);
}

/* Looks through the whole text, so that a file damaged anywhere is not believed. */
static bool text_find(const char *path, const char *text, size_t nbytes, const starlin__tune_key_t *key,
                      starlin__tune_entry_t *entry_p)
{
    starlin__tune_reader_t reader;
    starlin__tune_record_t record;
    starlin__tune_entry_t entry;
    char other[2 * STARLIN__TUNE_TEXT + 2] = "";
    bool found = false;
    if (starlin__tune_reader_open(&reader, text, nbytes)) {
        while (starlin__tune_reader_next(&reader, &record)) {
            if (!same_but_machine(&record.key, key))
                continue;
            if (same_machine(&record.key, key)) {
                entry = record.entry;
                found = true;
            } else {
                snprintf(other, sizeof(other), "%s, %s", record.device, record.versions);
            }
        }
    }
    if (reader.error != NULL) {
        starlin__log("tune file %s is ignored: line %u: %s", path, reader.line, reader.error);
        return false;
    }
    if (found)
        *entry_p = entry;
    else if (other[0] != 0)
        starlin__log("tuned curves of another device or version are ignored: %s; here: %s, %s", other,
                     key->device, key->versions);
    return found;
}

bool starlin__tune_load(const starlin__tune_key_t *key, starlin__tune_entry_t *entry_p)
{
    char path[PATH_SIZE];
    char *text;
    size_t nbytes;
    locale_t saved;
    if (!starlin__tune_path(path, sizeof(path)))
        return false;
    if (!read_file(path, &text, &nbytes)) {
        starlin__log("tune file %s is ignored: %s", path, strerror(errno));
        return false;
    }
    if (text == NULL)
        return false;
    locale_t plain = locale_enter(&saved);
    bool found = text_find(path, text, nbytes, key, entry_p);
    locale_leave(plain, saved);
    starlin__free(text);
    return found;
}

/* ------------------------------------------------------------------- writing */

/* An open file to close, or -1: no lock to be had, the last writer then wins. */
static int lock_take(const char *path)
{
    char name[PATH_SIZE + 8];
    snprintf(name, sizeof(name), "%s.lock", path);
    int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    for (int waited_ms = 0; file >= 0; waited_ms += 5) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return file;
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited_ms >= LOCK_WAIT_MS)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    starlin__log("tune file %s is written without a lock: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    return -1;
}

/* Copies the entries of other keys; of more than there is room for, the newest. */
static void copy_others(FILE *out, const char *path, const char *text, size_t nbytes,
                        const starlin__tune_key_t *key)
{
    starlin__tune_reader_t reader;
    starlin__tune_record_t record;
    size_t count = 0, skip = 0;
    if (starlin__tune_reader_open(&reader, text, nbytes))
        while (starlin__tune_reader_next(&reader, &record))
            count++;
    if (reader.error != NULL) {
        starlin__log("tune file %s is replaced: line %u: %s", path, reader.line, reader.error);
        return;
    }
    if (count >= MAX_ENTRIES)
        skip = count - MAX_ENTRIES + 1;
    starlin__tune_reader_open(&reader, text, nbytes);
    for (size_t i = 0; starlin__tune_reader_next(&reader, &record); i++)
        if (i >= skip && !(same_but_machine(&record.key, key) && same_machine(&record.key, key)))
            fwrite(record.begin, 1, (size_t)(record.end - record.begin), out);
}

/* Closes the file in any case. False with errno set. */
static bool write_file(int file, const char *path, const char *text, size_t nbytes,
                       const starlin__tune_key_t *key, const starlin__tune_entry_t *entry)
{
    FILE *out = fdopen(file, "w");
    if (out == NULL) {
        close(file);
        return false;
    }
    fchmod(file, 0644); /* as other cache files, not as mkstemp's private ones */
    fputs(STARLIN__TUNE_HEADER "\n", out);
    if (text != NULL)
        copy_others(out, path, text, nbytes, key);
    starlin__tune_print(out, key, entry);
    /* no fsync: what a crash of the machine leaves behind is refused by the reader and measured again */
    bool written = fflush(out) == 0 && ferror(out) == 0;
    int reason = errno;
    bool closed = fclose(out) == 0;
    if (!written)
        errno = reason;
    return written && closed;
}

/* Under the lock: what the file holds now plus the entry, under a name of its own, then renamed. False with
 * errno set. */
static bool replace_file(const char *path, const starlin__tune_key_t *key, const starlin__tune_entry_t *entry)
{
    char name[PATH_SIZE + 16], *text;
    size_t nbytes;
    if (!read_file(path, &text, &nbytes))
        return false;
    snprintf(name, sizeof(name), "%s.XXXXXX", path);
    int file = mkstemp(name);
    bool done = file >= 0 && write_file(file, path, text, nbytes, key, entry) && rename(name, path) == 0;
    int reason = errno;
    if (file >= 0 && !done)
        unlink(name);
    starlin__free(text);
    errno = reason;
    return done;
}

starlin_status_t starlin__tune_store(const starlin__tune_key_t *key, const starlin__tune_entry_t *entry)
{
    char path[PATH_SIZE];
    locale_t saved;
    const char *fault = starlin__tune_fault(key, entry);
    if (fault != NULL)
        return starlin__error(STARLIN_ERR_INVALID, "tune entry: %s", fault);
    if (!starlin__tune_path(path, sizeof(path)))
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "no directory for tuned curves: set STARLIN_TUNE_DIR (at most %d bytes)",
                              PATH_SIZE - 32);
    make_directories(path);
    int lock = lock_take(path);
    locale_t plain = locale_enter(&saved);
    bool written = replace_file(path, key, entry);
    int reason = errno;
    locale_leave(plain, saved);
    if (lock >= 0)
        close(lock);
    if (!written)
        return starlin__error(reason == ENOMEM ? STARLIN_ERR_NO_MEMORY : STARLIN_ERR_UNSUPPORTED,
                              "cannot write tuned curves to %s: %s", path, strerror(reason));
    return STARLIN_SUCCESS;
}
