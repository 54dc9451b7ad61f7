/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures that follow from the measured ones. */
#include "row.h"

/* Below this there is nothing to hide, and the quotient would be noise. */
#define LEAST_HIDEABLE_US 1.0

double perf_row_ideal_us(const perf_row_t *row)
{
    if (row->gemm_us < 0 || row->comm_us < 0)
        return PERF_NOT_MEASURED;
    return row->gemm_us > row->comm_us ? row->gemm_us : row->comm_us;
}

bool perf_row_hidden_pct(const perf_row_t *row, double *hidden_pct_p)
{
    if (row->serial_us < 0 || row->gemm_us < 0 || row->comm_us < 0)
        return false;
    double hideable = row->gemm_us < row->comm_us ? row->gemm_us : row->comm_us;
    if (hideable < LEAST_HIDEABLE_US)
        return false;
    *hidden_pct_p = 100 * (row->serial_us - row->time_us.median) / hideable;
    return true;
}

double perf_row_prediction_error_pct(const perf_row_t *row)
{
    if (!row->plan.planned || !(row->time_us.median > 0))
        return 0;
    return 100 * (row->plan.predicted_us / row->time_us.median - 1);
}
