/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: from a path to a writer; what the writers share. */
#include "trace.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *ending;
    trace_writer_fn_t write;
} writers[] = {
    {".json", trace_write_json},
    {".html", trace_write_html},
    {".svg", trace_write_svg},
};

static trace_writer_fn_t writer_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof writers / sizeof writers[0]; i++)
        if (strcmp(dot, writers[i].ending) == 0)
            return writers[i].write;
    return NULL;
}

bool trace_check_path(const char *path)
{
    return writer_of(path) != NULL;
}

bool trace_write(const trace_t *traces, size_t ntraces, const char *title, const char *path,
                 perf_error_t *error)
{
    perf_file_t file;
    if (!trace_check_path(path))
        return perf_error_set(error, "'%s' ends in none of .json, .html, .svg", path);
    for (size_t i = 0; i < ntraces; i++)
        if (!isfinite(trace_origin(&traces[i])))
            return perf_error_set(error, "nothing was recorded for \"%s\"", traces[i].title);
    if (ntraces == 0)
        return perf_error_set(error, "no timeline");
    if (!perf_file_open(&file, path, error))
        return false;
    bool ok = writer_of(path)(&file, traces, ntraces, title, error);
    return perf_file_close(&file, ok, error) && ok;
}

void trace_put_raw(perf_file_t *file, const char *text, size_t nbytes)
{
    if (file->failed == 0 && fwrite(text, 1, nbytes, file->stream) != nbytes)
        file->failed = errno != 0 ? errno : EIO;
}

void trace_put(perf_file_t *file, const char *format, ...)
{
    if (file->failed != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    if (vfprintf(file->stream, format, arguments) < 0)
        file->failed = errno != 0 ? errno : EIO;
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
static size_t put_character(perf_file_t *file, const char *text)
{
    size_t length = utf8_length(text);
    trace_put_raw(file, length > 0 ? text : "?", length > 0 ? length : 1);
    return length > 0 ? length : 1;
}

void trace_put_json(perf_file_t *file, const char *text)
{
    trace_put(file, "\"");
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        bool special = c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f;
        if (c == '"' || c == '\\')
            trace_put(file, "\\%c", c);
        else if (special)
            trace_put(file, "\\u%04x", c);
        text += c == '"' || c == '\\' || special ? 1 : put_character(file, text);
    }
    trace_put(file, "\"");
}

void trace_put_xml(perf_file_t *file, const char *text)
{
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        bool special = c == '<' || c == '>' || c == '&' || c == '"' || c == '\'';
        bool forbidden = c < 0x20 && c != '\n' && c != '\t'; /* not even as a reference in XML 1.0 */
        if (special)
            trace_put(file, "&#%d;", c);
        else if (forbidden)
            trace_put(file, "?");
        text += special || forbidden ? 1 : put_character(file, text);
    }
}

void trace_put_number(perf_file_t *file, double number, int digits)
{
    if (isfinite(number))
        trace_put(file, "%.*f", digits, number);
    else
        trace_put(file, "null");
}

starlin_cause_t trace_worst_cause(const trace_step_t *step)
{
    int worst = 0;
    for (int cause = 1; cause < STARLIN_NCAUSES; cause++)
        worst = step->exposed_us[cause] > step->exposed_us[worst] ? cause : worst;
    return (starlin_cause_t)worst;
}

double trace_origin(const trace_t *trace)
{
    double origin_us = INFINITY;
    for (size_t r = 0; r < trace->nranks; r++)
        for (size_t i = 0; i < trace->ranks[r].nspans; i++) {
            const trace_span_t *span = &trace->ranks[r].spans[i];
            double first_us = span->ready_us > 0 ? fmin(span->ready_us, span->start_us) : span->start_us;
            origin_us = fmin(origin_us, first_us + trace->ranks[r].offset_us);
        }
    return origin_us;
}

