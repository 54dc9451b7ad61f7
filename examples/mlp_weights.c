/* SPDX-License-Identifier: BSD-3-Clause */
/* The MLP's four tensors, in a file of BERT's names. Generated files hold reproducible uniform values. */
#include "mlp_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/perf/weights.h"

enum { VOCABULARY = 4096, HIDDEN = 384, INNER = 1536 };                 /* of a generated file */
enum { EMBEDDINGS, FIRST_WEIGHT, FIRST_BIAS, SECOND_WEIGHT, NTENSORS }; /* order in a generated file */

static const struct {
    const char *name;
    int64_t rows, cols; /* of a generated file; cols 0: a vector */
    float range;        /* values lie in [-range, range) */
} tensors[NTENSORS] = {
    [EMBEDDINGS] = {"embeddings.word_embeddings.weight", VOCABULARY, HIDDEN, 0.1f},
    [FIRST_WEIGHT] = {"encoder.layer.0.intermediate.dense.weight", INNER, HIDDEN, 0.1f},
    [FIRST_BIAS] = {"encoder.layer.0.intermediate.dense.bias", INNER, 0, 0.1f},
    [SECOND_WEIGHT] = {"encoder.layer.0.output.dense.weight", HIDDEN, INNER, 0.1f},
};

static int64_t elements(int i)
{
    return tensors[i].rows * (tensors[i].cols > 0 ? tensors[i].cols : 1);
}

static bool write_header(FILE *file)
{
    char text[1024];
    size_t length = 0;
    int64_t offset = 0;
    for (int i = 0; i < NTENSORS; i++) {
        char shape[64];
        if (tensors[i].cols > 0)
            snprintf(shape, sizeof(shape), "%" PRId64 ",%" PRId64, tensors[i].rows, tensors[i].cols);
        else
            snprintf(shape, sizeof(shape), "%" PRId64, tensors[i].rows);
        int64_t end = offset + elements(i) * (int64_t)sizeof(float);
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%" PRId64
                                   ",%" PRId64 "]}",
                                   i == 0 ? '{' : ',', tensors[i].name, shape, offset, end);
        offset = end;
    }
    text[length++] = '}';
    while (length % 8 != 0)
        text[length++] = ' ';
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)length >> (8 * i));
    return fwrite(prefix, 1, sizeof(prefix), file) == sizeof(prefix) &&
           fwrite(text, 1, length, file) == length;
}

static bool write_values(FILE *file)
{
    uint32_t state = 1;
    for (int i = 0; i < NTENSORS; i++)
        for (int64_t j = 0; j < elements(i); j++) {
            state = state * 1664525u + 1013904223u; /* a linear congruential generator, its upper 24 bits */
            float value = ((float)(state >> 8) * 0x1p-23f - 1.0f) * tensors[i].range;
            if (fwrite(&value, sizeof(value), 1, file) != 1)
                return false;
        }
    return true;
}

bool mlp_weights_generate(const char *path)
{
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && write_header(file) && write_values(file);
    if (file != NULL)
        written = fclose(file) == 0 && written;
    if (!written)
        perror(path);
    return written;
}

/* Reads a whole F32 tensor of `ndims` dimensions; a size in shape[] that is 0 is filled in, the others are
 * compared with the file. */
static float *read_tensor(const perf_safetensors_t *file, const char *name, size_t ndims, int64_t *shape,
                          perf_error_t *error)
{
    const perf_tensor_t *tensor;
    if (!perf_safetensors_find(file, name, &tensor, error))
        return NULL;
    bool fits = strcmp(tensor->dtype, "F32") == 0 && tensor->ndims == ndims;
    for (size_t i = 0; fits && i < ndims; i++) {
        fits = tensor->shape[i] > 0 && tensor->shape[i] <= INT32_MAX &&
               (shape[i] == 0 || (uint64_t)shape[i] == tensor->shape[i]);
        shape[i] = (int64_t)tensor->shape[i];
    }
    if (!fits) {
        perf_error_set(error, "%s: tensor %s is not of the MLP's shape or not F32", file->path, name);
        return NULL;
    }
    size_t nbytes = (size_t)(tensor->end - tensor->begin);
    float *data = malloc(nbytes);
    if (data == NULL)
        perf_error_set(error, "%s: out of memory for tensor %s (%zu bytes)", file->path, name, nbytes);
    else if (!perf_safetensors_read(file, tensor, 0, data, nbytes, error)) {
        free(data);
        data = NULL;
    }
    return data;
}

bool mlp_weights_load(const char *path, mlp_weights_t *weights_p, perf_error_t *error)
{
    perf_safetensors_t *file;
    if (!perf_safetensors_open(path, &file, error))
        return false;
    mlp_weights_t weights = {0};
    int64_t embeddings[2] = {0, 0};
    weights.embeddings = read_tensor(file, tensors[EMBEDDINGS].name, 2, embeddings, error);
    int64_t first[2] = {0, embeddings[1]};
    if (weights.embeddings != NULL)
        weights.first = read_tensor(file, tensors[FIRST_WEIGHT].name, 2, first, error);
    int64_t bias[1] = {first[0]}, second[2] = {first[1], first[0]};
    if (weights.first != NULL)
        weights.first_bias = read_tensor(file, tensors[FIRST_BIAS].name, 1, bias, error);
    if (weights.first_bias != NULL)
        weights.second = read_tensor(file, tensors[SECOND_WEIGHT].name, 2, second, error);
    perf_safetensors_close(file);
    if (weights.second == NULL) {
        mlp_weights_release(&weights);
        return false;
    }
    weights.vocabulary = embeddings[0];
    weights.hidden = embeddings[1];
    weights.inner = first[0];
    *weights_p = weights;
    return true;
}

void mlp_weights_release(mlp_weights_t *weights)
{
    free(weights->embeddings);
    free(weights->first);
    free(weights->first_bias);
    free(weights->second);
}
