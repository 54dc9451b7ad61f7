/* SPDX-License-Identifier: BSD-3-Clause */
/* The wisdom file: a header "starlin wisdom 1 ENTRIES", then a line per decision,
 *     CHECKSUM MEASURED_NS SERIAL_NS ROWS,ROWS,... KEY
 * with whole numbers alone, so that no locale matters. The checksum covers the rest of the line. Writers take
 * turns at a lock file and replace the file in one step; what is damaged is left out then. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plan/plan.h"

enum { MOST_ENTRIES = 1000, MOST_NBYTES = 4 << 20, CHECKSUM_LENGTH = 16, PATH_SIZE = 600 };
static const char header_format[] = "starlin wisdom 1 %zu\n";

/* A file in memory, read line by line. */
typedef struct text {
    char *start, *end, *next;
    size_t npromised, nlines, ngood;
} text_t;

/* False: there is none (no notice), or it is no use. The text may be freed in any case. */
static bool text_open(const char *path, text_t *text, char *notice, size_t size)
{
    FILE *file = fopen(path, "re");
    struct stat info = {0};
    char header[64];
    size_t length;

    memset(text, 0, sizeof *text);
    if (file == NULL && (errno == ENOENT || errno == ENOTDIR))
        return false;
    if (file != NULL && fstat(fileno(file), &info) == 0 && info.st_size <= MOST_NBYTES)
        text->start = starlin__alloc((size_t)info.st_size + 1);
    if (text->start != NULL)
        text->end = text->start + fread(text->start, 1, (size_t)info.st_size, file);
    if (file != NULL)
        fclose(file);
    if (text->start != NULL && sscanf(text->start, "starlin wisdom 1 %9zu", &text->npromised) == 1) {
        length = (size_t)snprintf(header, sizeof header, header_format, text->npromised);
        text->next = text->start + length;
        if (text->next <= text->end && memcmp(text->start, header, length) == 0)
            return true;
    }
    snprintf(notice, size, "wisdom is not used: %s is damaged, of another version, or cannot be read", path);
    return false;
}

static void checksum(const char *line, size_t length, char hex[CHECKSUM_LENGTH + 1])
{
    snprintf(hex, CHECKSUM_LENGTH + 1, "%016llx",
             (unsigned long long)starlin__hash(STARLIN__HASH_INIT, line, length));
}

/* The next line that is whole, with a zero at its end; NULL at the end of the text. */
static char *next_line(text_t *text)
{
    while (text->next < text->end) {
        char *line = text->next, *end = memchr(line, '\n', (size_t)(text->end - line));
        char hex[CHECKSUM_LENGTH + 1];

        text->nlines++;
        text->next = end != NULL ? end + 1 : text->end;
        if (end == NULL || end - line <= CHECKSUM_LENGTH)
            continue;
        checksum(line + CHECKSUM_LENGTH, (size_t)(end - line) - CHECKSUM_LENGTH, hex);
        if (memcmp(line, hex, CHECKSUM_LENGTH) != 0)
            continue;
        *end = '\0';
        text->ngood++;
        return line;
    }
    return NULL;
}

static bool has_key(const char *line, const char *key)
{
    for (int i = 0; i < 4 && line != NULL; i++) {
        line = strchr(line, ' ');
        line = line != NULL ? line + 1 : NULL;
    }
    return line != NULL && strcmp(line, key) == 0;
}

static bool parse(char *line, starlin__wisdom_t *wisdom)
{
    char *at = line + CHECKSUM_LENGTH;

    wisdom->measured_ns = strtoull(at, &at, 10);
    wisdom->serial_ns = strtoull(at, &at, 10);
    for (wisdom->nchunks = 0; *at == (wisdom->nchunks == 0 ? ' ' : ','); wisdom->nchunks++) {
        if (wisdom->nchunks == STARLIN__MAX_CHUNKS)
            return false;
        wisdom->rows[wisdom->nchunks] = strtoll(at + 1, &at, 10);
    }
    return wisdom->nchunks > 0 && *at == ' ';
}

