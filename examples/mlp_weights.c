/* SPDX-License-Identifier: BSD-3-Clause */
/* The MLP's four tensors, in a file of BERT's names. Generated files hold reproducible uniform values. */
#include "mlp_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/safetensors.h"

enum { VOCABULARY = 4096, HIDDEN = 384, INNER = 1536, NTENSORS = 4 };

static const struct {
    const char *name;
    int64_t rows, cols; /* of a generated file; cols 0: a vector */
    float range;        /* values lie in [-range, range) */
} tensors[NTENSORS] = {
    {"embeddings.word_embeddings.weight", VOCABULARY, HIDDEN, 0.1f},
    {"encoder.layer.0.intermediate.dense.weight", INNER, HIDDEN, 0.1f},
    {"encoder.layer.0.intermediate.dense.bias", INNER, 0, 0.1f},
    {"encoder.layer.0.output.dense.weight", HIDDEN, INNER, 0.1f},
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
        length += (size_t)snprintf(
            text + length, sizeof(text) - length,
            "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}",
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
