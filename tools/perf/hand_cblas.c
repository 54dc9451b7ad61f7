/* SPDX-License-Identifier: BSD-3-Clause */
/* By hand on the host: the main thread multiplies with the BLAS threads of a worker, and starts and tests the
 * collectives itself (Iallreduce and its like, and Test between the gemms). On the modelled link a collective
 * is a time on the clock; one link carries one at a time. */
#define _POSIX_C_SOURCE 200809L
#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "element.h"
#include "hand.h"
#include "ranks.h"

/* f16 and bf16 are widened in blocks, multiplied in f32, and rounded once at the end. */
enum { BLOCK_ROWS = 512, BLOCK_COLUMNS = 512 };

typedef struct hand_cblas {
    perf_hand_t base;
    perf_link_t link;
    bool mpi; /* else the collectives are copies */
    int nranks;
    size_t nstarted, ndone;        /* collectives complete in order of their slots */
    double due_us[PERF_MAX_SLOTS]; /* modelled: when it is complete */
    float *x, *w, *y;              /* blocks */
    size_t x_count, w_count, y_count;
} hand_cblas_t;

static bool fits(const starlin_context_info_t *info)
{
    return strcmp(info->compute, "cblas") == 0 && strcmp(info->comm, "nccl") != 0;
}

static bool create(const perf_hand_setup_t *setup, perf_hand_t **hand_p, perf_error_t *error)
{
    hand_cblas_t *hand = calloc(1, sizeof(*hand));
    if (hand == NULL)
        return perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a baseline");
    hand->base.ops = &perf_hand_cblas_ops;
    hand->link = setup->link;
    hand->link.modelled = strcmp(setup->info.comm, "model") == 0;
    hand->mpi = strcmp(setup->info.comm, "mpi") == 0;
    hand->nranks = setup->nranks;
    *hand_p = &hand->base;
    return true;
}

static void destroy(perf_hand_t *base)
{
    hand_cblas_t *hand = (hand_cblas_t *)base;
    if (hand == NULL)
        return;
    free(hand->x);
    free(hand->w);
    free(hand->y);
    free(hand);
}

/* Written to once, so that its pages are there. */
static void *hand_alloc(perf_hand_t *hand, size_t nbytes)
{
    void *data = NULL;
    (void)hand;
    if (posix_memalign(&data, 4096, nbytes) != 0)
        return NULL;
    return memset(data, 0, nbytes);
}

static void hand_free(perf_hand_t *hand, void *data)
{
    (void)hand;
    free(data);
}

static bool copy(perf_hand_t *hand, void *dst, const void *src, size_t nbytes, perf_error_t *error)
{
    (void)hand;
    (void)error;
    memcpy(dst, src, nbytes);
    return true;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool grow(float **buffer, size_t *capacity, int64_t rows, int64_t columns, perf_error_t *error)
{
    size_t count = (size_t)(rows * columns);
    if (count <= *capacity)
        return true;
    free(*buffer);
    *buffer = malloc(count * sizeof(float));
    *capacity = *buffer != NULL ? count : 0;
    return *buffer != NULL ||
           perf_error_status(error, STARLIN_ERR_NO_MEMORY, "no memory for a baseline's %zu floats", count);
}

static bool prepare(perf_hand_t *base, const perf_gemm_t *gemm, perf_error_t *error)
{
    hand_cblas_t *hand = (hand_cblas_t *)base;
    int64_t rows = min64(gemm->m, BLOCK_ROWS), columns = min64(gemm->n, BLOCK_COLUMNS);
    return !perf_dtype_is_half(gemm->dtype) || (grow(&hand->x, &hand->x_count, rows, gemm->k, error) &&
                                                grow(&hand->w, &hand->w_count, columns, gemm->k, error) &&
                                                grow(&hand->y, &hand->y_count, rows, columns, error));
}

static void gemm_half(const hand_cblas_t *hand, const perf_gemm_t *gemm)
{
    const uint16_t *x = gemm->x, *w = gemm->w;
    bool rounds = gemm->y_dtype != STARLIN_F32;
    for (int64_t i = 0; i < gemm->m; i += BLOCK_ROWS) {
        int64_t rows = min64(BLOCK_ROWS, gemm->m - i);
        perf_half_to_f32(gemm->dtype, x + i * gemm->k, hand->x, (size_t)(rows * gemm->k));
        for (int64_t j = 0; j < gemm->n; j += BLOCK_COLUMNS) {
            int64_t columns = min64(BLOCK_COLUMNS, gemm->n - j);
            float *y = rounds ? hand->y : (float *)gemm->y + i * gemm->n + j;
            perf_half_to_f32(gemm->dtype, w + j * gemm->k, hand->w, (size_t)(columns * gemm->k));
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)columns, (int)gemm->k, 1.0f,
                        hand->x, (int)gemm->k, hand->w, (int)gemm->k, 0.0f, y,
                        (int)(rounds ? columns : gemm->n));
            for (int64_t row = 0; rounds && row < rows; row++)
                perf_f32_to_half(gemm->dtype, y + row * columns,
                                 (uint16_t *)gemm->y + (i + row) * gemm->n + j, (size_t)columns);
        }
    }
}

