/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's explanation, as comments in the table, and the prediction against this run's median. */
#include "explain.h"

#include <string.h>

void perf_explain_print(FILE *stream, const perf_row_t *row)
{
    if (!row->plan.planned)
        return;
    for (const char *line = row->plan.text, *end; *line != '\0'; line = *end == '\0' ? end : end + 1) {
        end = line + strcspn(line, "\n");
        fprintf(stream, "#   %.*s\n", (int)(end - line), line);
    }
    fprintf(stream, "#   predicted %.1f us, median of this run %.1f us, prediction error %+.1f%%\n",
            row->plan.predicted_us, row->time_us.median, perf_row_prediction_error_pct(row));
    fflush(stream);
}
