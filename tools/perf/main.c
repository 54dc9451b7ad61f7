/* SPDX-License-Identifier: BSD-3-Clause */
/* starlin-perf: times tensor-parallel linear layers as a task graph against hand-written loops.
 *
 * The flow: options and files are judged before anything starts; then MPI, an exchange of what each rank was
 * asked for, the context, one shape after the other, the results. Every step that can fail on one rank alone
 * ends with an exchange, or ends all ranks. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "run.h"
#include "workers.h"

enum { EXIT_FINE = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_HARDWARE = 77 };

typedef struct program {
    perf_options_t options;
    perf_weights_t *weights;
    perf_ranks_t ranks;
    starlin_context_t *context;
    perf_run_info_t info;
    perf_row_t *rows;
    size_t nrows;
    uint64_t wrong;
    perf_recording_t recording;
} program_t;

/* A size that the weights fix: taken from them, or compared. */
static bool fit_sweep(const char *what, bool given, perf_sweep_t *sweep, int64_t size, perf_error_t *error)
{
    for (size_t i = 0; given && i < sweep->count; i++)
        if (sweep->values[i] != size)
            return perf_error_set(error, "%s: %" PRId64 " does not fit the weights, whose size is %" PRId64,
                                  what, sweep->values[i], size);
    *sweep = (perf_sweep_t){1, {size}};
    return true;
}

static bool open_weights(program_t *program, perf_error_t *error)
{
    perf_options_t *options = &program->options;
    if (options->weights_file[0] == '\0')
        return true;
    perf_error_t why;
    if (!perf_weights_open(options->weights_file, options->weights_tensor, &program->weights, &why))
        return perf_error_set(error, "--weights: %s", why.text);
    if (!options->dtype_given)
        options->dtypes[0] = program->weights->dtype;
    return fit_sweep("-n", options->n_given, &options->n, program->weights->n, error) &&
           fit_sweep("-k", options->k_given, &options->k, program->weights->k, error);
}

/* X, W and Y of every shape must at least fit into the machine; the operating system would rather kill. */
static bool check_memory(const program_t *program, perf_error_t *error)
{
    const perf_options_t *options = &program->options;
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), itemsize = 0;
    double m = 0, n = 0, k = 0, shared = program->ranks.nranks;
    for (size_t i = 0; i < options->m.count; i++)
        m = (double)options->m.values[i] > m ? (double)options->m.values[i] : m;
    for (size_t i = 0; i < options->n.count; i++)
        n = (double)options->n.values[i] > n ? (double)options->n.values[i] : n;
    for (size_t i = 0; i < options->k.count; i++)
        k = (double)options->k.values[i] > k ? (double)options->k.values[i] : k;
    for (size_t i = 0; i < options->ndtypes; i++)
        itemsize = (double)starlin_dtype_nbytes(options->dtypes[i]) > itemsize
                       ? (double)starlin_dtype_nbytes(options->dtypes[i])
                       : itemsize;
    double needed =
        itemsize * (options->op->splits_n ? m * k + (m + k) * n / shared : (m + n) * k / shared + m * n);
    if (needed > machine)
        return perf_error_set(
            error,
            "-m %.0f -n %.0f -k %.0f needs %.1f GiB for one rank's X, W and Y; this machine has "
            "%.1f GiB",
            m, n, k, needed / 0x1p30, machine / 0x1p30);
    return true;
}

static int exit_code_of(starlin_status_t status)
{
    switch (status) {
    case STARLIN_ERR_NO_DEVICE:
        return EXIT_NO_HARDWARE;
    case STARLIN_ERR_INVALID:
    case STARLIN_ERR_UNSUPPORTED:
    case STARLIN_ERR_MISMATCH:
        return EXIT_USAGE;
    default:
        return EXIT_WRONG;
    }
}

/* All ranks or none have a context when this returns EXIT_FINE or not. */
static int start_context(program_t *program)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    options.comm = program->options.comm;
    options.compute = program->options.compute;
    perf_error_t error;
    starlin_status_t status = perf_ranks_context_create(&options, &program->context);
    perf_ok(status, &error);
    int nfailed = perf_agree_count(&program->ranks, status != STARLIN_SUCCESS ? &error : NULL);
    int exit_code = exit_code_of(status);
    if (nfailed > 0 && nfailed < program->ranks.nranks)
        perf_ranks_abort(status != STARLIN_SUCCESS ? exit_code : EXIT_WRONG);
    return nfailed > 0 ? exit_code : EXIT_FINE;
}