/* Tests the collectives in flight, oldest first, up to the first that is not complete. */
static void test(hand_cblas_t *hand)
{
    for (bool done = true; done && hand->ndone < hand->nstarted; hand->ndone += done)
        done = hand->link.modelled ? perf_now_us() >= hand->due_us[hand->ndone]
               : hand->mpi         ? perf_ranks_test((unsigned)hand->ndone)
                                   : true;
}

static bool gemm(perf_hand_t *base, const perf_gemm_t *one, perf_error_t *error)
{
    hand_cblas_t *hand = (hand_cblas_t *)base;
    int m = (int)one->m, n = (int)one->n, k = (int)one->k;
    (void)error;
    if (m == 0 || n == 0) {
        test(hand);
        return true;
    }
    if (k == 0)
        memset(one->y, 0, (size_t)(one->m * one->n) * starlin_dtype_nbytes(one->y_dtype));
    else if (perf_dtype_is_half(one->dtype))
        gemm_half(hand, one);
    else if (one->dtype == STARLIN_F64)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0, one->x, k, one->w, k, 0.0, one->y,
                    n);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, one->x, k, one->w, k, 0.0f,
                    one->y, n);
    test(hand);
    return true;
}

static bool round_half(perf_hand_t *hand, const float *src, void *dst, size_t count, starlin_dtype_t dtype,
                       perf_error_t *error)
{
    (void)hand;
    (void)error;
    perf_f32_to_half(dtype, src, dst, count);
    return true;
}

static bool start(perf_hand_t *base, unsigned slot, const perf_collective_t *collective, perf_error_t *error)
{
    hand_cblas_t *hand = (hand_cblas_t *)base;
    (void)error;
    if (hand->mpi)
        perf_ranks_collective(slot, collective);
    else if (collective->send != collective->receive)
        memcpy(collective->receive, collective->send,
               collective->count * starlin_dtype_nbytes(collective->dtype));
    if (hand->link.modelled) {
        double start_us = perf_now_us(), before_us = slot > 0 ? hand->due_us[slot - 1] : 0;
        hand->due_us[slot] = (start_us > before_us ? start_us : before_us) +
                             perf_link_time_us(&hand->link, collective, hand->nranks);
    }
    hand->nstarted = slot + 1;
    return true;
}

static void sleep_until(double time_us)
{
    struct timespec when = {.tv_sec = (time_t)(time_us / 1e6)};
    when.tv_nsec = (long)((time_us - (double)when.tv_sec * 1e6) * 1e3);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static bool after(perf_hand_t *base, unsigned slot, perf_error_t *error)
{
    hand_cblas_t *hand = (hand_cblas_t *)base;
    (void)error;
    while (hand->ndone <= slot) {
        if (hand->link.modelled)
            sleep_until(hand->due_us[hand->ndone]);
        test(hand);
    }
    return true;
}

static bool finish(perf_hand_t *base, perf_error_t *error)
{
    hand_cblas_t *hand = (hand_cblas_t *)base;
    bool ok = hand->nstarted == 0 || after(base, (unsigned)hand->nstarted - 1, error);
    hand->nstarted = hand->ndone = 0;
    return ok;
}

const perf_hand_ops_t perf_hand_cblas_ops = {
    .name = "host",
    .fits = fits,
    .create = create,
    .destroy = destroy,
    .alloc = hand_alloc,
    .free = hand_free,
    .copy = copy,
    .prepare = prepare,
    .gemm = gemm,
    .round = round_half,
    .start = start,
    .after = after,
    .finish = finish,
};
