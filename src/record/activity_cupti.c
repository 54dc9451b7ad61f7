/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel times by CUPTI's activity records. Launches are found by the external correlation id that is set
 * around them; kernels that another thread launched (NCCL does) by their order on the stream. The library is
 * loaded when it is first needed, and only API records of launches are asked for: polling threads would
 * flood the buffers with others. CUPTI's callbacks have no argument, so its state is the process's. */
#define _GNU_SOURCE
#include "record/activity_cupti.h"

#include <pthread.h>
#include <stdlib.h>

#include "record/activity.h"

#define BUFFER_NBYTES      ((size_t)1 << 20)
#define RECORDS_PER_LAUNCH 4
#define NTRIES             5

/* Of a kernel; the newest layouts only append to it. */
typedef CUpti_ActivityKernel9 kernel_record_t;

typedef struct kernel {
    uint64_t start_ns, end_ns;
    uint32_t correlation, stream, grid;
} kernel_t;

typedef struct external {
    uint64_t id;
    uint32_t correlation;
} external_t;

static struct {
    pthread_mutex_t lock;
    bool taken; /* there is one owner */
    uint32_t stream_ids[2];
    uint64_t generation; /* of slots, counts resolves */
    size_t capacity, nkernels, nexternals, ndropped;
    kernel_t *kernels;
    external_t *externals;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
static const CUpti_CallbackId driver_launches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel};
static const CUpti_CallbackId runtime_launches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000};

#define TRY(call, doing) STARLIN__FORWARD(starlin__cupti_status((call), (doing)))

/* --- records, from CUPTI's thread or from a flush */

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *nbytes, size_t *max_records)
{
    *buffer = malloc(BUFFER_NBYTES);
    *nbytes = *buffer != NULL ? BUFFER_NBYTES : 0;
    *max_records = 0; /* as many as fit */
}

/* With the lock held. */
static void take(const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        const CUpti_ActivityExternalCorrelation *one = (const void *)record;
        if (state.nexternals == state.capacity)
            state.ndropped++;
        else if (one->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
            state.externals[state.nexternals++] = (external_t){one->externalId, one->correlationId};
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
               record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        const kernel_record_t *one = (const void *)record;
        if (one->start == 0 || one->end == 0) /* not known (yet) */
            return;
        if (state.nkernels == state.capacity)
            state.ndropped++;
        else
            state.kernels[state.nkernels++] =
                (kernel_t){.start_ns = one->start,
                           .end_ns = one->end,
                           .correlation = one->correlationId,
                           .stream = one->streamId,
                           .grid = (uint32_t)(one->gridX * one->gridY * one->gridZ)};
    }
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t nbytes,
                                      size_t nvalid)
{
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)nbytes;
    pthread_mutex_lock(&state.lock);
    while (state.kernels != NULL && nvalid > 0 &&
           starlin__cupti.next(buffer, nvalid, &record) == CUPTI_SUCCESS)
        take(record);
    pthread_mutex_unlock(&state.lock);
    free(buffer);
}

/* --- the source */

static void forget_records(void)
{
    pthread_mutex_lock(&state.lock);
    state.nkernels = state.nexternals = state.ndropped = 0;
    state.generation++;
    pthread_mutex_unlock(&state.lock);
}

static starlin_status_t find_streams(starlin__device_t *device)
{
    void *streams[2];
    STARLIN__FORWARD(starlin__activity_enter(device, streams));
    CUptiResult ret = CUPTI_SUCCESS;
    for (int i = 0; i < 2 && ret == CUPTI_SUCCESS; i++)
        ret = starlin__cupti.stream_id(NULL, (CUstream)streams[i], 0, &state.stream_ids[i]);
    starlin__activity_leave(device);
    return starlin__cupti_status(ret, "asking for a stream's number");
}

static void cupti_destroy(void *owner)
{
    (void)owner;
    pthread_mutex_lock(&state.lock);
    starlin__free(state.kernels);
    starlin__free(state.externals);
    state.kernels = NULL;
    state.externals = NULL;
    state.taken = false;
    pthread_mutex_unlock(&state.lock);
}

