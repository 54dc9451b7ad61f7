/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of the command line. Everything that can be judged without starting anything is judged here. */
#define _GNU_SOURCE
#include "options.h"

#include <getopt.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

enum {
    OPTION_OP = 256,
    OPTION_SEQUENCE_PARALLEL,
    OPTION_MODEL,
    OPTION_EFFORT,
    OPTION_COMM,
    OPTION_COMPUTE,
    OPTION_REDUCTION,
    OPTION_LAYERS,
    OPTION_BASELINES,
    OPTION_CHECK,
    OPTION_DATA,
    OPTION_WEIGHTS,
    OPTION_JSON,
    OPTION_TRACE,
    OPTION_REPORT,
    OPTION_POLICIES,
    OPTION_SEED,
    OPTION_EXPLAIN,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"op", required_argument, NULL, OPTION_OP},
    {"sequence-parallel", no_argument, NULL, OPTION_SEQUENCE_PARALLEL},
    {"model", required_argument, NULL, OPTION_MODEL},
    {"effort", required_argument, NULL, OPTION_EFFORT},
    {"comm", required_argument, NULL, OPTION_COMM},
    {"compute", required_argument, NULL, OPTION_COMPUTE},
    {"reduction", required_argument, NULL, OPTION_REDUCTION},
    {"layers", required_argument, NULL, OPTION_LAYERS},
    {"baselines", required_argument, NULL, OPTION_BASELINES},
    {"check", required_argument, NULL, OPTION_CHECK},
    {"data", required_argument, NULL, OPTION_DATA},
    {"weights", required_argument, NULL, OPTION_WEIGHTS},
    {"json", required_argument, NULL, OPTION_JSON},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"report", no_argument, NULL, OPTION_REPORT},
    {"policies", required_argument, NULL, OPTION_POLICIES},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"explain", no_argument, NULL, OPTION_EXPLAIN},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

typedef struct parser {
    perf_options_t *options;
    perf_error_t *error;
} parser_t;

static bool parse_dtype(void *arg, const char *part)
{
    parser_t *parser = arg;
    perf_options_t *options = parser->options;
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        if (strcmp(part, starlin_dtype_name((starlin_dtype_t)dtype)) != 0)
            continue;
        if (options->ndtypes == sizeof(options->dtypes) / sizeof(options->dtypes[0]))
            return perf_error_set(parser->error, "-t: more than 4 dtypes");
        options->dtypes[options->ndtypes++] = (starlin_dtype_t)dtype;
        return true;
    }
    return perf_error_set(parser->error, "-t: unknown dtype '%s' (allowed: f32, f64, f16, bf16)", part);
}

static bool parse_chunking(void *arg, const char *part)
{
    parser_t *parser = arg;
    perf_options_t *options = parser->options;
    if (options->nchunkings == PERF_MAX_CHUNKINGS)
        return perf_error_set(parser->error, "-c: more than %d chunkings", PERF_MAX_CHUNKINGS);
    perf_chunking_t *chunking = &options->chunkings[options->nchunkings++];
    memset(chunking, 0, sizeof(*chunking));
    if (strcmp(part, "auto") == 0)
        return true;
    if (strchr(part, ',') != NULL)
        return perf_number_list("-c", part, 1, PERF_MAX_SIZE, chunking->rows, PERF_MAX_CHUNKS,
                                &chunking->nrows, parser->error);
    int64_t count;
    if (!perf_number_parse("-c", part, 1, PERF_MAX_CHUNKS, &count, parser->error))
        return perf_error_set(
            parser->error,
            "-c: '%s' is no chunking (allowed: auto, a count from 1 to %d, or a list of row "
            "counts such as 3072,1536,512; several separated by ';')",
            part, PERF_MAX_CHUNKS);
    chunking->count = (size_t)count;
    return true;
}

static bool parse_baseline(void *arg, const char *part)
{
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {{"serial", PERF_SERIAL}, {"loop", PERF_LOOP},         {"gemm", PERF_GEMM},
                 {"comm", PERF_COMM},     {"all", PERF_ALL_BASELINES}, {"none", 0}};
    parser_t *parser = arg;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(part, names[i].name) == 0) {
            parser->options->baselines |= names[i].bits;
            return true;
        }
    return perf_error_set(
        parser->error,
        "--baselines: unknown '%s' (allowed: all, none, or a list of serial, loop, gemm, comm)", part);
}

