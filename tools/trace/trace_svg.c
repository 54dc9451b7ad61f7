/* SPDX-License-Identifier: BSD-3-Clause */
/* The figure: one static picture for papers, light, and readable in grey: hidden and exposed parts of a
 * collective differ by their hatching. It shows the step of median time (everything, without a report). */
#include <math.h>
#include <stdlib.h>

#include "trace.h"

#define WIDTH       960.0
#define LEFT        84.0 /* lane names */
#define RIGHT       16.0
#define LANE_HEIGHT 26.0
#define BOX_HEIGHT  20.0
#define NLANES_MAX  256

typedef struct window {
    double first_us, last_us; /* of the trace's common clock */
} window_t;

static double x_of(const window_t *window, double time_us, double longest_us)
{
    return LEFT + (time_us - window->first_us) * (WIDTH - LEFT - RIGHT) / longest_us;
}

static window_t window_of(const trace_t *trace)
{
    window_t window = {.first_us = trace_origin(trace), .last_us = -INFINITY};
    const trace_report_t *report = trace->report;
    for (size_t i = 0; report != NULL && i < report->nsteps; i++) {
        const starlin_report_step_t *step = &report->steps[i].figures;
        if (step->time_us > report->summary.median_us)
            continue; /* the longest step that is not above the median */
        if (window.last_us - window.first_us < step->time_us || isinf(window.last_us)) {
            window.first_us = step->start_us + trace->ranks[trace->report_rank].offset_us;
            window.last_us = window.first_us + step->time_us;
        }
    }
    for (size_t r = 0; isinf(window.last_us) && r < trace->nranks; r++)
        for (size_t i = 0; i < trace->ranks[r].nspans; i++)
            window.last_us =
                fmax(window.last_us, trace->ranks[r].spans[i].end_us + trace->ranks[r].offset_us);
    return window;
}

static void put_box(perf_file_t *file, const char *class, double x0, double x1, double y, double h)
{
    trace_put(file, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", class, x0,
              y, fmax(x1 - x0, 0.2), h);
}

/* What computes at time_us or starts to next; NULL: nothing. */
static const trace_span_t *compute_after(const trace_rank_t *rank, double time_us)
{
    const trace_span_t *best = NULL;
    for (size_t i = 0; i < rank->nspans; i++) {
        const trace_span_t *one = &rank->spans[i];
        if (one->kind != STARLIN_REPORT_COLLECTIVE && one->end_us > time_us &&
            (best == NULL || one->start_us < best->start_us))
            best = one;
    }
    return best;
}

static void put_collective(perf_file_t *file, const trace_rank_t *rank, const trace_span_t *span,
                           const window_t *window, double longest_us, double y)
{
    double at_us = span->start_us, offset_us = rank->offset_us;
    while (at_us < span->end_us) {
        const trace_span_t *work = compute_after(rank, at_us);
        bool hidden = work != NULL && work->start_us <= at_us;
        double next_us = work == NULL ? span->end_us : hidden ? work->end_us : work->start_us;
        next_us = fmin(next_us, span->end_us);
        put_box(file, hidden ? "hidden" : "exposed", x_of(window, at_us + offset_us, longest_us),
                x_of(window, next_us + offset_us, longest_us), y, BOX_HEIGHT);
        at_us = next_us;
    }
}

static void put_text(perf_file_t *file, const char *class, double x, double y, const char *text)
{
    trace_put(file, "<text class=\"%s\" x=\"%.2f\" y=\"%.2f\">", class, x, y);
    trace_put_xml(file, text);
    trace_put(file, "</text>\n");
}

/* Dashed lines from the end of each stage to the start of the collective behind it. They lie below the
 * boxes. False: no memory. */
static bool put_waits(perf_file_t *file, const trace_rank_t *rank, const window_t *window, double longest_us,
                      double y)
{
    const trace_span_t **sorted = trace_sorted(rank);
    if (sorted == NULL)
        return false;
    for (size_t i = 1; i < rank->nspans; i++) {
        const trace_span_t *before = sorted[i - 1], *comm = sorted[i];
        double end_us = before->end_us + rank->offset_us, start_us = comm->start_us + rank->offset_us;
        if (comm->kind != STARLIN_REPORT_COLLECTIVE || !trace_is_handover(before, comm) ||
            end_us < window->first_us || start_us > window->last_us)
            continue;
        double x0 = x_of(window, end_us, longest_us), x1 = x_of(window, start_us, longest_us);
        if (x1 - x0 > 3)
            trace_put(file, "<line class=\"wait\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\"/>\n", x0,
                      x1, y + BOX_HEIGHT / 2, y + BOX_HEIGHT / 2);
    }
    free(sorted);
    return true;
}

