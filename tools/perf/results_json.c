/* SPDX-License-Identifier: BSD-3-Clause */
/* Results to JSON. What was not measured is null, and no field is ever missing. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "results.h"

static json_t *time_or_null(double time_us)
{
    return time_us < 0 ? json_null() : json_real(time_us);
}

/* null for a list that was asked for. */
static json_t *plan_to_json(const perf_row_t *row)
{
    const perf_plan_t *plan = &row->plan;
    if (!plan->planned)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "source", json_string(plan->source));
    json_object_set_new(object, "predicted_us", json_real(plan->predicted_us));
    json_object_set_new(object, "simulated_us", time_or_null(plan->simulated_us));
    json_object_set_new(object, "ctas", json_null()); /* no longer a part of plans */
    json_object_set_new(object, "tried_us", time_or_null(plan->tried_us));
    json_object_set_new(object, "error_pct", json_real(perf_row_prediction_error_pct(row)));
    json_object_set_new(object, "serial_us", time_or_null(plan->serial_us));
    json_object_set_new(object, "gemm_us", json_null()); /* no longer priced apart */
    json_object_set_new(object, "comm_us", json_null());
    json_object_set_new(object, "planning_us", json_real(plan->planning_us));
    json_object_set_new(object, "lists", json_integer(plan->lists));
    json_object_set_new(object, "tuned", json_boolean(strcmp(plan->source, "wisdom") == 0));
    return object;
}

/* By number of chunks; null where loops were not measured. */
static json_t *loops_to_json(const perf_row_t *row)
{
    if (row->loop_chunks == 0)
        return json_null();
    json_t *object = json_object();
    for (unsigned i = 0; i < PERF_NLOOPS; i++) {
        char nchunks[16];
        snprintf(nchunks, sizeof(nchunks), "%u", 1u << i);
        json_object_set_new(object, nchunks, time_or_null(row->loops_us[i]));
    }
    return object;
}

static json_t *row_to_json(const perf_row_t *row)
{
    double hidden_pct;
    json_t *chunks = json_array();
    for (size_t i = 0; i < row->nchunks; i++)
        json_array_append_new(chunks, json_integer(row->chunks[i]));
    json_t *time_us = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "min", row->time_us.min, "median",
                                row->time_us.median, "mean", row->time_us.mean, "p99", row->time_us.p99,
                                "max", row->time_us.max, "spread", row->time_us.spread);
    json_t *object = json_object();
    json_object_set_new(object, "m", json_integer(row->m));
    json_object_set_new(object, "n", json_integer(row->n));
    json_object_set_new(object, "k", json_integer(row->k));
    json_object_set_new(object, "dtype", json_string(starlin_dtype_name(row->dtype)));
    json_object_set_new(object, "layers", json_integer(row->layers));
    json_object_set_new(object, "chunks", chunks);
    json_object_set_new(object, "time_us", time_us);
    json_object_set_new(object, "serial_us", time_or_null(row->serial_us));
    json_object_set_new(object, "loop_us", time_or_null(row->loop_us));
    json_object_set_new(object, "loop_chunks",
                        row->loop_chunks > 0 ? json_integer(row->loop_chunks) : json_null());
    json_object_set_new(object, "loops_us", loops_to_json(row));
    json_object_set_new(object, "gemm_us", time_or_null(row->gemm_us));
    json_object_set_new(object, "comm_us", time_or_null(row->comm_us));
    json_object_set_new(object, "ideal_us", time_or_null(perf_row_ideal_us(row)));
    json_object_set_new(object, "hidden_pct",
                        perf_row_hidden_pct(row, &hidden_pct) ? json_real(hidden_pct) : json_null());
    json_object_set_new(object, "tasks", json_integer((json_int_t)row->tasks));
    json_object_set_new(object, "fallback",
                        row->fallback[0] != '\0' ? json_string(row->fallback) : json_null());
    json_object_set_new(object, "wrong", row->wrong >= 0 ? json_integer(row->wrong) : json_null());
    json_object_set_new(object, "nonfinite", row->wrong >= 0 ? json_integer(row->nonfinite) : json_null());
    json_object_set_new(object, "plan", plan_to_json(row));
    if (row->policy[0] != '\0')
        json_object_set_new(object, "policy", json_string(row->policy));
    return object;
}

bool perf_results_write(const char *path, const perf_run_info_t *info, char (*devices)[128],
                        const perf_row_t *rows, size_t nrows, perf_error_t *error)
{
    json_t *root = json_object(), *row_list = json_array(), *device_list = json_array();
    for (int i = 0; i < info->ranks; i++)
        json_array_append_new(device_list, json_string(devices[i]));
    for (size_t i = 0; i < nrows; i++)
        json_array_append_new(row_list, row_to_json(&rows[i]));
    json_object_set_new(root, "schema_version", json_integer(1));
    json_object_set_new(root, "version", json_string(starlin_version()));
    json_object_set_new(root, "ranks", json_integer(info->ranks));
    json_object_set_new(root, "op", json_string(info->op));
    json_object_set_new(root, "sequence_parallel", json_boolean(info->sequence_parallel));
    json_object_set_new(root, "model", info->model[0] != '\0' ? json_string(info->model) : json_null());
    json_object_set_new(root, "policy", json_string(info->context.policy));
    json_object_set_new(root, "comm", json_string(info->context.comm));
    json_object_set_new(root, "compute", json_string(info->context.compute));
    json_object_set_new(root, "compute_version", json_string(info->context.compute_version));
    json_object_set_new(root, "compute_warning",
                        info->context.compute_warning != NULL ? json_string(info->context.compute_warning)
                                                              : json_null());
    json_object_set_new(root, "reduction", json_string(info->reduction));
    json_object_set_new(root, "data", json_string(info->data));
    json_object_set_new(root, "host", json_string(info->context.host));
    json_object_set_new(root, "devices", device_list);
    json_object_set_new(root, "starpu_version", json_string(info->context.starpu_version));
    json_object_set_new(root, "iterations", json_integer(info->iterations));
    json_object_set_new(root, "warmups", json_integer(info->warmups));
    json_object_set_new(root, "rows", row_list);
    perf_file_t file;
    perf_error_t why;
    bool ok = perf_file_open(&file, path, &why);
    if (ok) {
        bool dumped = json_dumpf(root, file.stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 &&
                      fputc('\n', file.stream) != EOF;
        if (!dumped)
            file.failed = errno != 0 ? errno : ENOMEM;
        ok = perf_file_close(&file, true, &why);
    }
    json_decref(root);
    return ok || perf_error_status(error, why.status, "--json: %s", why.text);
}
