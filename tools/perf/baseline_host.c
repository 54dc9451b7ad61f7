/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand-written loops on the host: the main thread multiplies with the BLAS threads of a worker, and starts
 * and tests the collectives itself, as a program without a task runtime does (for MPI: Iallreduce, and Test
 * between the gemms). The library's progress thread is idle meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include "baseline.h"
#include "layer.h"

#include <time.h>

typedef struct baseline_host {
    perf_baseline_t base;
    perf_layer_t layer;
    size_t nstarted, ndone; /* collectives complete in order */
    starlin__allreduce_t requests[PERF_BASELINE_MAX_CHUNKS];
} baseline_host_t;

static bool host_fits(const starlin_context_t *context)
{
    return context->device == NULL && context->comm->space == STARLIN__HOST;
}

static void host_destroy(perf_baseline_t *base)
{
    baseline_host_t *host = (baseline_host_t *)base;
    if (host == NULL)
        return;
    perf_layer_release(&host->layer);
    starlin__free(host);
}

static starlin_status_t host_create(starlin_context_t *context, const perf_problem_t *problem, const void *x,
                                    const void *w, perf_baseline_t **baseline_p)
{
    baseline_host_t *host = starlin__alloc(sizeof(*host));
    if (host == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "baseline");
    host->base.ops = &perf_baseline_host_ops;
    starlin_status_t status = perf_layer_open(context, problem, x, w, &host->layer);
    if (status == STARLIN_SUCCESS) {
        starlin__gemm_t gemm = perf_layer_gemm(&host->layer, 0, problem->m);
        status = context->compute->ops->prepare(context->compute, &gemm);
    }
    if (status != STARLIN_SUCCESS) {
        host_destroy(&host->base);
        return status;
    }
    *baseline_p = &host->base;
    return STARLIN_SUCCESS;
}

static starlin_status_t start(baseline_host_t *host, void *buffer, int64_t count)
{
    starlin__comm_t *comm = host->layer.context->comm;
    starlin__allreduce_t *request = &host->requests[host->nstarted];
    *request =
        (starlin__allreduce_t){.buffer = buffer, .count = (size_t)count, .dtype = host->layer.sum_dtype};
    STARLIN__FORWARD(comm->ops->allreduce_start(comm, request));
    host->nstarted++;
    return STARLIN_SUCCESS;
}

/* Tests the collectives in flight, oldest first, up to the first that is not complete. */
static starlin_status_t test(baseline_host_t *host)
{
    starlin__comm_t *comm = host->layer.context->comm;
    for (bool done = true; done && host->ndone < host->nstarted; host->ndone += done)
        STARLIN__FORWARD(comm->ops->allreduce_test(comm, &host->requests[host->ndone], &done));
    return STARLIN_SUCCESS;
}

static void sleep_until(double time_us)
{
    struct timespec when = {.tv_sec = (time_t)(time_us / 1e6)};
    when.tv_nsec = (long)((time_us - (double)when.tv_sec * 1e6) * 1e3);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static starlin_status_t wait_all(baseline_host_t *host)
{
    starlin__comm_t *comm = host->layer.context->comm;
    while (host->ndone < host->nstarted) {
        if (comm->ops->wake_us != NULL)
            sleep_until(comm->ops->wake_us(comm, &host->requests[host->ndone]));
        STARLIN__FORWARD(test(host));
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t cast(baseline_host_t *host)
{
    starlin__compute_t *compute = host->layer.context->compute;
    if (!perf_layer_has_cast(&host->layer))
        return STARLIN_SUCCESS;
    starlin__cast_t whole = perf_layer_cast(&host->layer, 0, host->layer.problem->m);
    return compute->ops->cast(compute, 0, &whole);
}

static starlin_status_t run_chunks(baseline_host_t *host, unsigned nchunks)
{
    starlin__compute_t *compute = host->layer.context->compute;
    int64_t rows[PERF_BASELINE_MAX_CHUNKS], first = 0;
    size_t count = starlin__plan_equal(host->layer.problem->m, nchunks, rows);
    for (size_t i = 0; i < count; first += rows[i], i++) {
        starlin__gemm_t gemm = perf_layer_gemm(&host->layer, first, rows[i]);
        STARLIN__FORWARD(compute->ops->gemm(compute, 0, &gemm));
        STARLIN__FORWARD(start(host, gemm.y, rows[i] * host->layer.problem->n));
        STARLIN__FORWARD(test(host));
    }
    STARLIN__FORWARD(wait_all(host));
    return cast(host);
}

static starlin_status_t host_run(perf_baseline_t *base, perf_baseline_kind_t kind, unsigned nchunks)
{
    baseline_host_t *host = (baseline_host_t *)base;
    starlin__compute_t *compute = host->layer.context->compute;
    host->nstarted = host->ndone = 0;
    if (kind == PERF_BASELINE_GEMM) {
        starlin__gemm_t gemm = perf_layer_gemm(&host->layer, 0, host->layer.problem->m);
        return compute->ops->gemm(compute, 0, &gemm);
    }
    if (kind == PERF_BASELINE_COMM) {
        STARLIN__FORWARD(start(host, starlin_matrix_data(host->layer.zeros),
                               host->layer.problem->m * host->layer.problem->n));
        return wait_all(host);
    }
    return run_chunks(host, kind == PERF_BASELINE_SERIAL ? 1 : nchunks);
}

static starlin_matrix_t *host_output(perf_baseline_t *base)
{
    return ((baseline_host_t *)base)->layer.y;
}

const perf_baseline_ops_t perf_baseline_host_ops = {
    .name = "host",
    .fits = host_fits,
    .create = host_create,
    .destroy = host_destroy,
    .run = host_run,
    .output = host_output,
};
