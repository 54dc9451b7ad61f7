/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON header of a safetensors file: each tensor's dtype, shape and data_offsets, checked against each
 * other and against the size of the data. */
#define _GNU_SOURCE
#include "safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

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
    if (tensor->ndims > PERF_TENSOR_MAX_DIMS)
        return perf_error_set(error, "%s: tensor '%.128s': shape has %zu dimensions, at most %d are allowed",
                              path, tensor->name, tensor->ndims, PERF_TENSOR_MAX_DIMS);
    for (size_t i = 0; i < tensor->ndims; i++) {
        if (!get_size(json_array_get(shape, i), &tensor->shape[i]))
            return perf_error_set(error, "%s: tensor '%.128s': shape[%zu] is not a whole number >= 0", path,
                                  tensor->name, i);
        if (__builtin_mul_overflow(nbytes, tensor->shape[i], &nbytes))
            return perf_error_set(error,
                                  "%s: tensor '%.128s': shape[%zu] = %" PRIu64 " overflows the size in bytes",
                                  path, tensor->name, i, tensor->shape[i]);
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
    if (tensor->end - tensor->begin != nbytes)
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
    if (tensor->itemsize == 0)
        return perf_error_set(error, "%s: tensor '%.128s': unknown dtype '%.32s'", file->path, tensor->name,
                              dtype);
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

bool perf_safetensors_parse(perf_safetensors_t *file, const char *header, size_t nbytes, perf_error_t *error)
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
