/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats and parses the tune file. Strict: a line that is not exactly what the writer makes is an error, so
 * that a damaged file is measured again instead of being half believed. Numbers are exact (17 digits). */
#include "plan/tune_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 2048

/* ------------------------------------------------------------------- faults */

static const char *text_fault(const char *text)
{
    size_t length = 0;
    for (; text[length] != 0; length++) {
        if ((unsigned char)text[length] < 32 || text[length] == 127)
            return "control character in a text";
        if (length + 1 == STARLIN__TUNE_TEXT)
            return "text too long";
    }
    return NULL;
}

static bool plain(double value, double lowest)
{
    return isfinite(value) && value >= lowest;
}

static const char *curve_fault(const starlin__curve_t *curve)
{
    if (curve->npoints < 1 || curve->npoints > STARLIN__CURVE_POINTS)
        return "number of points out of range";
    for (size_t i = 0; i < curve->npoints; i++) {
        if (!plain(curve->size[i], 0) || !plain(curve->time_us[i], 0))
            return "size or time out of range";
        if (i > 0 && curve->size[i] <= curve->size[i - 1])
            return "sizes do not rise";
    }
    return NULL;
}

static const char *comm_fault(const starlin__tune_entry_t *entry, size_t index)
{
    const starlin__tune_comm_t *comm = &entry->comms[index];
    if (!plain(comm->gemm_slowdown, 1) || !plain(comm->comm_slowdown, 1) || !plain(comm->comm_delay_us, 0))
        return "slowdown or delay out of range";
    for (size_t i = 0; i < index; i++)
        if (entry->comms[i].ctas == comm->ctas)
            return "two curves for one number of CTAs";
    return curve_fault(&comm->curve);
}

const char *starlin__tune_fault(const starlin__tune_key_t *key, const starlin__tune_entry_t *entry)
{
    const char *texts[] = {key->device, key->versions, key->compute, key->comm, key->parameters};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *fault = texts[i] == NULL ? "text missing" : text_fault(texts[i]);
        if (fault != NULL)
            return fault;
    }
    if (key->nranks < 1 || key->n < 0 || key->k < 0 || starlin_dtype_name(key->dtype) == NULL ||
        starlin_dtype_name(key->out_dtype) == NULL)
        return "ranks, shape or dtype out of range";
    if (!plain(entry->task_us, 0))
        return "task time out of range";
    if (entry->ncomms < 1 || entry->ncomms > STARLIN__TUNE_COMMS)
        return "number of collectives out of range";
    const char *fault = curve_fault(&entry->gemm);
    for (size_t i = 0; fault == NULL && i < entry->ncomms; i++)
        fault = comm_fault(entry, i);
    return fault;
}

/* ------------------------------------------------------------------ writing */

static void print_curve(FILE *out, const char *name, const starlin__curve_t *curve)
{
    fprintf(out, "%s %zu", name, curve->npoints);
    for (size_t i = 0; i < curve->npoints; i++)
        fprintf(out, " %.17g %.17g", curve->size[i], curve->time_us[i]);
    fputc('\n', out);
}

void starlin__tune_print(FILE *out, const starlin__tune_key_t *key, const starlin__tune_entry_t *entry)
{
    fprintf(out, "entry\ndevice %s\nversions %s\ncompute %s\ncomm %s\nparameters %s\n", key->device,
            key->versions, key->compute, key->comm, key->parameters);
    fprintf(out, "shape %d %lld %lld %s %s\n", key->nranks, (long long)key->n, (long long)key->k,
            starlin_dtype_name(key->dtype), starlin_dtype_name(key->out_dtype));
    fprintf(out, "task %.17g %zu\n", entry->task_us, entry->ncomms);
    print_curve(out, "gemm", &entry->gemm);
    for (size_t i = 0; i < entry->ncomms; i++) {
        const starlin__tune_comm_t *comm = &entry->comms[i];
        fprintf(out, "ctas %u %.17g %.17g %.17g\n", comm->ctas, comm->gemm_slowdown, comm->comm_slowdown,
                comm->comm_delay_us);
        print_curve(out, "collective", &comm->curve);
    }
    fputs("end\n", out);
}

