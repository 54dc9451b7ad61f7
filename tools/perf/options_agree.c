/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks must agree about before they start. Sizes of sweeps decide how many collective calls
 * follow, so they are compared here; M, N, dtypes and chunk lists themselves are compared by the library. */
#include "options.h"

#include <inttypes.h>
#include <string.h>

static void print_sweep(const perf_sweep_t *sweep, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < sweep->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i > 0 ? "," : "", sweep->values[i]);
    if (used >= size) /* too long to show whole: the hash still tells the lists apart */
        snprintf(text, size, "%zu sizes (hash %016" PRIx64 ")", sweep->count,
                 starlin__hash(STARLIN__HASH_INIT, sweep->values, sweep->count * sizeof(int64_t)));
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

bool perf_options_field(const perf_options_t *options, size_t index, perf_option_field_t *field_p)
{
    static const char *const names[] = {"-m",     "-n",          "-k",         "-t",          "-c",
                                        "-i",     "-w",          "--layers",   "--data",      "--check",
                                        "--seed", "--baselines", "--comm",     "--reduction", "--trace",
                                        "--tune", "--report",    "--policies", "--weights"};
    if (index >= sizeof(names) / sizeof(names[0]))
        return false;
    memset(field_p, 0, sizeof(*field_p));
    snprintf(field_p->name, sizeof(field_p->name), "%s", names[index]);
    char *text = field_p->value;
    const size_t size = sizeof(field_p->value);
    switch (index) {
    case 0:
        snprintf(text, size, "%zu sizes", options->m.count);
        break;
    case 1:
        snprintf(text, size, "%zu sizes", options->n.count);
        break;
    case 2: /* the library allows any slice of K, the tool needs one K */
        print_sweep(&options->k, text, size);
        break;
    case 3:
        snprintf(text, size, "%zu dtypes", options->ndtypes);
        break;
    case 4:
        snprintf(text, size, "%zu chunkings", options->nchunkings);
        break;
    case 5:
        snprintf(text, size, "%u", options->iterations);
        break;
    case 6:
        snprintf(text, size, "%u", options->warmups);
        break;
    case 7:
        snprintf(text, size, "%u", options->layers);
        break;
    case 8: /* decides about the check: named first where both differ */
        snprintf(text, size, "%s", options->random ? "random" : "integers");
        break;
    case 9:
        snprintf(text, size, "%s", options->check ? "on" : "off");
        break;
    case 10:
        snprintf(text, size, "%" PRIu64, options->seed);
        break;
    case 11:
        print_baselines(options->baselines, text, size);
        break;
    case 12:
        snprintf(text, size, "%s", options->comm != NULL ? options->comm : "not given");
        break;
    case 13:
        snprintf(text, size, "%s", options->reduction == STARLIN_REDUCTION_F32 ? "f32" : "native");
        break;
    case 14: /* recording is collective */
        snprintf(text, size, "%s", options->trace != NULL ? "given" : "not given");
        break;
    case 15: /* so is tuning */
        snprintf(text, size, "%s", options->tune ? "given" : "not given");
        break;
    case 16:
        snprintf(text, size, "%s", options->report ? "given" : "not given");
        break;
    case 17:
        print_policies(options, text, size);
        break;
    default:
        snprintf(text, size, "%s", options->weights_file[0] != '\0' ? options->weights_tensor : "not given");
    }
    return true;
}
