/* SPDX-License-Identifier: BSD-3-Clause */
/* Safetensors files, sound and malformed: each fault is an error that names field and value. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "element.h"
#include "problem.h"
#include "weights.h"

static char path[] = "/tmp/starlin-safetensors-XXXXXX";
static perf_error_t error;

/* Header length, header, then `data_nbytes` bytes 0, 1, 2, ... */
static void write_file(uint64_t length, const char *header, size_t data_nbytes)
{
    FILE *file = fopen(path, "wb");
    for (unsigned i = 0; i < 8; i++)
        fputc((int)(length >> (8 * i) & 0xff), file);
    fputs(header, file);
    for (size_t i = 0; i < data_nbytes; i++)
        fputc((int)(i & 0xff), file);
    fclose(file);
}

static bool try_open(const char *header, size_t data_nbytes)
{
    perf_safetensors_t *file = NULL;
    write_file(strlen(header), header, data_nbytes);
    error.text[0] = '\0';
    bool ok = perf_safetensors_open(path, &file, &error);
    perf_safetensors_close(file);
    return ok;
}

static void refused(const char *header, size_t data_nbytes, const char *field, const char *value)
{
    if (try_open(header, data_nbytes))
        CHECK_FAIL("taken: %s", header);
    CHECK_CONTAINS(error.text, field);
    CHECK_CONTAINS(error.text, value);
}

static void refused_length(uint64_t length, const char *header, const char *value)
{
    perf_safetensors_t *file = NULL;
    write_file(length, header, 0);
    if (perf_safetensors_open(path, &file, &error)) {
        CHECK_FAIL("header length %s was taken", value);
        perf_safetensors_close(file);
    }
    CHECK_CONTAINS(error.text, "header length");
    CHECK_CONTAINS(error.text, value);
}

#define ONE(dtype, shape, offsets)                                                                           \
    "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(offsets_a, offsets_b)                                                                            \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets_a "},"                               \
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets_b "}}"

static void test_sound(void)
{
    CHECK(try_open("{}", 0));
    CHECK(try_open("{\"__metadata__\":{\"format\":\"pt\"}}   ", 0));
    CHECK(try_open(ONE("\"F32\"", "[2,3]", "[0,24]"), 24));
    CHECK(try_open(ONE("\"BF16\"", "[]", "[0,2]"), 2));
    CHECK(try_open(ONE("\"F32\"", "[0,3]", "[0,0]"), 0));
    CHECK(try_open(TWO("[8,16]", "[0,8]"), 16));
}

static void test_lengths(void)
{
    refused_length(UINT64_C(1) << 40, "{}", "1099511627776");
    refused_length(UINT64_MAX, "{}", "18446744073709551615");
    refused_length(3, "{}", "3");
    FILE *file = fopen(path, "wb"); /* shorter than the length itself */
    fputs("abc", file);
    fclose(file);
    perf_safetensors_t *opened = NULL;
    CHECK(!perf_safetensors_open(path, &opened, &error));
    CHECK_CONTAINS(error.text, "truncated: 3 bytes");
    file = fopen(path, "wb");
    fclose(file);
    CHECK(!perf_safetensors_open(path, &opened, &error));
    CHECK_CONTAINS(error.text, "truncated: 0 bytes");
}

static void test_offsets(void)
{
    refused(ONE("\"F32\"", "[2,3]", "[0,24]"), 23, "past the end", "23"); /* truncated */
    refused(ONE("\"F32\"", "[2,3]", "[0,24]"), 0, "data_offsets", "24");
    refused(ONE("\"F32\"", "[2,3]", "[0,20]"), 24, "data_offsets span 20", "24");
    refused(ONE("\"F32\"", "[2,3]", "[24,0]"), 24, "data_offsets [24,0]", "backwards");
    refused(ONE("\"F32\"", "[2,3]", "[-4,20]"), 24, "data_offsets", "'w'");
    refused(ONE("\"F32\"", "[2,3]", "[0]"), 24, "data_offsets", "two");
    refused(ONE("\"F32\"", "[2,3]", "[0,24.0]"), 24, "data_offsets", "whole");
    refused(ONE("\"F32\"", "[2,3]", "[0,18446744073709551616]"), 24, "JSON", "big integer");
    refused(ONE("\"F32\"", "[2,3]", "[0,24]"), 25, "end at byte 24", "25");
    refused(ONE("\"F32\"", "[2,3]", "[4,28]"), 28, "hole", "4");
    refused(TWO("[0,8]", "[4,12]"), 12, "overlap", "[4,12]");
    refused(TWO("[0,8]", "[0,8]"), 8, "overlap", "'a'");
}

