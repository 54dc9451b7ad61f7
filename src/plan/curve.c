/* SPDX-License-Identifier: BSD-3-Clause */
/* A measured cost as a piecewise linear function of a size. Invariants: sizes rise strictly, times are
 * finite and not negative. */
#include "plan/planner.h"

#include <math.h>
#include <string.h>

static double beyond_last(const starlin__curve_t *curve, double size)
{
    size_t last = curve->npoints - 1;
    double last_size = curve->size[last], last_us = curve->time_us[last];
    if (last == 0)
        return last_size > 0 ? last_us * (size / last_size) : last_us;
    double slope = (last_us - curve->time_us[last - 1]) / (last_size - curve->size[last - 1]);
    /* noise can make the last segment fall; more work never takes less time */
    return slope > 0 ? last_us + slope * (size - last_size) : last_us;
}

double starlin__curve_eval(const starlin__curve_t *curve, double size)
{
    if (curve->npoints == 0)
        return 0;
    if (size <= curve->size[0])
        return curve->time_us[0];
    if (size >= curve->size[curve->npoints - 1])
        return beyond_last(curve, size);
    size_t low = 0, high = curve->npoints - 1;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (curve->size[middle] <= size)
            low = middle;
        else
            high = middle;
    }
    double share = (size - curve->size[low]) / (curve->size[high] - curve->size[low]);
    return curve->time_us[low] + share * (curve->time_us[high] - curve->time_us[low]);
}

bool starlin__curve_add(starlin__curve_t *curve, double size, double time_us)
{
    if (!isfinite(size) || !isfinite(time_us) || size < 0 || time_us < 0)
        return false;
    size_t at = 0;
    while (at < curve->npoints && curve->size[at] < size)
        at++;
    if (at < curve->npoints && !(size < curve->size[at])) {
        curve->time_us[at] = time_us;
        return true;
    }
    if (curve->npoints == STARLIN__CURVE_POINTS)
        return false;
    size_t behind = curve->npoints - at;
    memmove(&curve->size[at + 1], &curve->size[at], behind * sizeof(double));
    memmove(&curve->time_us[at + 1], &curve->time_us[at], behind * sizeof(double));
    curve->size[at] = size;
    curve->time_us[at] = time_us;
    curve->npoints++;
    return true;
}
