/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights from a safetensors file, from the file inwards: its length, the JSON header (each tensor's dtype,
 * shape and data_offsets, checked against each other and against the size of the data), gaps and overlaps,
 * and bounded reads (no mapping: a file that shrinks while it is read must give an error, not a signal). */
#define _GNU_SOURCE
#include "weights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "element.h"

#define LENGTH_NBYTES     8u
#define MAX_HEADER_NBYTES 100000000u /* the format's own limit */

static size_t dtype_itemsize(const char *dtype)
{
    static const struct {
        const char *name;
        size_t itemsize;
    } dtypes[] = {{"F32", 4},  {"F64", 8},     {"F16", 2},     {"BF16", 2}, {"I8", 1},  {"U8", 1},
                  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2},  {"U16", 2}, {"I32", 4},
                  {"U32", 4},  {"I64", 8},     {"U64", 8},     {"C64", 8}};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (strcmp(dtype, dtypes[i].name) == 0)
            return dtypes[i].itemsize;
    return 0;
}

/* A whole number >= 0. */
static bool get_size(const json_t *value, uint64_t *size_p)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *size_p = (uint64_t)json_integer_value(value);
    return true;
}

static bool parse_shape(const char *path, perf_tensor_t *tensor, const json_t *shape, uint64_t *nbytes_p,
                        perf_error_t *error)
{
    uint64_t nbytes = tensor->itemsize;
    if (!json_is_array(shape))
        return perf_error_set(error, "%s: tensor '%.128s': shape is not a list", path, tensor->name);
    tensor->ndims = json_array_size(shape);
    for (size_t i = 0; i < tensor->ndims; i++) {
        uint64_t size = 0;
        if (!get_size(json_array_get(shape, i), &size))
            return perf_error_set(error, "%s: tensor '%.128s': shape[%zu] is not a whole number >= 0", path,
                                  tensor->name, i);
        if (__builtin_mul_overflow(nbytes, size, &nbytes))
            return perf_error_set(error,
                                  "%s: tensor '%.128s': shape[%zu] = %" PRIu64 " overflows the size in bytes",
                                  path, tensor->name, i, size);
        if (i < PERF_TENSOR_MAX_DIMS)
            tensor->shape[i] = size;
    }
    *nbytes_p = nbytes;
    return true;
}

static bool parse_offsets(const perf_safetensors_t *file, perf_tensor_t *tensor, const json_t *offsets,
                          uint64_t nbytes, perf_error_t *error)
{
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !get_size(json_array_get(offsets, 0), &tensor->begin) ||
        !get_size(json_array_get(offsets, 1), &tensor->end))
        return perf_error_set(error, "%s: tensor '%.128s': data_offsets are not two whole numbers >= 0",
                              file->path, tensor->name);
    if (tensor->end < tensor->begin)
        return perf_error_set(error,
                              "%s: tensor '%.128s': data_offsets [%" PRIu64 ",%" PRIu64 "] run backwards",
                              file->path, tensor->name, tensor->begin, tensor->end);
    if (tensor->end > file->data_nbytes)
        return perf_error_set(error,
                              "%s: tensor '%.128s': data_offsets [%" PRIu64 ",%" PRIu64
                              "] go past the end: the file has %" PRIu64 " bytes of data",
                              file->path, tensor->name, tensor->begin, tensor->end, file->data_nbytes);
    if (tensor->itemsize > 0 && tensor->end - tensor->begin != nbytes)
        return perf_error_set(error,
                              "%s: tensor '%.128s': data_offsets span %" PRIu64
                              " bytes, but shape and dtype %s need %" PRIu64,
                              file->path, tensor->name, tensor->end - tensor->begin, tensor->dtype, nbytes);
    return true;
}

static bool parse_tensor(const perf_safetensors_t *file, perf_tensor_t *tensor, const json_t *entry,
                         perf_error_t *error)
{
    uint64_t nbytes = 0;
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!json_is_object(entry))
        return perf_error_set(error, "%s: tensor '%.128s' is not an object", file->path, tensor->name);
    if (dtype == NULL)
        return perf_error_set(error, "%s: tensor '%.128s' has no dtype", file->path, tensor->name);
    tensor->itemsize = dtype_itemsize(dtype);
    strncpy(tensor->dtype, dtype, sizeof(tensor->dtype) - 1);
    return parse_shape(file->path, tensor, json_object_get(entry, "shape"), &nbytes, error) &&
           parse_offsets(file, tensor, json_object_get(entry, "data_offsets"), nbytes, error);
}

