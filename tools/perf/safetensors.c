/* SPDX-License-Identifier: BSD-3-Clause */
/* The file around the header: lengths, gaps, overlaps, and bounded reads (no mapping: a file that shrinks
 * while it is read must give an error, not a signal). */
#define _GNU_SOURCE
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "similar.h"

#define LENGTH_NBYTES     8u
#define MAX_HEADER_NBYTES 100000000u /* the format's own limit */

static bool read_at(const perf_safetensors_t *file, uint64_t offset, void *dst, size_t nbytes,
                    perf_error_t *error)
{
    char *out = dst;
    while (nbytes > 0) {
        ssize_t got = pread(file->fd, out, nbytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return perf_error_set(error, "%s: cannot read %zu bytes at byte %" PRIu64 ": %s", file->path,
                                  nbytes, offset, got < 0 ? strerror(errno) : "the file ends before");
        out += got;
        offset += (uint64_t)got;
        nbytes -= (size_t)got;
    }
    return true;
}

static bool open_file(perf_safetensors_t *file, uint64_t *file_nbytes_p, perf_error_t *error)
{
    struct stat info;
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return perf_error_set(error, "%s: cannot open: %s", file->path, strerror(errno));
    if (fstat(file->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return perf_error_set(error, "%s: not a regular file", file->path);
    *file_nbytes_p = (uint64_t)info.st_size;
    return true;
}

static bool read_header(perf_safetensors_t *file, perf_error_t *error)
{
    uint64_t file_nbytes = 0;
    unsigned char raw[LENGTH_NBYTES];
    if (!open_file(file, &file_nbytes, error))
        return false;
    if (file_nbytes < LENGTH_NBYTES)
        return perf_error_set(error, "%s: truncated: %" PRIu64 " bytes, the header length alone needs 8",
                              file->path, file_nbytes);
    if (!read_at(file, 0, raw, sizeof(raw), error))
        return false;
    uint64_t length = 0;
    for (unsigned i = 0; i < LENGTH_NBYTES; i++)
        length |= (uint64_t)raw[i] << (8 * i);
    if (length > file_nbytes - LENGTH_NBYTES)
        return perf_error_set(error,
                              "%s: header length is %" PRIu64 ", but only %" PRIu64
                              " bytes follow (not a safetensors "
                              "file, or a truncated one)",
                              file->path, length, file_nbytes - LENGTH_NBYTES);
    if (length > MAX_HEADER_NBYTES)
        return perf_error_set(error, "%s: header length is %" PRIu64 ", more than the allowed %u", file->path,
                              length, MAX_HEADER_NBYTES);
    char *header = malloc((size_t)length + 1);
    if (header == NULL)
        return perf_error_set(error, "%s: out of memory for a header of %" PRIu64 " bytes", file->path,
                              length);
    file->data_start = LENGTH_NBYTES + length;
    file->data_nbytes = file_nbytes - file->data_start;
    bool ok = read_at(file, LENGTH_NBYTES, header, (size_t)length, error) &&
              perf_safetensors_parse(file, header, (size_t)length, error);
    free(header);
    return ok;
}

static int compare_begin(const void *a, const void *b)
{
    const perf_tensor_t *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The format allows neither gaps nor overlaps: the tensors tile the data. */
static bool check_tiling(perf_safetensors_t *file, perf_error_t *error)
{
    if (file->ntensors > 1)
        qsort(file->tensors, file->ntensors, sizeof(file->tensors[0]), compare_begin);
    uint64_t end = 0;
    for (size_t i = 0; i < file->ntensors; i++) {
        const perf_tensor_t *tensor = &file->tensors[i];
        if (tensor->begin < end)
            return perf_error_set(error,
                                  "%s: tensors '%.128s' and '%.128s' overlap: data_offsets [%" PRIu64
                                  ",%" PRIu64 "] begins before %" PRIu64,
                                  file->path, file->tensors[i - 1].name, tensor->name, tensor->begin,
                                  tensor->end, end);
        if (tensor->begin > end)
            return perf_error_set(error,
                                  "%s: data_offsets of tensor '%.128s' begin at %" PRIu64
                                  ", which leaves a hole from %" PRIu64,
                                  file->path, tensor->name, tensor->begin, end);
        end = tensor->end;
    }
    if (end != file->data_nbytes)
        return perf_error_set(error, "%s: the tensors end at byte %" PRIu64 " of %" PRIu64 " bytes of data",
                              file->path, end, file->data_nbytes);
    return true;
}

bool perf_safetensors_open(const char *path, perf_safetensors_t **file_p, perf_error_t *error)
{
    perf_safetensors_t *file = calloc(1, sizeof(*file));
    if (file == NULL)
        return perf_error_set(error, "%s: out of memory", path);
    file->fd = -1;
    file->path = strdup(path);
    if (file->path == NULL || !read_header(file, error) || !check_tiling(file, error)) {
        perf_safetensors_close(file);
        return false;
    }
    *file_p = file;
    return true;
}

void perf_safetensors_close(perf_safetensors_t *file)
{
    if (file == NULL)
        return;
    for (size_t i = 0; i < file->ntensors; i++)
        free(file->tensors[i].name);
    free(file->tensors);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

/* The nearest names, at most three. A name that contains the wanted one, or the other way round, is near. */
static void near_names(const perf_safetensors_t *file, const char *name, char *text, size_t size)
{
    bool shown[3] = {false};
    size_t chosen[3], used = 0;
    for (size_t n = 0; n < 3; n++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < file->ntensors; i++) {
            bool taken = false;
            for (size_t j = 0; j < n; j++)
                taken = taken || (shown[j] && chosen[j] == i);
            const char *other = file->tensors[i].name;
            size_t distance = perf_similar_distance(name, other);
            if (strstr(other, name) != NULL || strstr(name, other) != NULL)
                distance /= 4;
            if (!taken && distance < best) {
                best = distance;
                chosen[n] = i;
                shown[n] = true;
            }
        }
        if (!shown[n] || used >= size)
            break;
        used += (size_t)snprintf(text + used, size - used, "%s'%.100s'", n > 0 ? ", " : "",
                                 file->tensors[chosen[n]].name);
    }
}

bool perf_safetensors_find(const perf_safetensors_t *file, const char *name, const perf_tensor_t **tensor_p,
                           perf_error_t *error)
{
    char text[400] = "none: the file has no tensors";
    for (size_t i = 0; i < file->ntensors; i++)
        if (strcmp(file->tensors[i].name, name) == 0) {
            *tensor_p = &file->tensors[i];
            return true;
        }
    near_names(file, name, text, sizeof(text));
    return perf_error_set(error, "%.200s: no tensor '%.128s'; near names: %s", file->path, name, text);
}

bool perf_safetensors_read(const perf_safetensors_t *file, const perf_tensor_t *tensor, uint64_t offset,
                           void *dst, size_t nbytes, perf_error_t *error)
{
    uint64_t tensor_nbytes = tensor->end - tensor->begin;
    if (offset > tensor_nbytes || nbytes > tensor_nbytes - offset)
        return perf_error_set(error, "%s: %zu bytes at %" PRIu64 " are outside of tensor '%.128s'",
                              file->path, nbytes, offset, tensor->name);
    return read_at(file, file->data_start + tensor->begin + offset, dst, nbytes, error);
}
