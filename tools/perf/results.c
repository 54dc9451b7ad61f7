/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of results, and the table: a names row, a units row, and figures under them. */
#include "results.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.01 /* of gemm or comm in the other; below, there is nothing worth hiding */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

perf_statistics_t perf_statistics(double *samples, size_t count)
{
    perf_statistics_t figures;
    double sum = 0;
    qsort(samples, count, sizeof(*samples), compare);
    for (size_t i = 0; i < count; i++)
        sum += samples[i];
    figures.min = samples[0];
    figures.max = samples[count - 1];
    figures.mean = sum / (double)count;
    figures.median = count % 2 == 1 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
    figures.p99 = samples[(count * 99 + 99) / 100 - 1];
    figures.spread = samples[(count * 3 - 1) / 4] - samples[count / 4];
    return figures;
}

double perf_row_ideal_us(const perf_row_t *row)
{
    if (row->gemm_us < 0 || row->comm_us < 0)
        return PERF_NOT_MEASURED;
    return row->gemm_us > row->comm_us ? row->gemm_us : row->comm_us;
}

bool perf_row_hidden_pct(const perf_row_t *row, double *hidden_pct_p)
{
    if (row->serial_us < 0 || row->gemm_us < 0 || row->comm_us < 0)
        return false;
    double hideable = row->gemm_us < row->comm_us ? row->gemm_us : row->comm_us;
    if (hideable < LEAST_SHARE * perf_row_ideal_us(row) || hideable < row->time_us.spread || !(hideable > 0))
        return false;
    *hidden_pct_p = 100 * (row->serial_us - row->time_us.median) / hideable;
    return true;
}

double perf_row_prediction_error_pct(const perf_row_t *row)
{
    if (!row->plan.planned || !(row->time_us.median > 0))
        return 0;
    return 100 * (row->plan.predicted_us / row->time_us.median - 1);
}

static void print_run(FILE *stream, const perf_run_info_t *info, const char *policy)
{
    const starlin_context_info_t *context = &info->context;
    fprintf(stream, "# starlin-perf %s, StarPU %s\n", starlin_version(), context->starpu_version);
    fprintf(stream, "# op %s%s%s%s\n", info->op, info->sequence_parallel ? ", sequence-parallel" : "",
            info->model[0] != '\0' ? ", model " : "", info->model);
    fprintf(stream, "# ranks %d, host %s, device %s, comm %s (%u ranks summed), compute %s, policy %s\n",
            info->ranks, context->host, context->device, context->comm, context->comm_ranks, context->compute,
            policy);
    if (context->compute_version[0] != '\0')
        fprintf(stream, "# %s: %s\n", context->compute, context->compute_version);
    if (context->compute_warning != NULL)
        fprintf(stream, "# warning: %s\n", context->compute_warning);
    fprintf(stream, "# rank 0: %u workers x %u BLAS threads, %s\n", context->nworkers, context->nblas_threads,
            context->binding != NULL ? context->binding : "not bound");
    fprintf(stream,
            "# %u iterations after %u warm-ups, graph and baselines interleaved; times are the slowest "
            "rank's, per layer;\n"
            "# serial, loop, gemm, comm are medians; reduction %s, data %s\n",
            info->iterations, info->warmups, info->reduction, info->data);
}

static void print_names(FILE *stream)
{
    fprintf(stream, "#%7s %7s %7s %5s %6s %6s %6s %10s %10s %10s %10s %10s %5s %10s %10s %10s %7s %6s  %s\n",
            "m", "n", "k", "dtype", "layers", "chunks", "tasks", "median", "min", "p99", "serial", "loop",
            "of", "gemm", "comm", "ideal", "hidden", "wrong", "rows");
    fprintf(stream, "#%7s %7s %7s %5s %6s %6s %6s %10s %10s %10s %10s %10s %5s %10s %10s %10s %7s %6s  %s\n",
            "", "", "", "", "", "", "", "us", "us", "us", "us", "us", "chnks", "us", "us", "us", "%", "elems",
            "");
}

static void print_policy_names(FILE *stream)
{
    static const char *const format = "#%15s %7s %7s %7s %5s %6s %6s %6s %10s %10s %10s %7s %6s  %s\n";
    fprintf(stream, format, "policy", "m", "n", "k", "dtype", "layers", "chunks", "tasks", "median", "min",
            "ideal", "hidden", "wrong", "rows");
    fprintf(stream, format, "", "", "", "", "", "", "", "", "us", "us", "us", "%", "elems", "");
}

void perf_table_header(FILE *stream, const perf_run_info_t *info, bool policies)
{
    print_run(stream, info, policies ? "by row" : info->context.policy);
    if (policies)
        print_policy_names(stream);
    else
        print_names(stream);
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

void perf_table_row(FILE *stream, const perf_row_t *row)
{
    bool policies = row->policy[0] != '\0';
    if (policies)
        fprintf(stream, "%16s %7" PRId64, row->policy, row->m);
    else
        fprintf(stream, "%8" PRId64, row->m);
    fprintf(stream, " %7" PRId64 " %7" PRId64 " %5s %6u %6zu %6" PRIu64, row->n, row->k,
            starlin_dtype_name(row->dtype), row->layers, row->nchunks, row->tasks);
    print_us(stream, row->time_us.median);
    print_us(stream, row->time_us.min);
    if (!policies) {
        print_us(stream, row->time_us.p99);
        print_us(stream, row->serial_us);
        print_us(stream, row->loop_us);
        if (row->loop_chunks > 0)
            fprintf(stream, " %5u", row->loop_chunks);
        else
            fprintf(stream, " %5s", "-");
        print_us(stream, row->gemm_us);
        print_us(stream, row->comm_us);
    }
    print_us(stream, perf_row_ideal_us(row));
    print_end(stream, row);
}

void perf_table_explain(FILE *stream, const perf_row_t *row)
{
    if (!row->plan.planned)
        return;
    for (const char *line = row->plan.text, *end; *line != '\0'; line = *end == '\0' ? end : end + 1) {
        end = line + strcspn(line, "\n");
        fprintf(stream, "#   %.*s\n", (int)(end - line), line);
    }
    fprintf(stream, "#   predicted %.1f us, median of this run %.1f us, prediction error %+.1f%%\n",
            row->plan.predicted_us, row->time_us.median, perf_row_prediction_error_pct(row));
    fflush(stream);
}

void perf_table_footer(FILE *stream, const perf_row_t *rows, size_t nrows, bool checked)
{
    int64_t wrong = 0, nonfinite = 0;
    for (size_t i = 0; i < nrows; i++) {
        wrong += rows[i].wrong > 0 ? rows[i].wrong : 0;
        nonfinite += rows[i].nonfinite;
    }
    fprintf(stream, "# %zu case%s, ", nrows, nrows == 1 ? "" : "s");
    if (checked)
        fprintf(stream, "%" PRId64 " wrong elements", wrong);
    else
        fprintf(stream, "results not checked");
    if (nonfinite > 0)
        fprintf(stream, ", %" PRId64 " not finite because of the weights", nonfinite);
    fputc('\n', stream);
}
