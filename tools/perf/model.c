/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of known models. Sizes are those of each model's config.json on huggingface.co (gpt3-175b: of its
 * paper), which agree with the paper where one gives them. */
#include <inttypes.h>
#include <string.h>

#include "options.h"

/* ffn: inner size of the MLP, of one expert where there are several. */
static const perf_model_t models[] = {
    {"llama3-8b", 4096, 14336},    /* meta-llama/Meta-Llama-3-8B; arXiv 2407.21783, table 3 */
    {"llama3-70b", 8192, 28672},   /* meta-llama/Meta-Llama-3-70B; the same table */
    {"llama3-405b", 16384, 53248}, /* meta-llama/Llama-3.1-405B; the same table */
    {"gpt3-175b", 12288, 49152},   /* arXiv 2005.14165, table 2.1; the inner size is 4 d_model */
    {"qwen2.5-72b", 8192, 29568},  /* Qwen/Qwen2.5-72B */
    {"mixtral-8x7b", 4096, 14336}, /* mistralai/Mixtral-8x7B-v0.1; arXiv 2401.04088, table 1 */
};
enum { NMODELS = sizeof(models) / sizeof(models[0]) };

bool perf_model_parse(const char *text, const perf_model_t **model_p, int64_t *tp_p, perf_error_t *error)
{
    size_t length = strcspn(text, ":");
    char names[160] = "";
    *tp_p = 0;
    if (text[length] != '\0' && strncmp(text + length, ":tp=", 4) != 0)
        return perf_error_set(error, "--model: '%.64s' is not NAME or NAME:tp=P", text);
    if (text[length] != '\0' && !perf_number_parse("--model: tp", text + length + 4, 1, 1048576, tp_p, error))
        return false;
    for (size_t i = 0; i < NMODELS; i++) {
        if (strlen(models[i].name) == length && strncmp(models[i].name, text, length) == 0) {
            *model_p = &models[i];
            return true;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", models[i].name);
    }
    return perf_error_set(error, "--model: unknown '%.*s' (allowed: %s; with :tp=P behind it)",
                          (int)(length < 64 ? length : 64), text, names);
}

bool perf_model_apply(perf_options_t *options, int nranks, perf_error_t *error)
{
    const perf_model_t *model = options->model;
    if (model == NULL)
        return true;
    int64_t virtual_ranks = options->link.modelled ? (int64_t)options->link.ranks : nranks;
    int64_t tp = options->model_tp > 0 ? options->model_tp : virtual_ranks;
    if (model->ffn % tp != 0)
        return perf_error_set(
            error, "--model: %s has an inner size of %" PRId64 ", which %" PRId64 " ranks do not divide",
            model->name, model->ffn, tp);
    int64_t shared = model->ffn / tp * nranks; /* so that each rank has a slice of ffn / tp */
    options->n = (perf_sweep_t){1, {options->op->splits_n ? shared : model->hidden}};
    options->k = (perf_sweep_t){1, {options->op->splits_n ? model->hidden : shared}};
    return true;
}