/* ------------------------------------------------------------------ reading */

static bool fail(starlin__tune_reader_t *reader, const char *error)
{
    reader->error = error;
    return false;
}

/* The next line without its end. */
static bool next_line(starlin__tune_reader_t *reader, char line[LINE_SIZE])
{
    reader->line++;
    size_t left = (size_t)(reader->end - reader->at);
    const char *end = left == 0 ? NULL : memchr(reader->at, '\n', left);
    if (end == NULL)
        return fail(reader, "file ends within an entry");
    size_t length = (size_t)(end - reader->at);
    if (length >= LINE_SIZE || memchr(reader->at, 0, length) != NULL)
        return fail(reader, "no line of this format");
    memcpy(line, reader->at, length);
    line[length] = 0;
    reader->at = end + 1;
    return true;
}

/* A line that starts with `name` and a space; *rest_p is what follows. */
static bool named_line(starlin__tune_reader_t *reader, const char *name, char line[LINE_SIZE],
                       const char **rest_p)
{
    if (!next_line(reader, line))
        return false;
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || line[length] != ' ')
        return fail(reader, "another line was expected");
    *rest_p = line + length + 1;
    return true;
}

/* Plain decimal numbers only: no sign in front, no space, no hexadecimal, no "inf". The number ends at a
 * space, which is skipped, or at the end of the line. */
static bool take_number(const char **rest_p, double *value_p)
{
    size_t length = strspn(*rest_p, "0123456789.e+-");
    char after = (*rest_p)[length], *end;
    if (length == 0 || **rest_p < '0' || **rest_p > '9' || (after != 0 && after != ' '))
        return false;
    *value_p = strtod(*rest_p, &end);
    if (end != *rest_p + length || !isfinite(*value_p))
        return false;
    *rest_p = after == 0 ? end : end + 1;
    return true;
}

static bool take_integer(const char **rest_p, int64_t highest, int64_t *value_p)
{
    size_t length = strspn(*rest_p, "0123456789");
    char after = (*rest_p)[length], *end;
    if (length == 0 || (after != 0 && after != ' '))
        return false;
    errno = 0;
    long long value = strtoll(*rest_p, &end, 10);
    if (errno != 0 || value > highest)
        return false;
    *value_p = value;
    *rest_p = after == 0 ? end : end + 1;
    return true;
}

static bool take_dtype(const char **rest_p, starlin_dtype_t *dtype_p)
{
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        const char *name = starlin_dtype_name((starlin_dtype_t)dtype);
        size_t length = strlen(name);
        if (strncmp(*rest_p, name, length) != 0 || ((*rest_p)[length] != 0 && (*rest_p)[length] != ' '))
            continue;
        *dtype_p = (starlin_dtype_t)dtype;
        *rest_p += (*rest_p)[length] == 0 ? length : length + 1;
        return true;
    }
    return false;
}

static bool read_text(starlin__tune_reader_t *reader, const char *name, char text[STARLIN__TUNE_TEXT])
{
    char line[LINE_SIZE];
    const char *rest;
    if (!named_line(reader, name, line, &rest))
        return false;
    const char *fault = text_fault(rest);
    if (fault != NULL)
        return fail(reader, fault);
    memcpy(text, rest, strlen(rest) + 1);
    return true;
}

static bool read_shape(starlin__tune_reader_t *reader, starlin__tune_key_t *key)
{
    char line[LINE_SIZE];
    const char *rest;
    int64_t nranks;
    if (!named_line(reader, "shape", line, &rest))
        return false;
    if (!take_integer(&rest, INT32_MAX, &nranks) || !take_integer(&rest, INT64_MAX, &key->n) ||
        !take_integer(&rest, INT64_MAX, &key->k))
        return fail(reader, "ranks or shape out of range");
    key->nranks = (int)nranks;
    if (!take_dtype(&rest, &key->dtype) || !take_dtype(&rest, &key->out_dtype) || *rest != 0)
        return fail(reader, "not two dtypes");
    return true;
}

