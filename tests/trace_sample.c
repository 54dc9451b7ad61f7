/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes made-up traces: trace_sample FILE one|compare|big. */
#include "trace_sample.h"

#include <string.h>

int main(int argc, char **argv)
{
    static const int64_t equal[] = {4096, 4096}, shrinking[] = {3072, 3072, 1536, 512};
    static const int64_t small[] = {64, 64, 64, 64, 64};
    if (argc != 3)
        return 2;
    sample_t samples[2];
    size_t nsamples = 1;
    if (strcmp(argv[2], "big") == 0) {
        sample_make(&samples[0], "10,000 tasks", 500, small, 5, false);
    } else if (strcmp(argv[2], "compare") == 0) {
        sample_make(&samples[0], "two equal chunks", 9, equal, 2, true);
        sample_make(&samples[1], "auto", 9, shrinking, 4, false);
        nsamples = 2;
    } else {
        sample_make(&samples[0], "two equal chunks", 9, equal, 2, true);
    }
    trace_t traces[2] = {samples[0].trace, nsamples > 1 ? samples[1].trace : samples[0].trace};
    perf_error_t error;
    bool ok = trace_write(traces, nsamples, "Row-parallel linear 8192 x 8192 x 32768, bf16", argv[1], &error);
    if (!ok)
        fprintf(stderr, "%s\n", error.text);
    for (size_t i = 0; i < nsamples; i++)
        sample_free(&samples[i]);
    return !ok;
}