static bool put_lane(perf_file_t *file, const trace_rank_t *rank, unsigned lane, const window_t *window,
                     double longest_us, double y)
{
    char text[64];
    trace_lane_name(lane, text, sizeof(text));
    put_text(file, "name", LEFT - 8, y + BOX_HEIGHT / 2 + 1, text);
    put_box(file, "lane", LEFT, WIDTH - RIGHT, y, BOX_HEIGHT);
    if (lane >= TRACE_LINK && !put_waits(file, rank, window, longest_us, y))
        return false;
    for (size_t i = 0; i < rank->nspans; i++) {
        const trace_span_t *span = &rank->spans[i];
        double start_us = span->start_us + rank->offset_us, end_us = span->end_us + rank->offset_us;
        if (trace_lane(span) != lane || end_us <= window->first_us || start_us >= window->last_us)
            continue;
        double x0 = x_of(window, start_us, longest_us), x1 = x_of(window, end_us, longest_us);
        if (span->kind == STARLIN_REPORT_COLLECTIVE)
            put_collective(file, rank, span, window, longest_us, y);
        else
            put_box(file, span->kind == STARLIN_REPORT_GEMM ? "gemm" : "rowwise", x0, x1, y, BOX_HEIGHT);
        if (x1 - x0 < 20)
            continue;
        snprintf(text, sizeof text, "%u", span->chunk);
        put_box(file, "label", (x0 + x1) / 2 - 7, (x0 + x1) / 2 + 7, y + 3, BOX_HEIGHT - 6);
        put_text(file, "chunk", (x0 + x1) / 2, y + BOX_HEIGHT / 2 + 1, text);
    }
    return true;
}

static double put_axis(perf_file_t *file, double longest_us, double y)
{
    double power = pow(10, floor(log10(longest_us / 4))), size = power;
    for (int i = 0; i < 3 && longest_us / size > 10; i++)
        size = power * (i == 0 ? 2 : i == 1 ? 5 : 10);
    const window_t window = {0, longest_us};
    for (double t = 0; t <= longest_us * 1.0001; t += size) {
        char text[48];
        double x = x_of(&window, t, longest_us);
        snprintf(text, sizeof text, longest_us >= 1000 ? "%g ms" : "%g us",
                 longest_us >= 1000 ? t / 1000 : t);
        trace_put(file, "<line class=\"tick\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\"/>\n", x, x, y,
                  y + 4);
        put_text(file, "chunk", x, y + 16, text);
    }
    return y + 26;
}

static bool put_trace(perf_file_t *file, const trace_t *trace, double longest_us, double *y_p)
{
    window_t window = window_of(trace);
    double y = *y_p;
    char text[256];
    put_text(file, "title", 12, y + 14, trace->title);
    y += 22;
    if (trace->report != NULL) {
        const starlin_report_step_t *mean = &trace->report->mean.figures;
        starlin_cause_t worst = trace_worst_cause(&trace->report->mean);
        char hidden[48] = "nothing to hide";
        if (isfinite(mean->hidden_pct)) /* no minus zero */
            snprintf(hidden, sizeof(hidden), "%.1f %% of the communication hidden",
                     fabs(mean->hidden_pct) < 0.05 ? 0 : mean->hidden_pct);
        snprintf(text, sizeof(text), "%.1f us, %s; %.1f us beyond the ideal, most of it: %s (%.1f us)",
                 trace->report->summary.median_us, hidden, mean->time_us - mean->ideal_us,
                 starlin_cause_text(worst), trace->report->mean.exposed_us[worst]);
        put_text(file, "small", 12, y + 10, text);
        y += 18;
    }
    for (size_t r = 0; r < trace->nranks; r++) {
        unsigned lanes[NLANES_MAX];
        size_t nlanes = trace_lanes(&trace->ranks[r], lanes, NLANES_MAX);
        put_text(file, "small", 12, y + 10, trace->ranks[r].name);
        y += 17;
        for (size_t i = 0; i < nlanes && i < NLANES_MAX; i++, y += LANE_HEIGHT)
            if (!put_lane(file, &trace->ranks[r], lanes[i], &window, longest_us, y))
                return false;
        y += 6;
    }
    *y_p = y + 8;
    return true;
}