static bool read_curve(starlin__tune_reader_t *reader, const char *name, starlin__curve_t *curve)
{
    char line[LINE_SIZE];
    const char *rest;
    int64_t npoints;
    if (!named_line(reader, name, line, &rest))
        return false;
    if (!take_integer(&rest, STARLIN__CURVE_POINTS, &npoints))
        return fail(reader, "number of points out of range");
    curve->npoints = (size_t)npoints;
    for (size_t i = 0; i < curve->npoints; i++)
        if (!take_number(&rest, &curve->size[i]) || !take_number(&rest, &curve->time_us[i]))
            return fail(reader, "not the numbers of a curve");
    return *rest == 0 || fail(reader, "more than the points announced");
}

static bool read_comm(starlin__tune_reader_t *reader, starlin__tune_comm_t *comm)
{
    char line[LINE_SIZE];
    const char *rest;
    int64_t ctas;
    if (!named_line(reader, "ctas", line, &rest))
        return false;
    if (!take_integer(&rest, INT32_MAX, &ctas) || !take_number(&rest, &comm->gemm_slowdown) ||
        !take_number(&rest, &comm->comm_slowdown) || !take_number(&rest, &comm->comm_delay_us) || *rest != 0)
        return fail(reader, "not the numbers of a collective");
    comm->ctas = (unsigned)ctas;
    return read_curve(reader, "collective", &comm->curve);
}

static bool read_entry(starlin__tune_reader_t *reader, starlin__tune_entry_t *entry)
{
    char line[LINE_SIZE];
    const char *rest;
    int64_t ncomms;
    if (!named_line(reader, "task", line, &rest))
        return false;
    if (!take_number(&rest, &entry->task_us) || !take_integer(&rest, STARLIN__TUNE_COMMS, &ncomms) ||
        *rest != 0)
        return fail(reader, "not a task time and a number of collectives");
    entry->ncomms = (size_t)ncomms;
    if (!read_curve(reader, "gemm", &entry->gemm))
        return false;
    for (size_t i = 0; i < entry->ncomms; i++)
        if (!read_comm(reader, &entry->comms[i]))
            return false;
    return true;
}

bool starlin__tune_reader_open(starlin__tune_reader_t *reader, const char *text, size_t nbytes)
{
    char line[LINE_SIZE];
    *reader = (starlin__tune_reader_t){.at = text, .end = text + nbytes};
    if (!next_line(reader, line) || strcmp(line, STARLIN__TUNE_HEADER) != 0)
        return fail(reader,
                    "not a tune file of this version, which starts with \"" STARLIN__TUNE_HEADER "\"");
    return true;
}

bool starlin__tune_reader_next(starlin__tune_reader_t *reader, starlin__tune_record_t *record)
{
    char line[LINE_SIZE];
    if (reader->error != NULL || reader->at == reader->end)
        return false;
    memset(record, 0, sizeof(*record));
    record->begin = reader->at;
    record->key = (starlin__tune_key_t){.device = record->device,
                                        .versions = record->versions,
                                        .compute = record->compute,
                                        .comm = record->comm,
                                        .parameters = record->parameters};
    if (!next_line(reader, line))
        return false;
    if (strcmp(line, "entry") != 0)
        return fail(reader, "\"entry\" was expected");
    if (!read_text(reader, "device", record->device) || !read_text(reader, "versions", record->versions) ||
        !read_text(reader, "compute", record->compute) || !read_text(reader, "comm", record->comm) ||
        !read_text(reader, "parameters", record->parameters) || !read_shape(reader, &record->key) ||
        !read_entry(reader, &record->entry) || !next_line(reader, line))
        return false;
    if (strcmp(line, "end") != 0)
        return fail(reader, "\"end\" was expected");
    const char *fault = starlin__tune_fault(&record->key, &record->entry);
    record->end = reader->at;
    return fault == NULL || fail(reader, fault);
}
