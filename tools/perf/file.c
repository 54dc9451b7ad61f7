/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are complete or not there. */
#define _POSIX_C_SOURCE 200809L
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(const char *path, int number, perf_error_t *error)
{
    return perf_error_status(error, STARLIN_ERR_RUNTIME, "cannot write '%s': %s", path, strerror(number));
}

bool perf_file_open(perf_file_t *file, const char *path, perf_error_t *error)
{
    struct stat info;
    size_t nbytes = strlen(path) + 32;
    bool in_place = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    *file = (perf_file_t){.path = path, .temporary = malloc(nbytes)};
    if (file->temporary == NULL)
        return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a file name");
    if (in_place)
        snprintf(file->temporary, nbytes, "%s", path);
    else
        snprintf(file->temporary, nbytes, "%s.%ld.tmp", path, (long)getpid());
    file->stream = fopen(file->temporary, "w");
    if (file->stream != NULL)
        return true;
    failed(path, errno, error);
    free(file->temporary);
    return false;
}

bool perf_file_close(perf_file_t *file, bool keep, perf_error_t *error)
{
    bool in_place = strcmp(file->temporary, file->path) == 0;
    bool seen = ferror(file->stream) != 0;
    errno = 0;
    /* a full disk often shows only when the last buffer is flushed */
    if ((fclose(file->stream) != 0 || seen) && file->failed == 0)
        file->failed = errno != 0 ? errno : EIO;
    if (keep && file->failed == 0 && !in_place && rename(file->temporary, file->path) != 0)
        file->failed = errno;
    if ((!keep || file->failed != 0) && !in_place)
        unlink(file->temporary);
    free(file->temporary);
    file->temporary = NULL;
    return file->failed == 0 || !keep || failed(file->path, file->failed, error);
}
