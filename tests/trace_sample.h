/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up timelines for the tests of traces: two ranks, a link, steps of a few chunks. */
#ifndef STARLIN_TESTS_TRACE_SAMPLE_H
#define STARLIN_TESTS_TRACE_SAMPLE_H

#include <math.h>
#include <stdlib.h>

#include "trace.h"

typedef struct sample {
    starlin__span_t *spans[2];
    size_t nspans; /* of each rank */
    starlin__trace_rank_t ranks[2];
    starlin_report_t *report;
    starlin__trace_t trace;
} sample_t;

/* Collectives wait for the next gemm to end (`late`), or start beside it and slow it down. */
static void sample_make(sample_t *sample, const char *title, size_t nsteps, const int64_t *rows,
                        unsigned nchunks, bool late)
{
    sample->nspans = 0;
    for (int r = 0; r < 2; r++) {
        starlin__span_t *spans = malloc(nsteps * nchunks * 2 * sizeof *spans);
        double gemm_us = 1e6, link_us = gemm_us;
        size_t n = 0;
        for (size_t step = 0; step < nsteps; step++) {
            double begin_us = gemm_us = fmax(gemm_us, link_us) + 60;
            for (unsigned i = 0; i < nchunks; i++) {
                double jitter = (double)((step * 7 + i * 3 + (size_t)r) % 5);
                double length_us = (double)rows[i] * 0.35 * (i > 0 && !late ? 1.06 : 1) + jitter;
                double after_us = i + 1 < nchunks && late ? (double)rows[i + 1] * 0.35 : 7 + jitter;
                spans[n++] = (starlin__span_t){.kind = STARLIN__SPAN_GEMM,
                                               .sequence = step + 1,
                                               .chunk = i,
                                               .rows = rows[i],
                                               .ready_us = begin_us,
                                               .launch_us = gemm_us,
                                               .start_us = gemm_us + 2,
                                               .end_us = gemm_us + 2 + length_us};
                gemm_us += 2 + length_us;
                double start_us = fmax(gemm_us + after_us, link_us);
                link_us = start_us + 20 + (double)rows[i] * 0.075;
                spans[n++] = (starlin__span_t){.kind = STARLIN__SPAN_ALLREDUCE,
                                               .lane = STARLIN__LANE_LINK,
                                               .sequence = step + 1,
                                               .chunk = i,
                                               .grid = 24,
                                               .rows = rows[i],
                                               .nbytes = (double)rows[i] * 16384,
                                               .ready_us = gemm_us,
                                               .launch_us = gemm_us + 3,
                                               .start_us = start_us,
                                               .end_us = link_us};
            }
        }
        sample->spans[r] = spans;
        sample->nspans = n;
        sample->ranks[r] = (starlin__trace_rank_t){.name = r == 0 ? "rank 0 (node-a)" : "rank 1 (node-b)",
                                                   .offset_us = r == 0 ? 0 : -250,
                                                   .spans = spans,
                                                   .nspans = n};
        for (size_t i = 0; r == 1 && i < n; i++) { /* its clock is 250 us ahead */
            spans[i].ready_us += 250;
            spans[i].launch_us += 250;
            spans[i].start_us += 250;
            spans[i].end_us += 250;
        }
    }
    starlin__report_input_t input = {.spans = sample->spans[0],
                                     .nspans = sample->nspans,
                                     .operators_per_step = 1,
                                     .launch_us = 10,
                                     .configuration = "cublas + model on a GPU, policy starlin"};
    sample->report = NULL;
    if (starlin__report_make(&input, &sample->report) != STARLIN_SUCCESS)
        abort();
    sample->trace = (starlin__trace_t){.title = title,
                                       .subtitle = input.configuration,
                                       .nranks = 2,
                                       .ranks = sample->ranks,
                                       .report = sample->report};
}

static void sample_free(sample_t *sample)
{
    free(sample->spans[0]);
    free(sample->spans[1]);
    starlin_report_destroy(sample->report);
}

#endif
