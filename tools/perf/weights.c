/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a weight out of a safetensors file. */
#include "weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

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
