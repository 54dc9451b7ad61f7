/* SPDX-License-Identifier: BSD-3-Clause */
/* The weights of one MLP: read from a safetensors file that uses BERT's names, or generated into one. */
#ifndef STARLIN_EXAMPLES_MLP_WEIGHTS_H
#define STARLIN_EXAMPLES_MLP_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "../tools/perf/text.h"

typedef struct mlp_weights {
    int64_t vocabulary, hidden, inner;
    float *embeddings; /* [vocabulary,hidden] */
    float *first;      /* [inner,hidden] */
    float *first_bias; /* [inner] */
    float *second;     /* [hidden,inner] */
} mlp_weights_t;

/* On false nothing is to be released. */
bool mlp_weights_load(const char *path, mlp_weights_t *weights_p, perf_error_t *error);
void mlp_weights_release(mlp_weights_t *weights);

/* Writes a file of the same shapes (with a small vocabulary) and reproducible values; false with a message on
 * stderr. */
bool mlp_weights_generate(const char *path);

#endif
