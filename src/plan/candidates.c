/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunk lists by shape: a shape is a list of weights, cut to whole quanta of at least one each. The number
 * of candidates does not depend on the number of rows. Only +, *, / of doubles: the same lists on every
 * IEEE machine. */
#include "plan/candidates.h"

typedef struct shape {
    size_t n;
    double weight[STARLIN__MAX_CHUNKS];
} shape_t;

typedef struct visitor {
    int64_t nquanta;
    size_t limit; /* chunks of a list */
    starlin__candidate_fn_t visit;
    void *arg;
} visitor_t;

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Cuts at the rounded running sums, so that rounding errors do not add up in one chunk. */
static void cut(const visitor_t *visitor, const shape_t *shape)
{
    if (shape->n == 0 || shape->n > visitor->limit)
        return;
    double total = 0, running = 0;
    for (size_t i = 0; i < shape->n; i++)
        total += shape->weight[i];
    int64_t quanta[STARLIN__MAX_CHUNKS], used = 0;
    for (size_t i = 0; i < shape->n; i++) {
        running += shape->weight[i];
        int64_t lowest = used + 1, highest = visitor->nquanta - (int64_t)(shape->n - 1 - i), end;
        double exact = (double)visitor->nquanta * (running / total) + 0.5;
        if (i == shape->n - 1 || exact >= (double)highest)
            end = highest;
        else
            end = exact < (double)lowest ? lowest : (int64_t)exact;
        quanta[i] = end - used;
        used = end;
    }
    visitor->visit(visitor->arg, quanta, shape->n);
}

static void push(shape_t *shape, double weight)
{
    if (shape->n < STARLIN__MAX_CHUNKS)
        shape->weight[shape->n++] = weight;
}

static void visit_equal(const visitor_t *visitor)
{
    static const size_t counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        shape_t shape = {0};
        for (size_t j = 0; j < counts[i]; j++)
            push(&shape, 1);
        cut(visitor, &shape);
    }
}

static void visit_geometric(const visitor_t *visitor, double ratio)
{
    static const size_t counts[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        shape_t shape = {0};
        double weight = 1;
        for (size_t j = 0; j < counts[i]; j++, weight *= ratio)
            push(&shape, weight);
        cut(visitor, &shape);
    }
}

/* Shrinking lists keep the last collective, which nothing hides, short; growing ones start a slow link
 * early. */
static void visit_ratios(const visitor_t *visitor, double ratio)
{
    static const double fixed[] = {0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15};
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        visit_geometric(visitor, fixed[i]);
        visit_geometric(visitor, 1 / fixed[i]);
    }
    if (ratio > 0.02 && ratio < 50) {
        visit_geometric(visitor, ratio);
        visit_geometric(visitor, (1 + ratio) / 2);
    }
}

/* A list that halves from 1 down to 1/2^depth, shorter sizes last. */
static void push_halves(shape_t *shape, unsigned depth, bool repeat_last)
{
    double weight = 1;
    for (unsigned i = 0; i < depth; i++)
        push(shape, weight *= 0.5);
    if (repeat_last)
        push(shape, weight);
}

/* The same, shorter sizes first. */
static void push_ramp(shape_t *shape, unsigned depth)
{
    double weight = 1;
    for (unsigned i = 0; i < depth; i++)
        weight *= 0.5;
    for (unsigned i = 0; i < depth; i++, weight *= 2)
        push(shape, weight);
}

/* Large chunks of one size, a start that grows to it, a tail that halves from it. */
static void visit_tails(const visitor_t *visitor)
{
    static const size_t heads[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};
    for (size_t h = 0; h < COUNT_OF(heads); h++) {
        for (unsigned variant = 0; variant < 40; variant++) {
            unsigned ramp = variant % 4, depth = variant / 4 % 5;
            bool repeat_last = variant / 20 == 1;
            if (ramp + depth == 0 || (depth == 0 && repeat_last))
                continue;
            shape_t shape = {0};
            push_ramp(&shape, ramp);
            for (size_t i = 0; i < heads[h]; i++)
                push(&shape, 1);
            push_halves(&shape, depth, repeat_last);
            cut(visitor, &shape);
        }
    }
}

/* Many chunks of one size and a few of half of it, behind, or before and behind: for links about as slow as
 * the gemm. */
static void visit_fine(const visitor_t *visitor)
{
    static const size_t heads[] = {4, 6, 8, 10, 12, 14, 15, 20, 24, 28, 30, 40, 56, 60, 112};
    for (size_t h = 0; h < COUNT_OF(heads); h++) {
        for (unsigned variant = 0; variant < 6; variant++) {
            size_t before = variant / 3 * 2, behind = variant % 3 * 2;
            if (before + behind == 0)
                continue;
            shape_t shape = {0};
            for (size_t i = 0; i < before + heads[h] + behind; i++)
                push(&shape, i < before || i >= before + heads[h] ? 0.5 : 1);
            cut(visitor, &shape);
        }
    }
}

void starlin__candidates_visit(int64_t nquanta, double ratio, starlin__candidate_fn_t visit, void *arg)
{
    visitor_t visitor = {.nquanta = nquanta, .limit = STARLIN__MAX_CHUNKS, .visit = visit, .arg = arg};
    if (nquanta < STARLIN__MAX_CHUNKS)
        visitor.limit = (size_t)nquanta;
    visit_equal(&visitor);
    visit_ratios(&visitor, ratio);
    visit_tails(&visitor);
    visit_fine(&visitor);
}
