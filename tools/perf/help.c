/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of --help. */
#include "options.h"

void perf_options_help(FILE *stream)
{
    fputs(
        "usage: [mpirun -np P] starlin-perf [options]\n"
        "Times Y[M,N] = sum over ranks of X[M,K_r] W[N,K_r]^T as a task graph, against hand-written loops.\n"
        "\n"
        "  -m, -n, -k LIST     rows, outputs, global inner size; commas make a sweep   (2048 1024 2048)\n"
        "  -t LIST             dtypes: f32,f64,f16,bf16                                (f32)\n"
        "  -c LIST             chunkings separated by ';': a count (4), rows (3072,1024), auto  (auto)\n"
        "  --comm NAME         auto, self, mpi, nccl, model:gbps=B,latency_us=L,ctas=C,ranks=P  (auto)\n"
        "  --compute NAME      auto, cblas, cublas                                     (auto)\n"
        "  --reduction WORD    native or f32: how f16 and bf16 partial sums travel     (native)\n"
        "  -i, -w COUNT        timed iterations, warm-ups                              (20 5)\n"
        "  --layers L          L such layers submitted back to back; times are per layer  (1)\n"
        "  --baselines LIST    all, none, or serial,loop,gemm,comm                     (all)\n"
        "  --check on|off      compare every element with an exact reference           (on)\n"
        "  --data WORD         integers or random: what X and W hold; random is not checked  (integers)\n"
        "  --weights FILE:TENSOR  W from a safetensors file                            (as --data says)\n"
        "  --json FILE         write the results as JSON\n"
        "  --trace FILE        write the timeline of all ranks: .json, .html or .svg\n"
        "  --tune              first measure thorough curves for later plans (STARLIN_TUNE_DIR)\n"
        "  --explain           print how automatic chunk lists were found, and the prediction's error\n"
        "  --report            print why time was lost, under the table\n"
        "  --policies LIST     run under each of these scheduling policies, one after the other\n"
        "  --seed S            inputs are reproducible                                 (1)\n"
        "  -h, --help  --version\n"
        "\n"
        "exit code: 0 fine, 1 wrong result or failure, 2 bad usage or input, 77 hardware that is not here\n",
        stream);
}