static bool parse_root(perf_safetensors_t *file, json_t *root, perf_error_t *error)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(root))
        return perf_error_set(error, "%s: the header is not a JSON object", file->path);
    file->tensors = calloc(json_object_size(root) + 1, sizeof(file->tensors[0]));
    if (file->tensors == NULL)
        return perf_error_set(error, "%s: out of memory", file->path);
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        perf_tensor_t *tensor = &file->tensors[file->ntensors];
        tensor->name = strdup(name);
        if (tensor->name == NULL)
            return perf_error_set(error, "%s: out of memory", file->path);
        file->ntensors++;
        if (!parse_tensor(file, tensor, entry, error))
            return false;
    }
    return true;
}

/* Fills in the tensors from the header's text, each one checked by itself. */
static bool parse(perf_safetensors_t *file, const char *header, size_t nbytes, perf_error_t *error)
{
    json_error_t problem;
    json_t *root = json_loadb(header, nbytes, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        return perf_error_set(error, "%s: the header is not sound JSON (byte %d): %s", file->path,
                              problem.position, problem.text);
    bool ok = parse_root(file, root, error);
    json_decref(root);
    return ok;
}

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
              parse(file, header, (size_t)length, error);
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

static bool check_tensor(perf_weights_t *weights, const char *path, perf_error_t *error)
{
    static const char *const names[] = {"F32", "F64", "F16", "BF16"}; /* in the order of starlin_dtype_t */
    const perf_tensor_t *tensor = weights->tensor;
    if (tensor->ndims != 2)
        return perf_error_set(error, "%.200s: tensor '%.128s' has %zu dimensions, a weight needs 2 (N,K)",
                              path, tensor->name, tensor->ndims);
    int dtype = 0;
    while (dtype < 4 && strcmp(tensor->dtype, names[dtype]) != 0)
        dtype++;
    if (dtype == 4)
        return perf_error_set(error, "%.200s: tensor '%.128s' has dtype %s (allowed: F32, F64, F16, BF16)",
                              path, tensor->name, tensor->dtype);
    for (size_t i = 0; i < 2; i++)
        if (tensor->shape[i] < 1 || tensor->shape[i] > INT32_MAX)
            return perf_error_set(
                error, "%.200s: tensor '%.128s': shape[%zu] is %" PRIu64 " (allowed: 1 to %" PRId32 ")", path,
                tensor->name, i, tensor->shape[i], INT32_MAX);
    weights->dtype = (starlin_dtype_t)dtype;
    weights->n = (int64_t)tensor->shape[0];
    weights->k = (int64_t)tensor->shape[1];
    return true;
}

bool perf_weights_open(const char *path, const char *name, perf_weights_t **weights_p, perf_error_t *error)
{
    perf_weights_t *weights = calloc(1, sizeof(*weights));
    if (weights == NULL)
        return perf_error_set(error, "%.200s: out of memory", path);
    if (!perf_safetensors_open(path, &weights->file, error) ||
        !perf_safetensors_find(weights->file, name, &weights->tensor, error) ||
        !check_tensor(weights, path, error)) {
        perf_weights_close(weights);
        return false;
    }
    *weights_p = weights;
    return true;
}

void perf_weights_close(perf_weights_t *weights)
{
    if (weights == NULL)
        return;
    perf_safetensors_close(weights->file);
    free(weights);
}

bool perf_weights_row(const perf_weights_t *weights, int64_t row, int64_t column, int64_t count,
                      starlin_dtype_t dtype, double *values, perf_error_t *error)
{
    size_t itemsize = weights->tensor->itemsize, nbytes = (size_t)count * itemsize;
    uint64_t offset = (uint64_t)(row * weights->k + column) * itemsize;
    /* the raw elements are no larger than doubles: read behind, widen forwards in place */
    char *raw = (char *)values + (size_t)count * (sizeof(double) - itemsize);
    if (!perf_safetensors_read(weights->file, weights->tensor, offset, raw, nbytes, error))
        return false;
    for (int64_t i = 0; i < count; i++)
        values[i] = perf_element_round(dtype, perf_element_load(weights->dtype, raw, i));
    return true;
}