/* A rank whose own sum is not over all ranks would compare its partial with the whole. */
static int check_context(program_t *program)
{
    perf_error_t error;
    program->info.context = (starlin_context_info_t)STARLIN_CONTEXT_INFO_INIT;
    starlin_context_get_info(program->context, &program->info.context);
    const char *comm = program->info.context.comm;
    bool partial = program->ranks.nranks > 1 && (strcmp(comm, "self") == 0 || strcmp(comm, "model") == 0);
    if (!partial)
        return EXIT_FINE;
    perf_error_set(&error, "--comm: %s sums over one rank, but there are %d (allowed: auto, mpi)", comm,
                   program->ranks.nranks);
    perf_agree_count(&program->ranks, &error);
    return EXIT_USAGE;
}

static void describe_run(program_t *program)
{
    const perf_options_t *options = &program->options;
    program->info.ranks = program->ranks.nranks;
    program->info.op = options->op->name;
    program->info.sequence_parallel = options->sequence_parallel;
    program->info.model = options->model != NULL ? options->model->name : "";
    program->info.iterations = options->iterations;
    program->info.warmups = options->warmups;
    program->info.reduction = options->reduction == STARLIN_REDUCTION_F32 ? "f32" : "native";
    program->info.data = options->random ? "random" : "integers";
    if (program->ranks.rank == 0)
        perf_table_header(stdout, &program->info, options->npolicies > 0);
}

static perf_problem_t make_problem(const program_t *program, int64_t m, int64_t n, int64_t k,
                                   starlin_dtype_t dtype)
{
    const perf_options_t *options = &program->options;
    perf_problem_t problem = {.m = m,
                              .n = n,
                              .k = k,
                              .dtype = dtype,
                              .reduction = options->reduction,
                              .layers = options->layers,
                              .seed = options->seed,
                              .rank = program->ranks.rank,
                              .nranks = program->ranks.nranks,
                              .split_n = options->op->splits_n,
                              .sequence_parallel = options->sequence_parallel,
                              .weights = program->weights,
                              .random = options->random};
    perf_problem_prepare(&problem);
    return problem;
}

/* One shape of the sweep; its rows are appended. */
static int run_shape(program_t *program, const perf_problem_t *problem)
{
    const perf_options_t *options = &program->options;
    perf_run_t run = {.context = program->context,
                      .options = options,
                      .ranks = &program->ranks,
                      .recording = options->trace != NULL || options->report ? &program->recording : NULL};
    perf_row_t *rows = &program->rows[program->nrows];
    perf_error_t error;
    if (!perf_run_shape(&run, problem, rows, &error)) {
        perf_agree_print(&program->ranks, error.text);
        if (program->ranks.nranks > 1 && !run.failed_together)
            perf_ranks_abort(exit_code_of(error.status));
        return exit_code_of(error.status);
    }
    perf_progress_clear();
    for (size_t i = 0; i < options->nchunkings; i++) {
        if (program->ranks.rank == 0)
            perf_table_row(stdout, &rows[i]);
        if (program->ranks.rank == 0 && options->explain)
            perf_table_explain(stdout, &rows[i]);
        program->wrong += rows[i].wrong > 0 ? (uint64_t)rows[i].wrong : 0;
    }
    program->nrows += options->nchunkings;
    return EXIT_FINE;
}

static size_t count_shapes(const perf_options_t *options)
{
    return options->m.count * options->n.count * options->k.count * options->ndtypes;
}

static int run_sweep(program_t *program)
{
    const perf_options_t *options = &program->options;
    size_t nshapes = count_shapes(options);
    int exit_code = EXIT_FINE;
    for (size_t i = 0; exit_code == EXIT_FINE && i < nshapes; i++) {
        size_t rest = i;
        starlin_dtype_t dtype = options->dtypes[rest % options->ndtypes];
        rest /= options->ndtypes;
        int64_t k = options->k.values[rest % options->k.count];
        rest /= options->k.count;
        int64_t n = options->n.values[rest % options->n.count];
        perf_problem_t problem =
            make_problem(program, options->m.values[rest / options->n.count], n, k, dtype);
        exit_code = run_shape(program, &problem);
    }
    return exit_code;
}

