/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the tool: what is taken, and what is refused with value and allowed range. */
#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include "check.h"

static perf_options_t options;
static perf_error_t error;

#define MAX_ARGUMENTS 32

/* Parses "a b c" (no quoting); the pieces must live as long as the options. */
static bool parse(const char *line)
{
    static char copy[512];
    char *argv[MAX_ARGUMENTS] = {"starlin-perf"}, *save = NULL;
    int argc = 1;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *piece = strtok_r(copy, " ", &save); piece != NULL && argc < MAX_ARGUMENTS;
         piece = strtok_r(NULL, " ", &save))
        argv[argc++] = piece;
    error.text[0] = '\0';
    return perf_options_parse(argc, argv, &options, &error);
}

static void refused(const char *line, const char *value, const char *allowed)
{
    if (parse(line))
        CHECK_FAIL("'%s' was taken", line);
    CHECK_CONTAINS(error.text, value);
    CHECK_CONTAINS(error.text, allowed);
}

static void test_defaults(void)
{
    CHECK(parse(""));
    CHECK_EQ_INT(options.m.values[0], 2048);
    CHECK_EQ_INT(options.n.values[0], 1024);
    CHECK_EQ_INT(options.k.values[0], 2048);
    CHECK_EQ_INT(options.ndtypes, 1);
    CHECK_EQ_INT(options.dtypes[0], STARLIN_F32);
    CHECK_EQ_INT(options.nchunkings, 1);
    CHECK_EQ_INT(options.chunkings[0].count + options.chunkings[0].nrows, 0);
    CHECK_EQ_INT(options.iterations, 20);
    CHECK_EQ_INT(options.warmups, 5);
    CHECK_EQ_INT(options.layers, 1);
    CHECK_EQ_INT(options.baselines, PERF_ALL_BASELINES);
    CHECK(options.check && !options.random);
    CHECK_EQ_INT(options.seed, 1);
}

static void test_taken(void)
{
    CHECK(
        parse("-m 10,20 -n 3 -k 1 -t bf16,f64 -i 1 -w 0 --layers 8 --check off --seed 18446744073709551615"));
    CHECK_EQ_INT(options.m.count, 2);
    CHECK_EQ_INT(options.m.values[1], 20);
    CHECK_EQ_INT(options.dtypes[0], STARLIN_BF16);
    CHECK_EQ_INT(options.dtypes[1], STARLIN_F64);
    CHECK_EQ_INT(options.warmups, 0);
    CHECK(!options.check);
    CHECK(options.seed == UINT64_MAX);
    CHECK(parse("-m 10 -c 1;4;6,3,1;auto --baselines serial,comm --reduction f32"));
    CHECK_EQ_INT(options.nchunkings, 4);
    CHECK_EQ_INT(options.chunkings[1].count, 4);
    CHECK_EQ_INT(options.chunkings[2].nrows, 3);
    CHECK_EQ_INT(options.chunkings[2].rows[1], 3);
    CHECK_EQ_INT(options.chunkings[3].count + options.chunkings[3].nrows, 0);
    CHECK_EQ_INT(options.baselines, PERF_SERIAL | PERF_COMM);
    CHECK_EQ_INT(options.reduction, STARLIN_REDUCTION_F32);
    CHECK(parse("--comm model:gbps=1,latency_us=50,ranks=4 --compute cblas --baselines none"));
    CHECK_EQ_INT(options.baselines, 0);
    CHECK(parse("--weights dir/a:b.safetensors:layer.weight"));
    CHECK_EQ_STR(options.weights_file, "dir/a:b.safetensors");
    CHECK_EQ_STR(options.weights_tensor, "layer.weight");
    CHECK(parse("--weights /dev/null:a:kernel:0")); /* the first colon behind a file that is there */
    CHECK_EQ_STR(options.weights_file, "/dev/null");
    CHECK_EQ_STR(options.weights_tensor, "a:kernel:0");
    CHECK(parse("--op column_linear --sequence-parallel --effort estimate"));
    CHECK(strcmp(options.op->name, "column_linear") == 0 && options.sequence_parallel);
    CHECK_EQ_INT(options.effort, STARLIN_EFFORT_ESTIMATE);
    CHECK(parse("--help") && options.help);
}

/* Random numbers cannot be checked: off unless asked for, and refused where asked for, in any order. */
static void test_data(void)
{
    CHECK(parse("--data random"));
    CHECK(options.random && !options.check);
    CHECK(parse("--data random --check off"));
    CHECK(options.random && !options.check);
    CHECK(parse("--data integers --check on"));
    CHECK(!options.random && options.check);
    CHECK(parse("--data random --weights file:tensor"));
    CHECK(options.random && !options.check);
    refused("--data random --check on", "--check on", "--data integers");
    refused("--check on --data random", "--data random", "--check off");
    refused("--check on --weights file:tensor --data random", "--data random", "--check off");
    refused("--data zeros", "'zeros'", "integers, random");
}

static void test_numbers_refused(void)
{
    refused("-m 99999999999", "99999999999", "1 to 2147483647");
    refused("-m 99999999999999999999999", "99999999999999999999999", "1 to 2147483647");
    refused("-m 0", "0", "1 to 2147483647");
    refused("-n -5", "-5", "1 to 2147483647");
    refused("-k 5x", "'5x'", "whole number");
    refused("-k 1e3", "'1e3'", "whole number");
    refused("-m 5,,6", "''", "whole number");
    refused("-m 5,", "''", "whole number");
    refused("-m 0x10", "'0x10'", "whole number");
    refused("-m +5", "'+5'", "whole number");
    refused("-i 0", "0", "1 to 1000000");
    refused("-w -1", "-1", "0 to 1000000");
    refused("--layers 0", "0", "1 to 10000");
    refused("--seed -1", "'-1'", "0 to 18446744073709551615");
    refused("--seed 18446744073709551616", "18446744073709551616", "0 to");
}

