/* SPDX-License-Identifier: BSD-3-Clause */
/* The table: a names row, a units row, and figures under them. */
#include "table.h"

#include <inttypes.h>
#include <string.h>

static void print_run(FILE *stream, const perf_run_info_t *info, const char *policy)
{
    const starlin_context_info_t *context = &info->context;
    fprintf(stream, "# starlin-perf %s, StarPU %s\n", starlin_version(), context->starpu_version);
    fprintf(stream, "# ranks %d, host %s, device %s, comm %s (%u ranks summed), compute %s, policy %s\n",
            info->ranks, context->host, context->device, context->comm, context->comm_ranks, context->compute,
            policy);
    fprintf(stream, "# rank 0: %u workers x %u BLAS threads, %s\n", context->nworkers, context->nblas_threads,
            context->binding != NULL ? context->binding : "not bound");
    fprintf(stream,
            "# %u iterations after %u warm-ups, graph and baselines interleaved; times are the slowest "
            "rank's, per layer;\n"
            "# serial, loop, gemm, comm are medians; reduction %s, data %s\n",
            info->iterations, info->warmups, info->reduction, info->data);
}

void perf_table_header(FILE *stream, const perf_run_info_t *info)
{
    print_run(stream, info, info->context.policy);
    fprintf(stream, "#%7s %7s %7s %5s %6s %6s %6s %10s %10s %10s %10s %10s %5s %10s %10s %10s %7s %6s  %s\n",
            "m", "n", "k", "dtype", "layers", "chunks", "tasks", "median", "min", "p99", "serial", "loop",
            "of", "gemm", "comm", "ideal", "hidden", "wrong", "rows");
    fprintf(stream, "#%7s %7s %7s %5s %6s %6s %6s %10s %10s %10s %10s %10s %5s %10s %10s %10s %7s %6s  %s\n",
            "", "", "", "", "", "", "", "us", "us", "us", "us", "us", "chnks", "us", "us", "us", "%", "elems",
            "");
}

void perf_table_policies_header(FILE *stream, const perf_run_info_t *info)
{
    static const char *const format = "#%15s %7s %7s %7s %5s %6s %6s %6s %10s %10s %10s %7s %6s  %s\n";
    print_run(stream, info, "by row");
    fprintf(stream, format, "policy", "m", "n", "k", "dtype", "layers", "chunks", "tasks", "median", "min",
            "ideal", "hidden", "wrong", "rows");
    fprintf(stream, format, "", "", "", "", "", "", "", "", "us", "us", "us", "%", "elems", "");
}

static void print_us(FILE *stream, double time_us)
{
    if (time_us < 0)
        fprintf(stream, " %10s", "-");
    else
        fprintf(stream, " %10.1f", time_us);
}

/* The chunk list; equal neighbours as "1024x4". */
static void print_rows(FILE *stream, const perf_row_t *row)
{
    for (size_t i = 0, run; i < row->nchunks; i += run) {
        for (run = 1; i + run < row->nchunks && row->chunks[i + run] == row->chunks[i]; run++)
            ;
        fprintf(stream, i > 0 ? ",%" PRId64 : "%" PRId64, row->chunks[i]);
        if (run > 1)
            fprintf(stream, "x%zu", run);
    }
}

/* hidden, wrong, rows: how every row ends. */
static void print_end(FILE *stream, const perf_row_t *row)
{
    double hidden_pct;
    if (perf_row_hidden_pct(row, &hidden_pct))
        fprintf(stream, " %7.1f", hidden_pct);
    else
        fprintf(stream, " %7s", "-");
    if (row->wrong >= 0)
        fprintf(stream, " %6" PRId64 "  ", row->wrong);
    else
        fprintf(stream, " %6s  ", "-");
    print_rows(stream, row);
    if (row->fallback[0] != '\0')
        fprintf(stream, "  (fallback: %s)", row->fallback);
    fputc('\n', stream);
    fflush(stream);
}

void perf_table_policies_row(FILE *stream, const perf_row_t *row)
{
    fprintf(stream, "%16s %7" PRId64 " %7" PRId64 " %7" PRId64 " %5s %6u %6zu %6" PRIu64, row->policy, row->m,
            row->n, row->k, starlin_dtype_name(row->dtype), row->layers, row->nchunks, row->tasks);
    print_us(stream, row->time_us.median);
    print_us(stream, row->time_us.min);
    print_us(stream, perf_row_ideal_us(row));
    print_end(stream, row);
}

void perf_table_row(FILE *stream, const perf_row_t *row)
{
    fprintf(stream, "%8" PRId64 " %7" PRId64 " %7" PRId64 " %5s %6u %6zu %6" PRIu64, row->m, row->n, row->k,
            starlin_dtype_name(row->dtype), row->layers, row->nchunks, row->tasks);
    print_us(stream, row->time_us.median);
    print_us(stream, row->time_us.min);
    print_us(stream, row->time_us.p99);
    print_us(stream, row->serial_us);
    print_us(stream, row->loop_us);
    if (row->loop_chunks > 0)
        fprintf(stream, " %5u", row->loop_chunks);
    else
        fprintf(stream, " %5s", "-");
    print_us(stream, row->gemm_us);
    print_us(stream, row->comm_us);
    print_us(stream, perf_row_ideal_us(row));
    print_end(stream, row);
}

void perf_table_footer(FILE *stream, size_t nrows, uint64_t wrong, bool checked)
{
    fprintf(stream, "# %zu case%s, ", nrows, nrows == 1 ? "" : "s");
    if (checked)
        fprintf(stream, "%" PRIu64 " wrong elements\n", wrong);
    else
        fprintf(stream, "results not checked\n");
}