bool starlin__wisdom_load(const char *path, const char *key, starlin__wisdom_t *wisdom, char *notice,
                          size_t size)
{
    text_t text;
    bool found = false;

    notice[0] = '\0';
    if (text_open(path, &text, notice, size)) {
        char *line;
        while ((line = next_line(&text)) != NULL)
            found = (has_key(line, key) && parse(line, wisdom)) || found;
        if (text.ngood != text.npromised || text.nlines != text.npromised)
            snprintf(notice, size, "wisdom is damaged: %s: %zu of %zu entries are left", path, text.ngood,
                     text.npromised);
    }
    starlin__free(text.start);
    return found;
}

/* A locked file beside it, in directories made for it; waits for a fifth of a second at most. Negative, with
 * errno: cannot be had. */
static int lock(const char *path)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char name[PATH_SIZE];
    int file;

    snprintf(name, sizeof name, "%s.lock", path);
    for (char *slash = strchr(name + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(name, 0777); /* what cannot be made shows when the file is opened */
        *slash = '/';
    }
    file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    for (int i = 0; file >= 0 && fcntl(file, F_SETLK, &whole) != 0; i++) {
        if (errno != EACCES && errno != EAGAIN)
            break; /* a file system without locks: the last writer wins */
        if (i == 100) {
            close(file);
            errno = EBUSY;
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return file;
}

static void write_entry(FILE *file, const char *key, const starlin__wisdom_t *wisdom)
{
    char *line = NULL, hex[CHECKSUM_LENGTH + 1];
    size_t length = 0;
    FILE *memory = open_memstream(&line, &length);

    if (memory == NULL)
        return;
    fprintf(memory, " %llu %llu", (unsigned long long)wisdom->measured_ns,
            (unsigned long long)wisdom->serial_ns);
    for (size_t i = 0; i < wisdom->nchunks; i++)
        fprintf(memory, "%c%lld", i == 0 ? ' ' : ',', (long long)wisdom->rows[i]);
    fprintf(memory, " %s", key);
    fclose(memory);
    checksum(line, length, hex);
    fprintf(file, "%s%s\n", hex, line);
    free(line);
}

/* The good lines of before, but for the key's and the oldest beyond what there may be, and the new one. */
static bool replace(const char *path, const char *key, const starlin__wisdom_t *wisdom, text_t *before)
{
    char *lines[MOST_ENTRIES], *line, name[PATH_SIZE];
    size_t count = 0;
    int handle;
    FILE *file;
    bool ok;

    while ((line = next_line(before)) != NULL) {
        if (has_key(line, key))
            continue;
        if (count == MOST_ENTRIES - 1)
            memmove(lines, lines + 1, --count * sizeof *lines);
        lines[count++] = line;
    }
    snprintf(name, sizeof name, "%s.XXXXXX", path);
    handle = mkstemp(name);
    file = handle >= 0 ? fdopen(handle, "w") : NULL;
    if (file == NULL)
        return false;
    fprintf(file, header_format, count + 1);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s\n", lines[i]);
    write_entry(file, key, wisdom);
    ok = !ferror(file);
    ok = fclose(file) == 0 && ok && rename(name, path) == 0;
    if (!ok)
        unlink(name);
    return ok;
}

void starlin__wisdom_save(const char *path, const char *key, const starlin__wisdom_t *wisdom, char *notice,
                          size_t size)
{
    int locked = lock(path);
    text_t before = {0};
    bool ok = false;

    if (locked >= 0) {
        if (!text_open(path, &before, notice, size))
            before.next = before.end;
        ok = replace(path, key, wisdom, &before);
        starlin__free(before.start);
    }
    notice[0] = '\0';
    if (!ok)
        snprintf(notice, size, "wisdom cannot be kept: %s: %s", path, strerror(errno));
    if (locked >= 0)
        close(locked);
}
