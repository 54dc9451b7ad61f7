/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of the command line. Everything that can be judged without starting anything is judged here. */
#define _GNU_SOURCE
#include "options.h"

#include <getopt.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

enum {
    OPTION_COMM = 256,
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
    OPTION_TUNE,
    OPTION_EXPLAIN,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
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
    {"tune", no_argument, NULL, OPTION_TUNE},
    {"explain", no_argument, NULL, OPTION_EXPLAIN},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

typedef struct parser {
    perf_options_t *options;
    perf_error_t *error;
} parser_t;

static bool parse_dtype(void *arg, const char *piece)
{
    parser_t *parser = arg;
    perf_options_t *options = parser->options;
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        if (strcmp(piece, starlin_dtype_name((starlin_dtype_t)dtype)) != 0)
            continue;
        if (options->ndtypes == sizeof(options->dtypes) / sizeof(options->dtypes[0]))
            return perf_error_set(parser->error, "-t: more than 4 dtypes");
        options->dtypes[options->ndtypes++] = (starlin_dtype_t)dtype;
        return true;
    }
    return perf_error_set(parser->error, "-t: unknown dtype '%s' (allowed: f32, f64, f16, bf16)", piece);
}

static bool parse_chunking(void *arg, const char *piece)
{
    parser_t *parser = arg;
    perf_options_t *options = parser->options;
    if (options->nchunkings == PERF_MAX_CHUNKINGS)
        return perf_error_set(parser->error, "-c: more than %d chunkings", PERF_MAX_CHUNKINGS);
    perf_chunking_t *chunking = &options->chunkings[options->nchunkings++];
    memset(chunking, 0, sizeof(*chunking));
    if (strcmp(piece, "auto") == 0)
        return true;
    if (strchr(piece, ',') != NULL)
        return perf_number_list("-c", piece, 1, PERF_MAX_SIZE, chunking->rows, STARLIN__MAX_CHUNKS,
                                &chunking->nrows, parser->error);
    int64_t count;
    if (!perf_number_parse("-c", piece, 1, STARLIN__MAX_CHUNKS, &count, parser->error))
        return perf_error_set(
            parser->error,
            "-c: '%s' is no chunking (allowed: auto, a count from 1 to %d, or a list of row "
            "counts such as 3072,1536,512; several separated by ';')",
            piece, STARLIN__MAX_CHUNKS);
    chunking->count = (size_t)count;
    return true;
}

static bool parse_baseline(void *arg, const char *piece)
{
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {{"serial", PERF_SERIAL}, {"loop", PERF_LOOP},         {"gemm", PERF_GEMM},
                 {"comm", PERF_COMM},     {"all", PERF_ALL_BASELINES}, {"none", 0}};
    parser_t *parser = arg;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(piece, names[i].name) == 0) {
            parser->options->baselines |= names[i].bits;
            return true;
        }
    return perf_error_set(
        parser->error,
        "--baselines: unknown '%s' (allowed: all, none, or a list of serial, loop, gemm, comm)", piece);
}

static bool parse_policy(void *arg, const char *piece)
{
    parser_t *parser = arg;
    perf_options_t *options = parser->options;
    if (options->npolicies == PERF_MAX_POLICIES)
        return perf_error_set(parser->error, "--policies: more than %d policies", PERF_MAX_POLICIES);
    if (*piece == '\0' || strlen(piece) >= sizeof(options->policies[0]))
        return perf_error_set(parser->error, "--policies: '%.64s' is no name of a policy", piece);
    strcpy(options->policies[options->npolicies++], piece);
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

static bool parse_weights(const char *text, perf_options_t *options, perf_error_t *error)
{
    const char *colon = strrchr(text, ':');
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
    if (starlin__trace_check_path(path) != STARLIN_SUCCESS)
        return perf_error_set(error, "--trace: %s", starlin_last_error());
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
    case OPTION_TUNE:
        options->tune = true;
        break;
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
    return check_rows(options, error) && fit_check(options, error);
}
