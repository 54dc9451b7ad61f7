/* SPDX-License-Identifier: BSD-3-Clause */
/* A planning's record as text. */
#include "starlin/starlin_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/planning.h"
#include "plan/trial.h"

typedef struct writer {
    char *text;
    size_t size, length; /* length: of the whole text, whatever fits */
} writer_t;

static void put(writer_t *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(writer_t *writer, const char *format, ...)
{
    size_t left = writer->length < writer->size ? writer->size - writer->length : 0;
    va_list arguments;
    int ret;

    va_start(arguments, format);
    ret = vsnprintf(left > 0 ? writer->text + writer->length : NULL, left, format, arguments);
    va_end(arguments);
    writer->length += ret > 0 ? (size_t)ret : 0;
}

/* Equal neighbours as "1024x4". */
static void put_rows(writer_t *writer, const int64_t *rows, size_t nchunks)
{
    for (size_t i = 0, run; i < nchunks; i += run) {
        for (run = 1; i + run < nchunks && rows[i + run] == rows[i]; run++)
            ;
        put(writer, "%s%lld", i > 0 ? "," : "", (long long)rows[i]);
        if (run > 1)
            put(writer, "x%zu", run);
    }
}

static void put_manner(writer_t *writer, unsigned ctas, int64_t piece_rows)
{
    if (ctas > 0)
        put(writer, " with %u CTAs", ctas);
    if (piece_rows > 0)
        put(writer, ", gemms of %lld rows", (long long)piece_rows);
}

/* First, middle and last point. */
static void put_curve(writer_t *writer, const char *what, const char *unit, double scale,
                      const starlin__curve_t *curve)
{
    put(writer, "%s curve, %zu points:", what, curve->npoints);
    for (size_t i = 0; i < curve->npoints; i++) {
        if (i == 0 || i == curve->npoints / 2 || i + 1 == curve->npoints)
            put(writer, " %.*f %s %.1f us", scale < 1.0 ? 2 : 0, curve->size[i] * scale, unit,
                curve->time_us[i]);
    }
    put(writer, "\n");
}

static double error_pct(double predicted_us, double measured_us)
{
    return measured_us > 0.0 ? 100.0 * (predicted_us / measured_us - 1.0) : 0.0;
}

static void put_lists(writer_t *writer, const starlin__planning_t *planning)
{
    for (size_t i = 0; i < planning->nlists; i++) {
        const starlin__rehearsed_t *list = &planning->lists[i];
        put(writer, "tried ");
        put_rows(writer, list->rows, list->nchunks);
        put_manner(writer, list->ctas, list->piece_rows);
        put(writer, ": simulated %.1f us, measured %.1f us (%+.1f%%)\n", list->simulated_us,
            list->measured_us, error_pct(list->simulated_us, list->measured_us));
    }
    if (planning->unrehearsed != NULL)
        put(writer, "no list was tried: %s\n", planning->unrehearsed);
}

/* What the first real steps said. */
static void put_trial(writer_t *writer, const starlin__trial_t *trial)
{
    const char *text = starlin__trial_text(trial);
    put(writer, "first steps: %s\n", text != NULL ? text : "not yet known");
}

static void put_planning(writer_t *writer, const starlin__planning_t *planning)
{
    const starlin__plan_t *plan = &planning->plan;
    const starlin__plan_input_t *input = starlin__costs_input(&planning->costs, plan->ctas, plan->piece_rows);

    put(writer, "costs: %s\n", planning->costs.tuned ? "from the tune file" : "measured now");
    put_curve(writer, "gemm", "rows", 1.0, &input->gemm);
    put_curve(writer, "collective", "MB", 1e-6, &input->comm);
    for (size_t i = 1; i < planning->costs.ninputs; i++) {
        const starlin__plan_input_t *choice = &planning->costs.inputs[i];
        if (choice->piece_rows != 0)
            continue;
        put(writer, "with %u CTAs, ", choice->ctas);
        put_curve(writer, "collective", "MB", 1e-6, &choice->comm);
    }
    put(writer,
        "model: %.1f us per chunk, slowdown of gemms %.2f, of collectives %.2f, delay of collectives %.0f "
        "us%s, "
        "chunks of %lld rows, %u layers\n",
        input->task_us, input->gemm_slowdown, input->comm_slowdown,
        input->comm_delay_us < 1e8 ? input->comm_delay_us : 0.0,
        input->comm_delay_us < 1e8 ? "" : " (to the gemm's end)", (long long)input->row_quantum,
        starlin__plan_nlayers(input));
    put(writer, "in one piece: gemm %.1f us, collective %.1f us, one after the other %.1f us\n",
        plan->gemm_us, plan->comm_us, plan->serial_us);
    put_lists(writer, planning);
    put(writer, "chosen ");
    put_rows(writer, plan->rows, plan->nchunks);
    put_manner(writer, plan->ctas, plan->piece_rows);
    put(writer, ": predicted %.1f us", plan->predicted_us);
    if (planning->measured_us > 0.0)
        put(writer, " as tried (simulated %.1f us, %+.1f%%)", planning->simulated_us,
            error_pct(planning->simulated_us, planning->measured_us));
    put(writer, "%s%s\n", plan->reason[0] != '\0' ? "; " : "", plan->reason);
    put(writer, "planning took %.1f ms\n", planning->planning_us / 1e3);
}

starlin_status_t starlin_chunking_explain(const starlin_chunking_t *chunking, char *text, size_t size,
                                          size_t *length_p)
{
    writer_t writer = {.text = text, .size = size};
    const starlin__planning_t *planning;

    if (chunking == NULL || (text == NULL && size > 0))
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", chunking == NULL ? "chunking" : "text");
    if (size > 0)
        text[0] = '\0';
    planning = starlin__chunking_planning(chunking);
    if (planning != NULL)
        put_planning(&writer, planning);
    else
        put(&writer, "the list was asked for, nothing was planned\n");
    if (starlin__chunking_trial(chunking) != NULL)
        put_trial(&writer, starlin__chunking_trial(chunking));
    if (length_p != NULL)
        *length_p = writer.length;
    return STARLIN_SUCCESS;
}