static void put_legend(perf_file_t *file, double y)
{
    static const struct {
        const char *class, *text;
        double x;
    } entries[] = {{"gemm", "gemm", 12},
                   {"hidden", "collective, hidden behind work", 110},
                   {"exposed", "collective, exposed", 340},
                   {"rowwise", "row-wise", 515}};
    trace_put(file, "<line class=\"wait\" x1=\"630\" x2=\"660\" y1=\"%.2f\" y2=\"%.2f\"/>\n", y + 6.5,
              y + 6.5);
    put_text(file, "small", 666, y + 10.5, "waiting to start");
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        put_box(file, entries[i].class, entries[i].x, entries[i].x + 30, y, 13);
        put_text(file, "small", entries[i].x + 36, y + 10.5, entries[i].text);
    }
}

static double figure_height(const trace_t *traces, size_t ntraces)
{
    double height = 36 + 26 + 24;
    for (size_t t = 0; t < ntraces; t++) {
        height += 22 + 8 + (traces[t].report != NULL ? 18 : 0);
        for (size_t r = 0; r < traces[t].nranks; r++) {
            size_t nlanes = trace_lanes(&traces[t].ranks[r], NULL, 0);
            height += 23 + LANE_HEIGHT * (double)(nlanes < NLANES_MAX ? nlanes : NLANES_MAX);
        }
    }
    return height;
}

static const char style[] =
    "<style>text{font:12px sans-serif;fill:#111}.title{font:600 14px sans-serif}.small{fill:#333}"
    ".name{text-anchor:end;dominant-baseline:middle;font-size:11px}"
    ".chunk{text-anchor:middle;font-size:11px}text.chunk{dominant-baseline:middle}"
    ".lane{fill:#f4f5f7}.label{fill:#fff;fill-opacity:.85}"
    ".gemm{fill:#c3d4ec;stroke:#2f5590;stroke-width:.8}.rowwise{fill:url(#dots);stroke:#614694;stroke-width:."
    "8}"
    ".hidden{fill:url(#slashes);stroke:#25713f;stroke-width:.8}"
    ".exposed{fill:url(#crosses);stroke:#a93a0a;stroke-width:.8}.tick{stroke:#333}.wait{stroke:#555;stroke-"
    "dasharray:4 3}</style>\n"
    "<defs>"
    "<pattern id=\"slashes\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"8\" height=\"8\" fill=\"#cfeed8\"/>"
    "<path d=\"M-1 9L9 -1M-1 1L1 -1M7 9L9 7\" stroke=\"#25713f\" stroke-width=\".6\"/></pattern>"
    "<pattern id=\"crosses\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"6\" height=\"6\" fill=\"#fbc9af\"/>"
    "<path d=\"M0 0L6 6M6 0L0 6\" stroke=\"#a93a0a\" stroke-width=\"1\"/></pattern>"
    "<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"5\" height=\"5\" fill=\"#ded3ef\"/><circle cx=\"2\" cy=\"2\" r=\".9\" "
    "fill=\"#614694\"/></pattern>"
    "</defs>\n";

bool trace_write_svg(perf_file_t *file, const trace_t *traces, size_t ntraces, const char *title,
                     perf_error_t *error)
{
    double longest_us = 0, height = figure_height(traces, ntraces);
    for (size_t t = 0; t < ntraces; t++) {
        window_t window = window_of(&traces[t]);
        longest_us = fmax(longest_us, window.last_us - window.first_us);
    }
    longest_us = fmax(longest_us, 1e-3);
    trace_put(file,
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
              "viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n<title>",
              WIDTH, height, WIDTH, height);
    trace_put_xml(file, title);
    trace_put(file, "</title>\n%s", style);
    trace_put(file, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", WIDTH, height);
    put_text(file, "title", 12, 22, title);
    double y = 36;
    for (size_t t = 0; t < ntraces; t++)
        if (!put_trace(file, &traces[t], longest_us, &y))
            return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for %s", traces[t].title);
    y = put_axis(file, longest_us, y - 8);
    put_legend(file, y);
    trace_put(file, "</svg>\n");
    return true;
}