static void test_entries(void)
{
    refused(ONE("7", "[2,3]", "[0,24]"), 24, "dtype", "'w'");
    refused(ONE("\"F32\"", "[2,-3]", "[0,24]"), 24, "shape[1]", "'w'");
    refused(ONE("\"F32\"", "6", "[0,24]"), 24, "shape", "'w'");
    refused(ONE("\"F32\"", "[4294967296,4294967296,4294967296]", "[0,24]"), 24, "shape[1]", "overflows");
    refused("{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype", "'w'");
    refused("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "shape", "'w'");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets", "'w'");
    refused("{\"w\":3}", 4, "'w'", "object");
    refused("[1]", 0, "JSON", "object");
    refused("{\"w\":", 0, "JSON", "byte");
    refused("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "JSON", "duplicate");
    refused("{} x", 0, "JSON", "byte");
}

static void test_find(void)
{
    perf_weights_t *weights = NULL;
    const char *header =
        "{\"encoder.layer.0.dense.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"encoder.layer.1.dense.bias\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[8,16]},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[0,1],\"data_offsets\":[16,16]}}";
    write_file(strlen(header), header, 16);
    CHECK(!perf_weights_open(path, "encoder.layer.0.dense.wieght", &weights, &error));
    CHECK_CONTAINS(error.text, "no tensor 'encoder.layer.0.dense.wieght'");
    CHECK_CONTAINS(error.text, "near names: 'encoder.layer.0.dense.weight'");
    CHECK(!perf_weights_open(path, "encoder.layer.0.dense.weight", &weights, &error));
    CHECK_CONTAINS(error.text, "has 1 dimensions");
    CHECK(!perf_weights_open(path, "encoder.layer.1.dense.bias", &weights, &error));
    CHECK_CONTAINS(error.text, "dtype I64 (allowed: F32, F64, F16, BF16)");
    CHECK(!perf_weights_open(path, "z", &weights, &error));
    CHECK_CONTAINS(error.text, "shape[0] is 0");
    CHECK(!perf_weights_open("/no/such/file", "z", &weights, &error));
    CHECK_CONTAINS(error.text, "/no/such/file");
    CHECK(!perf_weights_open("/tmp", "z", &weights, &error));
    CHECK_CONTAINS(error.text, "not a regular file");
}

static double bf16(uint16_t bits)
{
    return perf_element_load(STARLIN_BF16, &bits, 0);
}

/* What nobody asked for may be strange: of a dtype that is not known, or of nine dimensions. */
static void test_strangers(void)
{
    perf_weights_t *weights = NULL;
    double row[3];
    const char *header = "{\"a\":{\"dtype\":\"F8_E8M0\",\"shape\":[5],\"data_offsets\":[0,5]},"
                         "\"b:0\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[5,9]},"
                         "\"c\":{\"dtype\":\"F4\",\"shape\":[3,2],\"data_offsets\":[9,12]},"
                         "\"d\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[12,14]}}";
    write_file(strlen(header), header, 14);
    CHECK(perf_weights_open(path, "b:0", &weights, &error));
    CHECK(weights != NULL && perf_weights_row(weights, 0, 0, 1, STARLIN_F32, row, &error));
    perf_weights_close(weights);
    CHECK(!perf_weights_open(path, "a", &weights, &error));
    CHECK(!perf_weights_open(path, "c", &weights, &error));
    CHECK_CONTAINS(error.text, "dtype F4 (allowed: F32, F64, F16, BF16)");
    CHECK(!perf_weights_open(path, "d", &weights, &error));
    CHECK_CONTAINS(error.text, "has 9 dimensions");
    refused(ONE("\"U8\"", "[1,1,1,1,1,1,1,1,6]", "[0,24]"), 24, "data_offsets span 24", "need 6");
}

static void test_read(void)
{
    perf_weights_t *weights = NULL;
    double row[3];
    const char *header = ONE("\"BF16\"", "[2,3]", "[0,12]");
    write_file(strlen(header), header, 12);
    CHECK(perf_weights_open(path, "w", &weights, &error));
    if (weights == NULL)
        return;
    CHECK_EQ_INT(weights->n, 2);
    CHECK_EQ_INT(weights->k, 3);
    CHECK(perf_weights_row(weights, 1, 1, 2, STARLIN_F32, row, &error)); /* bytes 8..11 */
    CHECK(row[0] == bf16(0x0908));
    CHECK(row[1] == bf16(0x0b0a));
    CHECK(perf_weights_row(weights, 0, 0, 3, STARLIN_F32, row, &error));
    CHECK(row[2] == bf16(0x0504));
    perf_problem_t problem = {.m = 2, .n = 2, .k = 3, .dtype = STARLIN_BF16, .layers = 1, .nranks = 1};
    unsigned char w[12], x[12];
    problem.weights = weights;
    problem.random = true; /* X alone */
    perf_problem_prepare(&problem);
    CHECK(perf_inputs_fill_w(&problem, w, &error) && perf_inputs_fill_x(&problem, 0, 2, x, &error));
    for (size_t i = 0; i < sizeof(w); i++)
        CHECK_EQ_INT(w[i], i);
    for (size_t i = 0; i < sizeof(x); i += 2) /* magnitudes from 0.5 to 2 */
        CHECK_EQ_INT(x[i + 1] & 0x7f, 0x3f);
    CHECK(truncate(path, 8 + (long)strlen(header) + 7) == 0); /* shrinks while it is open */
    CHECK(!perf_weights_row(weights, 1, 0, 3, STARLIN_F32, row, &error));
    CHECK_CONTAINS(error.text, "ends before");
    perf_weights_close(weights);
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    close(fd);
    test_sound();
    test_lengths();
    test_offsets();
    test_entries();
    test_find();
    test_strangers();
    test_read();
    unlink(path);
    return CHECK_RESULT();
}
