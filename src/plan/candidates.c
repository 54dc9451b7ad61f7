/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunk lists to consider. A list is a row of weights, scaled to m rows; on a device cuts lie at multiples of
 * 512 rows where m allows it, since a gemm of another size is 3 to 7% slower (H200, bf16, N=8192). */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>

#include "plan/plan.h"

enum {
    DEVICE_QUANTUM = 512,
    SMALLEST_SHARE = 128 /* of m: smaller chunks cost more than they hide */
};

/* Won on an H200 beside links of 60 to 223 GB/s: little is left when the last gemm ends. */
static const struct {
    size_t count;
    double weights[18];
} tapered[] = {
    {4, {6, 6, 3, 1}}, {6, {4, 4, 4, 2, 1, 1}}, {18, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1}}};

/* Where time is short the first ones tell most. */
static const size_t ladder[] = {1, 4, 16, 8, 32, 2};

/* Numbers of chunks and ratios of neighbours that only the simulation looks at. */
static const size_t family_counts[] = {3, 4, 6, 8, 12, 16, 24, 32, 64};
static const double family_ratios[] = {1.0, 0.85, 0.7, 0.5, 1.3, 1.8};

/* Cuts at the weights' shares of m, rounded to the quantum. False: a chunk would have no row of some block.
 */
static bool scale(int64_t m, unsigned nblocks, int64_t quantum, const double *weights, size_t count,
                  int64_t *rows)
{
    double all = 0, sum = 0;
    int64_t before = 0;

    for (size_t i = 0; i < count; i++)
        all += weights[i];
    for (size_t i = 0; i < count; i++) {
        int64_t cut;
        sum += weights[i];
        cut = i + 1 == count ? m : (int64_t)floor((double)m * sum / all / (double)quantum + 0.5) * quantum;
        rows[i] = cut - before;
        if (rows[i] < nblocks || rows[i] < m / SMALLEST_SHARE)
            return false;
        before = cut;
    }
    return true;
}

typedef struct maker {
    starlin__planning_t *planning;
    int64_t m;
    unsigned nblocks;
    bool is_device;
} maker_t;

static void add_weights(const maker_t *maker, const char *origin, const double *weights, size_t count)
{
    int64_t rows[STARLIN__MAX_CHUNKS], quantum = maker->is_device ? DEVICE_QUANTUM : 1;

    while (!scale(maker->m, maker->nblocks, quantum, weights, count, rows)) {
        if (quantum == 1)
            return;
        quantum /= 2;
    }
    starlin__list_add(maker->planning, origin, rows, count);
}

/* Each chunk `ratio` times as large as the one before it. */
static void add_geometric(const maker_t *maker, const char *origin, size_t count, double ratio)
{
    double weights[STARLIN__MAX_CHUNKS] = {1.0};

    for (size_t i = 1; i < count; i++)
        weights[i] = weights[i - 1] * ratio;
    add_weights(maker, origin, weights, count);
}

void starlin__ladder_add(starlin__planning_t *planning, int64_t m, unsigned nblocks, bool is_device)
{
    maker_t maker = {planning, m, nblocks, is_device};
    int64_t rows[STARLIN__MAX_CHUNKS];

    for (size_t i = 0; i < sizeof ladder / sizeof ladder[0]; i++) {
        if (is_device && i > 0)
            add_geometric(&maker, "equal", ladder[i], 1.0);
        else if (i == 0 || (int64_t)ladder[i] <= m / nblocks)
            starlin__list_add(planning, "equal", rows, starlin__rows_equal_cut(m, ladder[i], rows));
    }
    for (size_t i = 0; is_device && i < sizeof tapered / sizeof tapered[0]; i++)
        add_weights(&maker, "tapered", tapered[i].weights, tapered[i].count);
}

void starlin__family_add(starlin__planning_t *planning, int64_t m, unsigned nblocks, bool is_device)
{
    maker_t maker = {planning, m, nblocks, is_device};

    for (size_t i = 0; i < sizeof family_counts / sizeof family_counts[0]; i++)
        for (size_t r = 0; r < sizeof family_ratios / sizeof family_ratios[0]; r++)
            add_geometric(&maker, "simulation", family_counts[i], family_ratios[r]);
}

void starlin__list_add(starlin__planning_t *planning, const char *origin, const int64_t *rows, size_t nchunks)
{
    starlin__candidate_t *list = &planning->lists[planning->nlists];

    for (size_t i = 0; i < planning->nlists; i++)
        if (planning->lists[i].told.nchunks == nchunks &&
            memcmp(planning->lists[i].rows, rows, nchunks * sizeof *rows) == 0)
            return;
    if (planning->nlists == STARLIN__MOST_LISTS)
        return;
    memset(list, 0, sizeof *list);
    list->told.origin = origin;
    list->told.nchunks = nchunks;
    memcpy(list->rows, rows, nchunks * sizeof *rows);
    planning->nlists++;
}