static starlin_status_t cupti_create(starlin__device_t *device, size_t capacity, void **state_p)
{
    if (state.taken)
        return starlin__error(STARLIN_ERR_BUSY, "CUPTI: used by another device");
    STARLIN__FORWARD(starlin__cupti_load());
    STARLIN__FORWARD(find_streams(device));
    state.taken = true;
    state.capacity = RECORDS_PER_LAUNCH * capacity;
    state.kernels = starlin__alloc(state.capacity * sizeof *state.kernels);
    state.externals = starlin__alloc(state.capacity * sizeof *state.externals);
    starlin_status_t status = STARLIN_SUCCESS;
    if (state.kernels == NULL || state.externals == NULL)
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "CUPTI: no memory for %zu records", state.capacity);
    else
        status = starlin__cupti_status(starlin__cupti.register_callbacks(buffer_requested, buffer_completed),
                                       "registering for its buffers");
    if (status != STARLIN_SUCCESS) {
        cupti_destroy(&state);
        return status;
    }
    *state_p = &state;
    return STARLIN_SUCCESS;
}

static CUptiResult enable_launches(uint8_t enable)
{
    CUptiResult ret = CUPTI_SUCCESS;
    for (size_t i = 0; i < sizeof driver_launches / sizeof driver_launches[0] && ret == CUPTI_SUCCESS; i++)
        ret = starlin__cupti.enable_driver(driver_launches[i], enable);
    for (size_t i = 0; i < sizeof runtime_launches / sizeof runtime_launches[0] && ret == CUPTI_SUCCESS; i++)
        ret = starlin__cupti.enable_runtime(runtime_launches[i], enable);
    return ret;
}

static void cupti_stop(void *owner)
{
    (void)owner;
    (void)enable_launches(0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        (void)starlin__cupti.disable(kinds[i]);
}

static starlin_status_t cupti_start(void *owner)
{
    CUptiResult ret = CUPTI_SUCCESS;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && ret == CUPTI_SUCCESS; i++)
        ret = starlin__cupti.enable(kinds[i]);
    if (ret == CUPTI_SUCCESS)
        ret = enable_launches(1);
    if (ret != CUPTI_SUCCESS) {
        cupti_stop(owner);
        return starlin__cupti_status(ret, "asking for kernel records");
    }
    forget_records();
    return STARLIN_SUCCESS;
}

static uint64_t launch_id(size_t slot)
{
    return state.generation << 32 | slot;
}

static bool cupti_begin(void *owner, size_t slot, starlin__stream_t stream, starlin__event_t *after)
{
    (void)owner;
    (void)stream;
    (void)after;
    return starlin__cupti.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, launch_id(slot)) == CUPTI_SUCCESS;
}

static bool cupti_end(void *owner, size_t slot, starlin__stream_t stream)
{
    uint64_t last;
    (void)owner;
    (void)slot;
    (void)stream;
    return starlin__cupti.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last) == CUPTI_SUCCESS;
}

/* --- from kernels to launches */

typedef struct reference {
    uint64_t cupti_ns;
    double host_us;
} reference_t;

static starlin_status_t compare_clocks(reference_t *reference)
{
    double best_us = 0;
    for (int i = 0; i < NTRIES; i++) {
        uint64_t now_ns;
        double before_us = starlin__now_us();
        TRY(starlin__cupti.timestamp(&now_ns), "reading its clock");
        double after_us = starlin__now_us();
        if (i > 0 && after_us - before_us >= best_us)
            continue;
        *reference = (reference_t){now_ns, (before_us + after_us) / 2};
        best_us = after_us - before_us;
    }
    return STARLIN_SUCCESS;
}

/* A launch may have several kernels; its grid is that of the longest. */
static void add_kernel(starlin__launch_t *launch, const kernel_t *kernel, const reference_t *reference)
{
    starlin__span_t *span = &launch->span;
    double start_us = reference->host_us + (double)((int64_t)(kernel->start_ns - reference->cupti_ns)) / 1e3;
    double end_us = reference->host_us + (double)((int64_t)(kernel->end_ns - reference->cupti_ns)) / 1e3;
    bool first = !launch->found;
    if (first || end_us - start_us > span->end_us - span->start_us)
        span->grid = kernel->grid;
    span->start_us = first || start_us < span->start_us ? start_us : span->start_us;
    span->end_us = first || end_us > span->end_us ? end_us : span->end_us;
    launch->found = true;
}