static int span_compare(const void *a, const void *b)
{
    const trace_span_t *x = *(const trace_span_t *const *)a, *y = *(const trace_span_t *const *)b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    if (x->start_us < y->start_us || x->start_us > y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return x < y ? -1 : x > y;
}

const trace_span_t **trace_sorted(const trace_rank_t *rank)
{
    const trace_span_t **sorted = malloc((rank->nspans + 1) * sizeof(*sorted));
    if (sorted == NULL)
        return NULL;
    for (size_t i = 0; i < rank->nspans; i++)
        sorted[i] = &rank->spans[i];
    qsort(sorted, rank->nspans, sizeof(*sorted), span_compare);
    return sorted;
}

bool trace_is_handover(const trace_span_t *before, const trace_span_t *next)
{
    return before->sequence == next->sequence && before->chunk == next->chunk &&
           (before->kind == STARLIN_REPORT_COLLECTIVE) != (next->kind == STARLIN_REPORT_COLLECTIVE);
}

unsigned trace_lane_number(unsigned lane, bool is_link)
{
    return is_link ? TRACE_LINK + lane % TRACE_LINK : lane;
}

unsigned trace_lane(const trace_span_t *span)
{
    return trace_lane_number(span->lane, span->is_link);
}

void trace_lane_name(unsigned number, char *name, size_t size)
{
    if (number > TRACE_LINK)
        snprintf(name, size, "link %u", number - TRACE_LINK);
    else if (number == TRACE_LINK)
        snprintf(name, size, "link");
    else
        snprintf(name, size, "lane %u", number);
}

size_t trace_lanes(const trace_rank_t *rank, unsigned *lanes, size_t capacity)
{
    size_t nlanes = 0;
    unsigned next = 0;
    for (bool more = true; more;) {
        unsigned least = 0;
        more = false;
        for (size_t i = 0; i < rank->nspans; i++) {
            unsigned lane = trace_lane(&rank->spans[i]);
            if (lane >= next && (!more || lane < least)) {
                least = lane;
                more = true;
            }
        }
        if (more && nlanes < capacity)
            lanes[nlanes] = least;
        nlanes += more;
        next = least + 1;
    }
    return nlanes;
}

/* The first of `other`'s sorted spans that is the same collective as `span`; NULL: none. */
static const trace_span_t *find_same(const trace_span_t *const *sorted, size_t count,
                                     const trace_span_t *span)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const trace_span_t *one = sorted[middle];
        bool below =
            one->sequence != span->sequence ? one->sequence < span->sequence : one->chunk < span->chunk;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    for (; low < count && sorted[low]->sequence == span->sequence && sorted[low]->chunk == span->chunk; low++)
        if (sorted[low]->kind == span->kind && strcmp(sorted[low]->stage, span->stage) == 0)
            return sorted[low];
    return NULL;
}

bool trace_arrivals(const trace_t *trace, size_t rank, double *arrival_us)
{
    const trace_rank_t *mine = &trace->ranks[rank];
    unsigned *seen = calloc(mine->nspans + 1, sizeof(*seen));
    if (seen == NULL)
        return false;
    memset(arrival_us, 0, mine->nspans * sizeof(*arrival_us));
    for (size_t r = 0; r < trace->nranks; r++) {
        const trace_span_t **sorted = trace_sorted(&trace->ranks[r]);
        if (sorted == NULL) {
            free(seen);
            return false;
        }
        for (size_t i = 0; i < mine->nspans; i++) {
            const trace_span_t *other = NULL;
            if (mine->spans[i].kind == STARLIN_REPORT_COLLECTIVE)
                other = find_same(sorted, trace->ranks[r].nspans, &mine->spans[i]);
            if (other == NULL)
                continue;
            seen[i]++;
            double start_us = other->start_us + trace->ranks[r].offset_us - mine->offset_us;
            arrival_us[i] = fmax(arrival_us[i], start_us);
        }
        free(sorted);
    }
    for (size_t i = 0; i < mine->nspans; i++)
        if (seen[i] < trace->nranks)
            arrival_us[i] = 0;
    free(seen);
    return true;
}
