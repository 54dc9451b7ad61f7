/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: from a path to a writer and a file that is complete or not there; what the writers share. */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *ending;
    starlin__trace_writer_fn_t write;
} writers[] = {
    {".json", starlin__trace_write_json},
    {".html", starlin__trace_write_html},
    {".svg", starlin__trace_write_svg},
};

static starlin__trace_writer_fn_t writer_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof writers / sizeof writers[0]; i++)
        if (strcmp(dot, writers[i].ending) == 0)
            return writers[i].write;
    return NULL;
}

starlin_status_t starlin__trace_check_path(const char *path)
{
    if (writer_of(path) == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "trace: \"%s\" ends in none of .json, .html, .svg", path);
    return STARLIN_SUCCESS;
}

static starlin_status_t traces_check(const starlin__trace_t *traces, size_t ntraces)
{
    for (size_t i = 0; i < ntraces; i++)
        if (!isfinite(starlin__trace_origin(&traces[i])))
            return starlin__error(STARLIN_ERR_INVALID, "trace: nothing was recorded for \"%s\"",
                                  traces[i].title);
    return ntraces > 0 ? STARLIN_SUCCESS : starlin__error(STARLIN_ERR_INVALID, "trace: no timeline");
}

starlin_status_t starlin__trace_write(const starlin__trace_t *traces, size_t ntraces, const char *title,
                                      const char *path)
{
    STARLIN__FORWARD(starlin__trace_check_path(path));
    STARLIN__FORWARD(traces_check(traces, ntraces));
    size_t nbytes = strlen(path) + 32;
    char *temporary = starlin__alloc(nbytes);
    if (temporary == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for a file name");
    snprintf(temporary, nbytes, "%s.%ld.tmp", path, (long)getpid());
    starlin__sink_t sink = {.file = fopen(temporary, "w")};
    starlin_status_t status = STARLIN_SUCCESS;
    if (sink.file == NULL) {
        status = starlin__error(STARLIN_ERR_INVALID, "trace: cannot write %s: %s", path, strerror(errno));
        starlin__free(temporary);
        return status;
    }
    status = writer_of(path)(&sink, traces, ntraces, title);
    /* a full disk often shows only when the last buffer is flushed */
    if (fclose(sink.file) != 0 && sink.failed == 0)
        sink.failed = errno;
    if (status == STARLIN_SUCCESS && sink.failed == 0 && rename(temporary, path) != 0)
        sink.failed = errno;
    if (status == STARLIN_SUCCESS && sink.failed != 0)
        status =
            starlin__error(STARLIN_ERR_INVALID, "trace: cannot write %s: %s", path, strerror(sink.failed));
    if (status != STARLIN_SUCCESS)
        unlink(temporary);
    starlin__free(temporary);
    return status;
}

void starlin__sink_raw(starlin__sink_t *sink, const char *text, size_t nbytes)
{
    if (sink->failed == 0 && fwrite(text, 1, nbytes, sink->file) != nbytes)
        sink->failed = errno != 0 ? errno : EIO;
}

void starlin__sink_put(starlin__sink_t *sink, const char *format, ...)
{
    if (sink->failed != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    if (vfprintf(sink->file, format, arguments) < 0)
        sink->failed = errno != 0 ? errno : EIO;
    va_end(arguments);
}

/* Length of the UTF-8 character at `text`; 0: the byte starts none. */
static size_t utf8_length(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t length = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : (c[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (c[0] >= 0x80 && (c[0] < 0xc2 || c[0] > 0xf4))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool surrogate = (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf4 && c[1] > 0x8f);
    return overlong || surrogate ? 0 : length;
}

/* A character as it is, or a question mark for bytes that are none. Returns the bytes it took. */
static size_t put_character(starlin__sink_t *sink, const char *text)
{
    size_t length = utf8_length(text);
    starlin__sink_raw(sink, length > 0 ? text : "?", length > 0 ? length : 1);
    return length > 0 ? length : 1;
}

void starlin__sink_json(starlin__sink_t *sink, const char *text)
{
    starlin__sink_put(sink, "\"");
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        bool special = c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f;
        if (c == '"' || c == '\\')
            starlin__sink_put(sink, "\\%c", c);
        else if (special)
            starlin__sink_put(sink, "\\u%04x", c);
        text += c == '"' || c == '\\' || special ? 1 : put_character(sink, text);
    }
    starlin__sink_put(sink, "\"");
}

void starlin__sink_xml(starlin__sink_t *sink, const char *text)
{
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        bool special = c == '<' || c == '>' || c == '&' || c == '"' || c == '\'';
        bool forbidden = c < 0x20 && c != '\n' && c != '\t'; /* not even as a reference in XML 1.0 */
        if (special)
            starlin__sink_put(sink, "&#%d;", c);
        else if (forbidden)
            starlin__sink_put(sink, "?");
        text += special || forbidden ? 1 : put_character(sink, text);
    }
}

double starlin__trace_origin(const starlin__trace_t *trace)
{
    double origin_us = INFINITY;
    for (size_t r = 0; r < trace->nranks; r++)
        for (size_t i = 0; i < trace->ranks[r].nspans; i++) {
            const starlin__span_t *span = &trace->ranks[r].spans[i];
            double first_us = span->ready_us > 0 ? fmin(span->ready_us, span->start_us) : span->start_us;
            origin_us = fmin(origin_us, first_us + trace->ranks[r].offset_us);
        }
    return origin_us;
}

static int span_compare(const void *a, const void *b)
{
    const starlin__span_t *x = *(const starlin__span_t *const *)a, *y = *(const starlin__span_t *const *)b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x < y ? -1 : x > y;
}

const starlin__span_t **starlin__trace_sorted(const starlin__trace_rank_t *rank)
{
    const starlin__span_t **sorted = starlin__alloc((rank->nspans + 1) * sizeof *sorted);
    if (sorted == NULL)
        return NULL;
    for (size_t i = 0; i < rank->nspans; i++)
        sorted[i] = &rank->spans[i];
    qsort(sorted, rank->nspans, sizeof *sorted, span_compare);
    return sorted;
}

size_t starlin__trace_lanes(const starlin__trace_rank_t *rank, unsigned *lanes, size_t capacity)
{
    size_t nlanes = 0;
    unsigned next = 0;
    for (bool more = true; more;) {
        more = false;
        unsigned least = 0;
        for (size_t i = 0; i < rank->nspans; i++) {
            unsigned lane = rank->spans[i].lane;
            if (lane >= next && (!more || lane < least)) {
                least = lane;
                more = true;
            }
        }
        if (!more)
            break;
        if (nlanes < capacity)
            lanes[nlanes] = least;
        nlanes++;
        if (least == UINT32_MAX)
            break;
        next = least + 1;
    }
    return nlanes;
}

const char *starlin__span_name(starlin__span_kind_t kind)
{
    static const char *const names[] = {"gemm", "allreduce", "cast"};
    return (unsigned)kind < 3 ? names[kind] : "?";
}

starlin_status_t starlin__trace_arrivals(const starlin__trace_t *trace, size_t rank, double *arrival_us)
{
    const starlin__trace_rank_t *mine = &trace->ranks[rank];
    unsigned *seen = starlin__alloc((mine->nspans + 1) * sizeof *seen);
    if (seen == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for %zu spans", mine->nspans);
    memset(arrival_us, 0, mine->nspans * sizeof *arrival_us);
    for (size_t r = 0; r < trace->nranks; r++) {
        const starlin__span_t **sorted = starlin__trace_sorted(&trace->ranks[r]);
        if (sorted == NULL) {
            starlin__free(seen);
            return starlin__error(STARLIN_ERR_NO_MEMORY, "trace: no memory for rank %zu", r);
        }
        for (size_t i = 0; i < mine->nspans; i++) {
            const starlin__span_t key = mine->spans[i], *key_p = &key;
            size_t low = 0, high = trace->ranks[r].nspans;
            while (low < high) { /* the first that is not below, whatever its address */
                size_t middle = low + (high - low) / 2;
                const starlin__span_t *one = sorted[middle];
                bool below = one->sequence != key_p->sequence ? one->sequence < key_p->sequence
                             : one->chunk != key_p->chunk     ? one->chunk < key_p->chunk
                                                              : one->kind < key_p->kind;
                low = below ? middle + 1 : low;
                high = below ? high : middle;
            }
            if (key.kind != STARLIN__SPAN_ALLREDUCE || low == trace->ranks[r].nspans ||
                sorted[low]->sequence != key.sequence || sorted[low]->chunk != key.chunk ||
                sorted[low]->kind != key.kind)
                continue;
            seen[i]++;
            double start_us = sorted[low]->start_us + trace->ranks[r].offset_us - mine->offset_us;
            arrival_us[i] = fmax(arrival_us[i], start_us);
        }
        starlin__free(sorted);
    }
    for (size_t i = 0; i < mine->nspans; i++)
        if (seen[i] < trace->nranks)
            arrival_us[i] = 0;
    starlin__free(seen);
    return STARLIN_SUCCESS;
}