static int kernel_compare(const void *a, const void *b)
{
    const kernel_t *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int external_compare(const void *a, const void *b)
{
    const external_t *x = a, *y = b;
    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

/* The slot that the kernel was launched for; n: none. */
static size_t slot_of(const kernel_t *kernel, size_t n)
{
    const external_t key = {.correlation = kernel->correlation};
    const external_t *external =
        bsearch(&key, state.externals, state.nexternals, sizeof key, external_compare);
    if (external == NULL || external->id >> 32 != state.generation)
        return n;
    size_t slot = (size_t)(external->id & UINT32_MAX);
    return slot < n ? slot : n;
}

/* Kernels without an id, on one of our streams: by their order, if there are as many as launches without a
 * kernel. */
static void match_orphans(starlin__launch_t *launches, size_t n, int stream, const reference_t *reference)
{
    size_t norphans = 0, nopen = 0, next = 0;
    for (size_t i = 0; i < state.nkernels; i++)
        norphans += state.kernels[i].stream == state.stream_ids[stream] && slot_of(&state.kernels[i], n) == n;
    for (size_t i = 0; i < n; i++)
        nopen += !launches[i].found && !launches[i].broken &&
                 (launches[i].span.kind == STARLIN__SPAN_ALLREDUCE) == (stream == STARLIN__STREAM_COMM);
    if (norphans != nopen)
        return;
    for (size_t i = 0; i < state.nkernels; i++) {
        if (state.kernels[i].stream != state.stream_ids[stream] || slot_of(&state.kernels[i], n) != n)
            continue;
        while (launches[next].found || launches[next].broken ||
               (launches[next].span.kind == STARLIN__SPAN_ALLREDUCE) != (stream == STARLIN__STREAM_COMM))
            next++;
        add_kernel(&launches[next], &state.kernels[i], reference);
    }
}

/* Returns how many launches have no kernel. */
static size_t match(starlin__launch_t *launches, size_t n, const reference_t *reference)
{
    size_t nopen = 0;
    pthread_mutex_lock(&state.lock);
    qsort(state.kernels, state.nkernels, sizeof *state.kernels, kernel_compare);
    qsort(state.externals, state.nexternals, sizeof *state.externals, external_compare);
    for (size_t i = 0; i < n; i++)
        launches[i].found = false;
    for (size_t i = 0; i < state.nkernels; i++) {
        size_t slot = slot_of(&state.kernels[i], n);
        if (slot < n)
            add_kernel(&launches[slot], &state.kernels[i], reference);
    }
    match_orphans(launches, n, STARLIN__STREAM_COMPUTE, reference);
    match_orphans(launches, n, STARLIN__STREAM_COMM, reference);
    for (size_t i = 0; i < n; i++)
        nopen += !launches[i].found && !launches[i].broken;
    pthread_mutex_unlock(&state.lock);
    return nopen;
}

static starlin_status_t cupti_resolve(void *owner, starlin__launch_t *launches, size_t n)
{
    reference_t reference = {0};
    starlin_status_t status = compare_clocks(&reference);
    (void)owner;
    if (status == STARLIN_SUCCESS)
        status = starlin__cupti_status(starlin__cupti.flush(0), "flushing its buffers");
    if (status == STARLIN_SUCCESS && match(launches, n, &reference) > 0) {
        status = starlin__cupti_status(starlin__cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                                       "flushing its buffers");
        if (status == STARLIN_SUCCESS)
            (void)match(launches, n, &reference);
    }
    starlin__log("CUPTI: %zu kernels, %zu marks, %zu dropped for %zu launches", state.nkernels,
                 state.nexternals, state.ndropped, n);
    forget_records();
    return status;
}

static const starlin__activity_ops_t ops = {
    .source = "cupti",
    .create = cupti_create,
    .destroy = cupti_destroy,
    .start = cupti_start,
    .stop = cupti_stop,
    .begin = cupti_begin,
    .end = cupti_end,
    .resolve = cupti_resolve,
};

const starlin__activity_ops_t *const starlin__activity_cupti = &ops;
