/* SPDX-License-Identifier: BSD-3-Clause */
/* What recording costs: the same linear with it on and off, in turn, on one rank over a modelled link.
 *
 *     bench_recording [PAIRS [CHUNKS]]
 *
 * Prints the medians and the median of the differences of neighbours, which a machine that drifts disturbs
 * least. Needs a quiet machine. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "check.h"
#include "base/base.h"
#include "starlin/starlin_report.h"

enum { STEPS = 10, M = 512, N = 512, K = 512 };

typedef struct layer {
    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *x, *w, *y;
} layer_t;

static starlin_status_t layer_create(size_t nchunks, layer_t *layer)
{
    const starlin_context_options_t options = {.struct_size = sizeof(options),
                                               .comm = "model:gbps=10,latency_us=5,ranks=2"};
    const starlin_chunking_options_t chunks = {.struct_size = sizeof(chunks), .count = nchunks};
    const starlin_matrix_layout_t x = {.cols = K, .placement = STARLIN_SHARD_COLS},
                                  w = {.rows = N, .cols = K}, y = {.cols = N};
    STARLIN__FORWARD(starlin_context_create(&options, &layer->context));
    STARLIN__FORWARD(starlin_chunking_plan(layer->context, M, NULL, 0, &chunks, &layer->rows));
    STARLIN__FORWARD(starlin_matrix_create(layer->context, layer->rows, &x, &layer->x));
    STARLIN__FORWARD(starlin_matrix_create(layer->context, NULL, &w, &layer->w));
    return starlin_matrix_create(layer->context, layer->rows, &y, &layer->y);
}

static void layer_destroy(layer_t *layer)
{
    starlin_matrix_destroy(layer->x);
    starlin_matrix_destroy(layer->w);
    starlin_matrix_destroy(layer->y);
    starlin_chunking_destroy(layer->rows);
    CHECK_STATUS(starlin_context_destroy(layer->context), STARLIN_SUCCESS);
}

static double time_us(layer_t *layer, bool recorded)
{
    CHECK_STATUS(starlin_report_enable(layer->context, recorded), STARLIN_SUCCESS);
    double start_us = starlin__now_us();
    for (int step = 0; step < STEPS; step++) {
        CHECK_STATUS(starlin_row_linear(layer->context, layer->x, layer->w, layer->y, NULL), STARLIN_SUCCESS);
        CHECK_STATUS(starlin_context_wait(layer->context), STARLIN_SUCCESS);
    }
    return (starlin__now_us() - start_us) / STEPS;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

int main(int argc, char **argv)
{
    long npairs = argc > 1 ? strtol(argv[1], NULL, 10) : 100,
         nchunks = argc > 2 ? strtol(argv[2], NULL, 10) : 8;
    layer_t layer = {0};
    if (argc > 3 || npairs < 1 || npairs > 100000 || nchunks < 1 || nchunks > M) {
        fprintf(stderr, "usage: %s [PAIRS (1-100000) [CHUNKS (1-%d)]]\n", argv[0], M);
        return 2;
    }
    size_t n = (size_t)npairs;
    double *off = calloc(n, sizeof(*off)), *on = calloc(n, sizeof(*on)), *more = calloc(n, sizeof(*more));
    CHECK_STATUS(layer_create((size_t)nchunks, &layer), STARLIN_SUCCESS);
    CHECK(off != NULL && on != NULL && more != NULL);
    if (check_failures > 0)
        return CHECK_RESULT();
    for (size_t i = 0; i < n; i++) {
        bool first = i % 2 == 0; /* either comes first in turn */
        double a_us = time_us(&layer, first), b_us = time_us(&layer, !first);
        on[i] = first ? a_us : b_us;
        off[i] = first ? b_us : a_us;
        more[i] = on[i] - off[i];
    }
    double more_us = median(more, n), off_us = median(off, n);
    printf("%zu pairs of %d steps of %ld chunks: off %.1f us, on %.1f us, difference %+.2f us (%+.2f%%)\n", n,
           STEPS, nchunks, off_us, median(on, n), more_us, 100 * more_us / off_us);
    layer_destroy(&layer);
    free(off);
    free(on);
    free(more);
    return CHECK_RESULT();
}
