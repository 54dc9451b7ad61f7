/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up timelines for the tests of traces: two ranks, a link, steps of a few chunks. */
#ifndef STARLIN_TESTS_TRACE_SAMPLE_H
#define STARLIN_TESTS_TRACE_SAMPLE_H

#include <math.h>
#include <stdlib.h>

#include "trace.h"

typedef struct sample {
    trace_span_t *spans[2];
    size_t nspans; /* of each rank */
    trace_rank_t ranks[2];
    trace_report_t report;
    trace_step_t *steps;
    starlin_report_lane_t lanes[2];
    starlin_report_collective_t *collectives;
    trace_t trace;
} sample_t;

/* The figures of the first rank's steps; what they mean is not the pictures' business. */
static void sample_report(sample_t *sample, size_t nsteps, const int64_t *rows, unsigned nchunks)
{
    trace_report_t *report = &sample->report;
    sample->steps = calloc(nsteps, sizeof(*sample->steps));
    sample->collectives = calloc(nsteps * nchunks, sizeof(*sample->collectives));
    for (size_t step = 0; step < nsteps; step++) {
        const trace_span_t *first = &sample->spans[0][step * nchunks * 2], *last = first + nchunks * 2 - 1;
        double time_us = last->end_us - first->ready_us;
        sample->steps[step] = (trace_step_t){
            .figures = {.first_sequence = step + 1,
                        .noperators = 1,
                        .start_us = first->ready_us,
                        .time_us = time_us,
                        .ideal_us = time_us * 0.7,
                        .compute_us = time_us * 0.7,
                        .comm_us = time_us * 0.5,
                        .beside_us = time_us * 0.2,
                        .hidden_pct = 40,
                        .gemm_slowdown = NAN},
            .exposed_us = {[STARLIN_CAUSE_CORE] = time_us * 0.2, [STARLIN_CAUSE_TAIL] = time_us * 0.1}};
        for (unsigned i = 0; i < nchunks; i++) {
            const trace_span_t *gemm = first + 2 * i, *comm = gemm + 1;
            sample->collectives[step * nchunks + i] =
                (starlin_report_collective_t){.sequence = step + 1,
                                              .chunk = i,
                                              .time_us = comm->end_us - comm->start_us,
                                              .gap_us = comm->start_us - gemm->end_us,
                                              .cause = STARLIN_CAUSE_CORE,
                                              .exposed_us = 10};
        }
    }
    sample->lanes[0] =
        (starlin_report_lane_t){.lane = 0, .nspans = nsteps * nchunks, .busy_us = 7, .idle_us = 3};
    sample->lanes[1] =
        (starlin_report_lane_t){.is_link = true, .nspans = nsteps * nchunks, .busy_us = 5, .idle_us = 5};
    report->mean = sample->steps[0];
    report->summary = (starlin_report_summary_t){.configuration = "cublas + model on a GPU, policy starlin",
                                                 .nsteps = nsteps,
                                                 .min_us = report->mean.figures.time_us,
                                                 .median_us = report->mean.figures.time_us + 10,
                                                 .max_us = report->mean.figures.time_us + 20,
                                                 .nchunks = nchunks,
                                                 .ctas = 24};
    report->nsteps = nsteps;
    report->steps = sample->steps;
    report->nlanes = 2;
    report->lanes = sample->lanes;
    report->ncollectives = nsteps * nchunks;
    report->collectives = sample->collectives;
    report->nchunks = nchunks;
    report->rows = rows;
}

/* Collectives wait for the next gemm to end (`late`), or start beside it and slow it down. */
static void sample_make(sample_t *sample, const char *title, size_t nsteps, const int64_t *rows,
                        unsigned nchunks, bool late)
{
    *sample = (sample_t){.nspans = 0};
    for (int r = 0; r < 2; r++) {
        trace_span_t *spans = malloc(nsteps * nchunks * 2 * sizeof *spans);
        double gemm_us = 1e6, link_us = gemm_us;
        size_t n = 0;
        for (size_t step = 0; step < nsteps; step++) {
            double begin_us = gemm_us = fmax(gemm_us, link_us) + 60;
            for (unsigned i = 0; i < nchunks; i++) {
                double jitter = (double)((step * 7 + i * 3 + (size_t)r) % 5);
                double length_us = (double)rows[i] * 0.35 * (i > 0 && !late ? 1.06 : 1) + jitter;
                double after_us = i + 1 < nchunks && late ? (double)rows[i + 1] * 0.35 : 7 + jitter;
                spans[n++] = (trace_span_t){.kind = STARLIN_REPORT_GEMM,
                                            .op = "some_linear",
                                            .stage = "multiply",
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
                spans[n++] = (trace_span_t){.kind = STARLIN_REPORT_COLLECTIVE,
                                            .op = "some_linear",
                                            .stage = "sum",
                                            .is_link = 1,
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
        sample->ranks[r] = (trace_rank_t){.name = r == 0 ? "rank 0 (node-a)" : "rank 1 (node-b)",
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
    sample_report(sample, nsteps, rows, nchunks);
    sample->trace = (trace_t){.title = title,
                              .subtitle = sample->report.summary.configuration,
                              .nranks = 2,
                              .ranks = sample->ranks,
                              .report = &sample->report};
}

static void sample_free(sample_t *sample)
{
    free(sample->spans[0]);
    free(sample->spans[1]);
    free(sample->steps);
    free(sample->collectives);
}

#endif