static bool write_results(program_t *program, char (*devices)[128], perf_error_t *error)
{
    const perf_options_t *options = &program->options;
    perf_error_t why;
    perf_table_footer(stdout, program->rows, program->nrows, options->check);
    if (options->json != NULL &&
        !perf_results_write(options->json, &program->info, devices, program->rows, program->nrows, error))
        return false;
    if (options->trace != NULL && !perf_recording_write(&program->recording, options->trace, &why))
        return perf_error_status(error, why.status, "--trace: %s", why.text);
    if (options->report)
        perf_recording_print(&program->recording, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return perf_error_status(error, STARLIN_ERR_RUNTIME, "cannot write the table to stdout");
    return true;
}

/* Rank 0 prints and writes. Not collective but for the device names. */
static int finish(program_t *program)
{
    char mine[128] = "", (*devices)[128] = calloc((size_t)program->ranks.nranks, sizeof(*devices));
    perf_error_t error;
    bool ok = true;
    if (devices == NULL)
        perf_ranks_abort(EXIT_WRONG);
    snprintf(mine, sizeof(mine), "%s", program->info.context.device);
    perf_ranks_gather(mine, sizeof(mine), devices);
    if (program->ranks.rank == 0)
        ok = write_results(program, devices, &error);
    if (!ok)
        perf_agree_print(&program->ranks, error.text);
    free(devices);
    return ok && program->wrong == 0 ? EXIT_FINE : EXIT_WRONG;
}

/* The whole sweep in one context. The texts of the results are the context's, so the last one finishes. */
static int run_context(program_t *program, bool first, bool last)
{
    perf_progress_set("starting");
    int exit_code = start_context(program);
    if (exit_code != EXIT_FINE)
        return exit_code;
    exit_code = check_context(program);
    if (exit_code == EXIT_FINE && first)
        describe_run(program);
    perf_progress_set("planning");
    if (exit_code == EXIT_FINE)
        exit_code = run_sweep(program);
    if (exit_code == EXIT_FINE && last)
        exit_code = finish(program);
    starlin_context_destroy(program->context);
    return exit_code;
}

/* StarPU takes its policy from the environment; each context starts it anew. */
static int run(program_t *program)
{
    const perf_options_t *options = &program->options;
    size_t ncontexts = options->npolicies > 0 ? options->npolicies : 1;
    program->rows = calloc(ncontexts * count_shapes(options) * options->nchunkings, sizeof(*program->rows));
    if (program->rows == NULL)
        perf_ranks_abort(EXIT_WRONG);
    int exit_code = EXIT_FINE;
    perf_progress_begin(program->ranks.rank == 0);
    if (options->npolicies > 0) /* uncalibrated models are to be expected, and not worth a line each */
        setenv("STARPU_SILENT", "1", 0);
    for (size_t i = 0; exit_code == EXIT_FINE && i < ncontexts; i++) {
        if (options->npolicies > 0)
            setenv("STARPU_SCHED", options->policies[i], 1);
        exit_code = run_context(program, i == 0, i + 1 == ncontexts);
    }
    perf_progress_end();
    return exit_code;
}

/* Between the start of MPI and its end. */
static int run_ranks(program_t *program, const perf_error_t *usage)
{
    perf_error_t error;
    if (perf_agree_count(&program->ranks, usage) > 0)
        return EXIT_USAGE;
    if (!perf_agree_options(&program->ranks, &program->options, &error)) {
        perf_agree_print(&program->ranks, error.text);
        return EXIT_USAGE;
    }
    bool fits =
        perf_model_apply(&program->options, program->ranks.nranks, &error) && check_memory(program, &error);
    if (perf_agree_count(&program->ranks, fits ? NULL : &error) > 0)
        return EXIT_USAGE;
    return run(program);
}

int main(int argc, char **argv)
{
    static program_t program;
    perf_error_t error;
    bool ok = perf_options_parse(argc, argv, &program.options, &error);
    if (ok && program.options.help) {
        perf_options_help(stdout);
        return EXIT_FINE;
    }
    if (ok && program.options.version) {
        printf("starlin-perf %s\n", starlin_version());
        return EXIT_FINE;
    }
    ok = ok && perf_policies_check(&program.options, &error) && open_weights(&program, &error);
    if (!ok && !perf_ranks_launched()) { /* nothing was started, nobody waits */
        fprintf(stderr, "starlin-perf: %s\n", error.text);
        perf_weights_close(program.weights);
        return EXIT_USAGE;
    }
    perf_error_t start_error;
    if (!perf_ranks_start(&program.ranks, &start_error)) {
        fprintf(stderr, "starlin-perf: %s\n", start_error.text);
        return EXIT_WRONG;
    }
    int exit_code = run_ranks(&program, ok ? NULL : &error);
    perf_ranks_finish();
    perf_recording_release(&program.recording);
    free(program.rows);
    perf_weights_close(program.weights);
    return exit_code;
}