static bool parse_policy(void *arg, const char *part)
{
    parser_t *parser = arg;
    perf_options_t *options = parser->options;
    if (options->npolicies == PERF_MAX_POLICIES)
        return perf_error_set(parser->error, "--policies: more than %d policies", PERF_MAX_POLICIES);
    if (*part == '\0' || strlen(part) >= sizeof(options->policies[0]))
        return perf_error_set(parser->error, "--policies: '%.64s' is no name of a policy", part);
    strcpy(options->policies[options->npolicies++], part);
    return true;
}

/* One of two words. */
static bool parse_word(const char *what, const char *text, const char *first, const char *second,
                       bool *second_p, perf_error_t *error)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        return perf_error_set(error, "%s: '%s' is not allowed (allowed: %s, %s)", what, text, first, second);
    *second_p = strcmp(text, second) == 0;
    return true;
}

static bool parse_unsigned(const char *what, const char *text, int64_t min, int64_t max, unsigned *value_p,
                           perf_error_t *error)
{
    int64_t value;
    if (!perf_number_parse(what, text, min, max, &value, error))
        return false;
    *value_p = (unsigned)value;
    return true;
}

static bool parse_op(const char *text, perf_options_t *options, perf_error_t *error)
{
    char names[160] = "";
    for (const perf_op_t *const *op = perf_ops; *op != NULL; op++) {
        if (strcmp((*op)->name, text) == 0) {
            options->op = *op;
            return true;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", (*op)->name);
    }
    return perf_error_set(error, "--op: unknown '%.64s' (allowed: %s)", text, names);
}

/* Names of files and of tensors may hold colons: the first colon behind the name of a file that exists, else
 * the last one. */
static const char *find_colon(const char *text)
{
    char path[4096];
    for (const char *colon = strchr(text, ':'); colon != NULL; colon = strchr(colon + 1, ':')) {
        if ((size_t)(colon - text) >= sizeof(path))
            break;
        memcpy(path, text, (size_t)(colon - text));
        path[colon - text] = '\0';
        if (access(path, F_OK) == 0)
            return colon;
    }
    return strrchr(text, ':');
}

static bool parse_weights(const char *text, perf_options_t *options, perf_error_t *error)
{
    const char *colon = find_colon(text);
    if (colon == NULL || colon == text || colon[1] == '\0')
        return perf_error_set(error, "--weights: '%s' is not FILE:TENSOR", text);
    if ((size_t)(colon - text) >= sizeof(options->weights_file) ||
        strlen(colon + 1) >= sizeof(options->weights_tensor))
        return perf_error_set(error, "--weights: '%.64s...' is too long", text);
    memcpy(options->weights_file, text, (size_t)(colon - text));
    options->weights_file[colon - text] = '\0';
    strcpy(options->weights_tensor, colon + 1);
    return true;
}

/* Files are written at the end of a run that may take long: see now whether they can be. */
static bool parse_file(const char *what, const char *path, const char **path_p, perf_error_t *error)
{
    char copy[4096];
    if (*path == '\0' || strlen(path) >= sizeof(copy))
        return perf_error_set(error, "%s: '%.64s' is no file name", what, path);
    strcpy(copy, path);
    const char *directory = dirname(copy);
    if (access(path, F_OK) == 0 ? access(path, W_OK) != 0 : access(directory, W_OK | X_OK) != 0)
        return perf_error_set(error, "%s: cannot write '%s'", what, path);
    *path_p = path;
    return true;
}

static bool parse_trace(const char *path, perf_options_t *options, perf_error_t *error)
{
    if (!trace_check_path(path))
        return perf_error_set(error, "--trace: '%.256s' ends in none of .json, .html, .svg", path);
    return parse_file("--trace", path, &options->trace, error);
}

static bool parse_sweep(const char *what, const char *text, perf_sweep_t *sweep, perf_error_t *error)
{
    return perf_number_list(what, text, 1, PERF_MAX_SIZE, sweep->values, PERF_MAX_SWEEP, &sweep->count,
                            error);
}

static bool parse_short(int option, const char *text, perf_options_t *options, perf_error_t *error)
{
    parser_t parser = {options, error};
    switch (option) {
    case 'm':
        return parse_sweep("-m", text, &options->m, error);
    case 'n':
        options->n_given = true;
        return parse_sweep("-n", text, &options->n, error);
    case 'k':
        options->k_given = true;
        return parse_sweep("-k", text, &options->k, error);
    case 't':
        options->dtype_given = true;
        options->ndtypes = 0;
        return perf_text_split(text, ',', parse_dtype, &parser);
    case 'c':
        options->nchunkings = 0;
        return perf_text_split(text, ';', parse_chunking, &parser);
    case 'i':
        return parse_unsigned("-i", text, 1, 1000000, &options->iterations, error);
    default:
        return parse_unsigned("-w", text, 0, 1000000, &options->warmups, error);
    }
}

static bool parse_long(int option, const char *text, perf_options_t *options, perf_error_t *error)
{
    parser_t parser = {options, error};
    bool second = false, ok = true;
    switch (option) {
    case OPTION_OP:
        return parse_op(text, options, error);
    case OPTION_SEQUENCE_PARALLEL:
        options->sequence_parallel = true;
        break;
    case OPTION_MODEL:
        return perf_model_parse(text, &options->model, &options->model_tp, error);
    case OPTION_EFFORT:
        ok = parse_word("--effort", text, "measure", "estimate", &second, error);
        options->effort = second ? STARLIN_EFFORT_ESTIMATE : STARLIN_EFFORT_MEASURE;
        break;
    case OPTION_COMM:
        options->comm = text;
        break;
    case OPTION_COMPUTE:
        options->compute = text;
        break;
    case OPTION_REDUCTION:
        ok = parse_word("--reduction", text, "native", "f32", &second, error);
        options->reduction = second ? STARLIN_REDUCTION_F32 : STARLIN_REDUCTION_NATIVE;
        break;
    case OPTION_LAYERS:
        return parse_unsigned("--layers", text, 1, 10000, &options->layers, error);
    case OPTION_BASELINES:
        options->baselines = 0;
        return perf_text_split(text, ',', parse_baseline, &parser);
    case OPTION_CHECK:
        options->check_given = true;
        return parse_word("--check", text, "off", "on", &options->check, error);
    case OPTION_DATA:
        return parse_word("--data", text, "integers", "random", &options->random, error);
    case OPTION_WEIGHTS:
        return parse_weights(text, options, error);
    case OPTION_JSON:
        return parse_file("--json", text, &options->json, error);
    case OPTION_TRACE:
        return parse_trace(text, options, error);
    case OPTION_REPORT:
        options->report = true;
        break;
    case OPTION_POLICIES:
        options->npolicies = 0;
        return perf_text_split(text, ',', parse_policy, &parser);
    case OPTION_SEED:
        return perf_number_u64("--seed", text, &options->seed, error);
    case OPTION_EXPLAIN:
        options->explain = true;
        break;
    case OPTION_HELP:
        options->help = true;
        break;
    default:
        options->version = true;
    }
    return ok;
}

/* Every list of rows must fit every M of the sweep. */
static bool check_rows(const perf_options_t *options, perf_error_t *error)
{
    for (size_t c = 0; c < options->nchunkings; c++) {
        const perf_chunking_t *chunking = &options->chunkings[c];
        int64_t sum = 0;
        for (size_t i = 0; i < chunking->nrows; i++)
            sum += chunking->rows[i];
        for (size_t i = 0; chunking->nrows > 0 && i < options->m.count; i++)
            if (sum != options->m.values[i])
                return perf_error_set(error,
                                      "-c: the rows %" PRId64 ",%" PRId64 "%s sum to %" PRId64
                                      ", but must sum to -m %" PRId64,
                                      chunking->rows[0], chunking->rows[1], chunking->nrows > 2 ? ",..." : "",
                                      sum, options->m.values[i]);
    }
    return true;
}

/* A modelled link's parameters are needed by the baselines too, wherever they come from. */
static bool fit_link(perf_options_t *options, perf_error_t *error)
{
    const char *comm = options->comm != NULL ? options->comm : getenv("STARLIN_COMM");
    if (comm == NULL || strncmp(comm, "model", 5) != 0)
        return true;
    return perf_link_parse(comm, &options->link, error);
}

static bool fit_model(const perf_options_t *options, perf_error_t *error)
{
    if (options->model == NULL)
        return true;
    const char *other = options->n_given ? "-n" : options->k_given ? "-k" : "--weights";
    if (options->n_given || options->k_given || options->weights_file[0] != '\0')
        return perf_error_set(error, "--model: not with %s, which it sets (allowed beside it: -m)", other);
    return true;
}

/* Who asks for a check must not be left without one; who does not gets none where there can be none. */
static bool fit_check(perf_options_t *options, perf_error_t *error)
{
    if (options->random && options->check && options->check_given)
        return perf_error_set(error, "--check on: not with --data random, whose exact result is not known "
                                     "(allowed: --data integers, or --check off)");
    options->check = options->check && !options->random;
    return true;
}

static void set_defaults(perf_options_t *options)
{
    memset(options, 0, sizeof(*options));
    options->op = perf_ops[0];
    options->m = (perf_sweep_t){1, {2048}};
    options->n = (perf_sweep_t){1, {1024}};
    options->k = (perf_sweep_t){1, {2048}};
    options->ndtypes = 1; /* f32 */
    options->nchunkings = 1;
    options->iterations = 20;
    options->warmups = 5;
    options->layers = 1;
    options->baselines = PERF_ALL_BASELINES;
    options->check = true;
    options->seed = 1;
}

bool perf_options_parse(int argc, char **argv, perf_options_t *options, perf_error_t *error)
{
    set_defaults(options);
    opterr = 0;
    optind = 0; /* start again, also within one process */
    int option;
    while ((option = getopt_long(argc, argv, ":m:n:k:t:c:i:w:h", long_options, NULL)) != -1) {
        if (option == ':')
            return perf_error_set(error, "%s needs a value (see --help)", argv[optind - 1]);
        if (option == '?' && optopt != 0 && optopt < 256)
            return perf_error_set(error, "unknown option '-%c' (see --help)", optopt);
        if (option == '?')
            return perf_error_set(error, "unknown option '%s' (see --help)", argv[optind - 1]);
        bool ok = option == 'h'  ? (options->help = true)
                  : option < 256 ? parse_short(option, optarg, options, error)
                                 : parse_long(option, optarg, options, error);
        if (!ok)
            return false;
    }
    if (optind < argc)
        return perf_error_set(error, "unexpected argument '%s' (see --help)", argv[optind]);
    return check_rows(options, error) && fit_check(options, error) && fit_link(options, error) &&
           fit_model(options, error);
}

static void print_sweep(const perf_sweep_t *sweep, char *text, size_t size)
{
    size_t used = 0;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, of whole values */
    for (size_t i = 0; i < sweep->count; i++) {
        hash = (hash ^ (uint64_t)sweep->values[i]) * UINT64_C(0x100000001b3);
        if (used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%" PRId64, i > 0 ? "," : "", sweep->values[i]);
    }
    if (used >= size) /* too long to show whole: the hash still tells the lists apart */
        snprintf(text, size, "%zu sizes (hash %016" PRIx64 ")", sweep->count, hash);
}

static void print_baselines(unsigned bits, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s%s%s", bits & PERF_SERIAL ? "serial " : "", bits & PERF_LOOP ? "loop " : "",
             bits & PERF_GEMM ? "gemm " : "", bits & PERF_COMM ? "comm " : "", bits == 0 ? "none " : "");
    text[strlen(text) - 1] = '\0';
}

static void print_policies(const perf_options_t *options, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", options->npolicies > 0 ? "" : "not given");
    for (size_t i = 0; i < options->npolicies && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "," : "", options->policies[i]);
}

static const char *given(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : "not given";
}

/* The lists of chunks themselves are compared by the library. */
void perf_options_fields(const perf_options_t *options, perf_option_field_t fields[PERF_NFIELDS])
{
    size_t i = 0;
    memset(fields, 0, PERF_NFIELDS * sizeof(fields[0]));
#define FIELD(option, ...)                                                                                   \
    (snprintf(fields[i].name, sizeof(fields[i].name), "%s", option),                                         \
     snprintf(fields[i++].value, sizeof(fields[0].value), __VA_ARGS__))
    FIELD("--op", "%s", options->op->name);
    FIELD("--sequence-parallel", "%s", options->sequence_parallel ? "given" : "not given");
    FIELD("--model", "%s:tp=%" PRId64, options->model != NULL ? options->model->name : "not given",
          options->model_tp);
    const perf_sweep_t *const sweeps[] = {&options->m, &options->n, &options->k};
    for (size_t j = 0; j < sizeof(sweeps) / sizeof(sweeps[0]); j++) {
        print_sweep(sweeps[j], fields[i].value, sizeof(fields[i].value));
        snprintf(fields[i++].name, sizeof(fields[0].name), "-%c", "mnk"[j]);
    }
    FIELD("-t", "%s", "");
    for (size_t j = 0, used = 0; j < options->ndtypes; j++)
        used += (size_t)snprintf(fields[i - 1].value + used, sizeof(fields[0].value) - used, "%s%s",
                                 j > 0 ? "," : "", starlin_dtype_name(options->dtypes[j]));
    FIELD("-c", "%zu chunkings", options->nchunkings);
    FIELD("-i", "%u", options->iterations);
    FIELD("-w", "%u", options->warmups);
    FIELD("--layers", "%u", options->layers);
    FIELD("--data", "%s", options->random ? "random" : "integers"); /* decides about --check: named first */
    FIELD("--check", "%s", options->check ? "on" : "off");
    FIELD("--seed", "%" PRIu64, options->seed);
    print_baselines(options->baselines, fields[i].value, sizeof(fields[i].value));
    snprintf(fields[i++].name, sizeof(fields[0].name), "--baselines");
    FIELD("--comm", "%s", given(options->comm));
    FIELD("--reduction", "%s", options->reduction == STARLIN_REDUCTION_F32 ? "f32" : "native");
    FIELD("--trace", "%s", options->trace != NULL ? "given" : "not given"); /* recording is collective */
    FIELD("--report", "%s", options->report ? "given" : "not given");
    print_policies(options, fields[i].value, sizeof(fields[i].value));
    snprintf(fields[i++].name, sizeof(fields[0].name), "--policies");
    FIELD("--weights", "%s", options->weights_file[0] != '\0' ? options->weights_tensor : "not given");
    FIELD("--effort", "%s", options->effort == STARLIN_EFFORT_ESTIMATE ? "estimate" : "measure");
#undef FIELD
}

void perf_options_help(FILE *stream)
{
    fputs(
        "usage: [mpirun -np P] starlin-perf [options]\n"
        "Times a tensor-parallel linear layer as a task graph, against hand-written loops.\n"
        "\n"
        "  --op NAME           row_linear: Y[M,N] = sum over ranks of X[M,K_r] W[N,K_r]^T  (row_linear)\n"
        "                      column_linear: Y[M,N_r] = X[M,K] W[N_r,K]^T\n"
        "  --sequence-parallel each rank has its block of rows, of Y (row_linear) or of X (column_linear)\n"
        "  -m, -n, -k LIST     rows, outputs, inner size, each of all ranks; commas make a sweep  (2048 1024 "
        "2048)\n"
        "  --model NAME[:tp=P] N and K of the MLP of llama3-8b, llama3-70b, llama3-405b, gpt3-175b, "
        "qwen2.5-72b\n"
        "                      or mixtral-8x7b, with the slices that P ranks have\n"
        "  -t LIST             dtypes: f32,f64,f16,bf16                                (f32)\n"
        "  -c LIST             chunkings separated by ';': a count (4), rows (3072,1024), auto  (auto)\n"
        "  --effort WORD       estimate or measure: how automatic lists are found      (measure)\n"
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
        "  --explain           print how automatic chunk lists were found, and the prediction's error\n"
        "  --report            print why time was lost, under the table\n"
        "  --policies LIST     run under each of these scheduling policies, one after the other\n"
        "  --seed S            inputs are reproducible                                 (1)\n"
        "  -h, --help  --version\n"
        "\n"
        "exit code: 0 fine, 1 wrong result or failure, 2 bad usage or input, 77 hardware that is not here\n",
        stream);
}