static void test_words_refused(void)
{
    refused("-t f8", "'f8'", "f32, f64, f16, bf16");
    refused("-t f32,", "''", "f32, f64, f16, bf16");
    refused("-c four", "'four'", "auto");
    refused("-c 0", "'0'", "1 to 256");
    refused("-c 257", "'257'", "1 to 256");
    refused("-m 10 -c 6,3", "sum to 9", "-m 10");
    refused("-m 9,10 -c 6,3", "sum to 9", "-m 10");
    refused("-m 9 -c 9,0", "0", "1 to");
    refused("-c 1;", "''", "auto");
    refused("--comm model:gbps=-1", "gbps", "-1");
    refused("--comm model:gbps=1,speed=2", "speed", "gbps");
    refused("--comm model", "gbps", "");
    refused("--comm model:gbps=1,ranks=1", "ranks: 1", "2 to");
    refused("--op matmul", "'matmul'", "row_linear, column_linear");
    refused("--op row", "'row'", "row_linear, column_linear");
    refused("--op row_linear2", "'row_linear2'", "row_linear, column_linear");
    refused("--sequence-parallel=yes", "--sequence-parallel", "--help");
    refused("--effort guess", "'guess'", "measure, estimate");
    refused("--model llama", "'llama'", "llama3-8b");
    refused("--model llama3-8b:tp=0", "0", "1 to");
    refused("--model llama3-8b:ep=2", "'llama3-8b:ep=2'", "NAME:tp=P");
    refused("--model llama3-8b -n 4", "--model", "-n");
    refused("--model llama3-8b --weights file:tensor", "--model", "--weights");
    refused("--tune", "--tune", "--help");
    refused("--reduction f64", "'f64'", "native, f32");
    refused("--check maybe", "'maybe'", "off, on");
    refused("--baselines serial,fast", "'fast'", "serial, loop, gemm, comm");
    refused("--weights file", "'file'", "FILE:TENSOR");
    refused("--weights :x", "':x'", "FILE:TENSOR");
    refused("--json /no/such/dir/x.json", "/no/such/dir/x.json", "write");
    refused("--trace out.txt", "out.txt", ".json");
    refused("--trace /no/such/dir/x.html", "/no/such/dir/x.html", "write");
    refused("--speed 3", "--speed", "--help");
    refused("-q", "-q", "--help");
    refused("-m", "-m", "needs a value");
    refused("--seed", "--seed", "needs a value");
    refused("extra", "'extra'", "--help");
}

/* Each rank gets the slice that it would have among tp ranks. */
static void test_model(void)
{
    CHECK(parse("--model llama3-70b:tp=8 -m 4096"));
    CHECK(options.model != NULL && options.model_tp == 8);
    CHECK(perf_model_apply(&options, 2, &error));
    CHECK_EQ_INT(options.m.values[0], 4096);
    CHECK_EQ_INT(options.n.values[0], 8192);
    CHECK_EQ_INT(options.k.values[0], 28672 / 8 * 2);
    CHECK(parse("--model gpt3-175b --op column_linear"));
    CHECK(perf_model_apply(&options, 4, &error));
    CHECK_EQ_INT(options.n.values[0], 49152);
    CHECK_EQ_INT(options.k.values[0], 12288);
    CHECK(parse("--model qwen2.5-72b --comm model:gbps=200,ranks=8")); /* the link's ranks */
    CHECK_EQ_INT(options.link.ranks, 8);
    CHECK(perf_model_apply(&options, 1, &error));
    CHECK_EQ_INT(options.k.values[0], 29568 / 8);
    CHECK(parse("--model llama3-8b:tp=3") && !perf_model_apply(&options, 1, &error));
    CHECK_CONTAINS(error.text, "14336");
    CHECK(parse("-n 5") && perf_model_apply(&options, 1, &error)); /* without a model nothing changes */
    CHECK_EQ_INT(options.n.values[0], 5);
}

static void test_fields(void)
{
    perf_option_field_t fields[PERF_NFIELDS];
    CHECK(parse("-m 1,2 -k 4,5 --baselines loop,gemm --data random"));
    perf_options_fields(&options, fields);
    bool found_k = false, found_baselines = false, found_data = false, found_weights = false, found_m = false;
    for (size_t i = 0; i < PERF_NFIELDS; i++) {
        const char *name = fields[i].name, *value = fields[i].value;
        found_m = found_m || (strcmp(name, "-m") == 0 && strcmp(value, "1,2") == 0);
        found_k = found_k || (strcmp(name, "-k") == 0 && strcmp(value, "4,5") == 0);
        found_baselines =
            found_baselines || (strcmp(name, "--baselines") == 0 && strcmp(value, "loop gemm") == 0);
        found_data = found_data || (strcmp(name, "--data") == 0 && strcmp(value, "random") == 0);
        found_weights = found_weights || (strcmp(name, "--weights") == 0 && strcmp(value, "not given") == 0);
        CHECK(name[0] != '\0' && value[0] != '\0');
    }
    CHECK(found_m);
    CHECK(found_k);
    CHECK(found_baselines);
    CHECK(found_data);
    CHECK(found_weights);
}

int main(void)
{
    test_defaults();
    test_taken();
    test_data();
    test_numbers_refused();
    test_words_refused();
    test_model();
    test_fields();
    return CHECK_RESULT();
}
