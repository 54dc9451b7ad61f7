/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel times by CUPTI's activity records. Launches are found by the external correlation id that is set
 * around them; kernels that another thread launched (NCCL does) by their order on the stream. The library is
 * loaded when it is first needed, so that a machine without it lacks nothing else, and only API records of
 * launches are asked for: polling threads would flood the buffers with others. CUPTI's callbacks have no
 * argument, so its state is the process's. */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/device_cuda.h"
#include "record/activity.h"

#define BUFFER_NBYTES      ((size_t)1 << 20)
#define RECORDS_PER_LAUNCH 4
#define NTRIES             5
#define LENGTH(array)      (sizeof(array) / sizeof((array)[0]))

/* CUPTI's functions: member, name, parameters. */
#define FUNCTIONS(X)                                                                                         \
    X(register_callbacks, cuptiActivityRegisterCallbacks,                                                    \
      (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc))                                 \
    X(enable, cuptiActivityEnable, (CUpti_ActivityKind))                                                     \
    X(disable, cuptiActivityDisable, (CUpti_ActivityKind))                                                   \
    X(enable_driver, cuptiActivityEnableDriverApi, (CUpti_CallbackId, uint8_t))                              \
    X(enable_runtime, cuptiActivityEnableRuntimeApi, (CUpti_CallbackId, uint8_t))                            \
    X(flush, cuptiActivityFlushAll, (uint32_t))                                                              \
    X(next, cuptiActivityGetNextRecord, (uint8_t *, size_t, CUpti_Activity **))                              \
    X(timestamp, cuptiGetTimestamp, (uint64_t *))                                                            \
    X(stream_id, cuptiGetStreamIdEx, (CUcontext, CUstream, uint8_t, uint32_t *))                             \
    X(push, cuptiActivityPushExternalCorrelationId, (CUpti_ExternalCorrelationKind, uint64_t))               \
    X(pop, cuptiActivityPopExternalCorrelationId, (CUpti_ExternalCorrelationKind, uint64_t *))               \
    X(text, cuptiGetResultString, (CUptiResult, const char **))

static struct {
#define MEMBER(member, name, parameters) CUptiResult(*member) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} cupti;

typedef struct kernel {
    uint64_t start_ns, end_ns; /* on CUPTI's clock */
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

static starlin_status_t translate(CUptiResult ret, const char *doing)
{
    const char *text = NULL;
    if (ret == CUPTI_SUCCESS)
        return STARLIN_SUCCESS;
    if (cupti.text(ret, &text) != CUPTI_SUCCESS || text == NULL)
        text = "unknown error";
    return starlin__error(STARLIN_ERR_UNSUPPORTED, "CUPTI: %s (%d) while %s", text, (int)ret, doing);
}

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
    const CUpti_ActivityExternalCorrelation *external = (const void *)record;
    const CUpti_ActivityKernel9 *kernel = (const void *)record; /* the newest layouts only append to it */
    if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        if (external->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
            return;
        if (state.nexternals < state.capacity)
            state.externals[state.nexternals++] = (external_t){external->externalId, external->correlationId};
        else
            state.ndropped++;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
               record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        if (kernel->start == 0 || kernel->end == 0) /* not known (yet) */
            return;
        if (state.nkernels < state.capacity)
            state.kernels[state.nkernels++] =
                (kernel_t){.start_ns = kernel->start,
                           .end_ns = kernel->end,
                           .correlation = kernel->correlationId,
                           .stream = kernel->streamId,
                           .grid = (uint32_t)(kernel->gridX * kernel->gridY * kernel->gridZ)};
        else
            state.ndropped++;
    }
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t nbytes,
                                      size_t nvalid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)nbytes;
    pthread_mutex_lock(&state.lock);
    while (state.taken && nvalid > 0 && cupti.next(buffer, nvalid, &record) == CUPTI_SUCCESS)
        take(record);
    pthread_mutex_unlock(&state.lock);
    free(buffer);
}

static void forget_records(void)
{
    pthread_mutex_lock(&state.lock);
    state.nkernels = state.nexternals = state.ndropped = 0;
    state.generation++;
    pthread_mutex_unlock(&state.lock);
}

/* --- the library */

/* Where the linker looks, or beside the CUDA runtime that the process uses. */
static void *open_library(void)
{
    static const char *const places[] = {"", "/../extras/CUPTI/lib64", "/../../../extras/CUPTI/lib64"};
    char name[32], path[4096];
    Dl_info info;
    void *runtime = dlsym(RTLD_DEFAULT, "cudaGetDeviceCount"), *library;
    snprintf(name, sizeof name, "libcupti.so.%d", CUDA_VERSION / 1000);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL || runtime == NULL || dladdr(runtime, &info) == 0 || info.dli_fname == NULL)
        return library;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash != NULL ? (int)(slash - info.dli_fname) : 0;
    for (size_t i = 0; library == NULL && length > 0 && i < LENGTH(places); i++) {
        snprintf(path, sizeof path, "%.*s%s/%s", length, info.dli_fname, places[i], name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* Once and for all: its worker thread stays. */
static starlin_status_t load(void)
{
    static bool loaded;
    if (loaded)
        return STARLIN_SUCCESS;
    void *library = open_library(), *symbol;
    if (library == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "CUPTI: libcupti.so.%d is not found",
                              CUDA_VERSION / 1000);
#define LOAD(member, name, parameters)                                                                       \
    symbol = dlsym(library, #name);                                                                          \
    if (symbol == NULL)                                                                                      \
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "CUPTI: the library has no %s", #name);               \
    memcpy(&cupti.member, &symbol, sizeof symbol);
    FUNCTIONS(LOAD)
#undef LOAD
    STARLIN__FORWARD(translate(cupti.register_callbacks(buffer_requested, buffer_completed),
                               "registering for its buffers"));
    loaded = true;
    return STARLIN_SUCCESS;
}

/* --- the source */

static CUptiResult switch_launches(uint8_t enable)
{
    static const CUpti_CallbackId driver[] = {
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel};
    static const CUpti_CallbackId runtime[] = {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                                               CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
                                               CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
                                               CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000};
    CUptiResult ret = CUPTI_SUCCESS;
    for (size_t i = 0; i < LENGTH(driver) && ret == CUPTI_SUCCESS; i++)
        ret = cupti.enable_driver(driver[i], enable);
    for (size_t i = 0; i < LENGTH(runtime) && ret == CUPTI_SUCCESS; i++)
        ret = cupti.enable_runtime(runtime[i], enable);
    return ret;
}

static void cupti_close(void *owner)
{
    (void)owner;
    (void)switch_launches(0);
    (void)cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    (void)cupti.disable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    pthread_mutex_lock(&state.lock);
    starlin__free(state.kernels);
    starlin__free(state.externals);
    state.kernels = NULL;
    state.externals = NULL;
    state.taken = false;
    pthread_mutex_unlock(&state.lock);
}

static starlin_status_t find_streams(starlin__device_t *device)
{
    CUptiResult ret = CUPTI_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    for (unsigned i = 0; i < 2 && ret == CUPTI_SUCCESS; i++)
        ret = cupti.stream_id(NULL, (CUstream)starlin__device_cuda_stream(device, (starlin__stream_t)i), 0,
                              &state.stream_ids[i]);
    starlin__device_cuda_leave(device);
    return translate(ret, "asking for a stream's number");
}

static starlin_status_t cupti_open(starlin__device_t *device, size_t capacity, void **state_p)
{
    if (state.taken)
        return starlin__error(STARLIN_ERR_BUSY, "CUPTI: used by another device");
    STARLIN__FORWARD(load());
    STARLIN__FORWARD(find_streams(device));
    forget_records();
    state.capacity = RECORDS_PER_LAUNCH * capacity;
    state.kernels = starlin__alloc(state.capacity * sizeof *state.kernels);
    state.externals = starlin__alloc(state.capacity * sizeof *state.externals);
    state.taken = state.kernels != NULL && state.externals != NULL;
    starlin_status_t status = STARLIN_SUCCESS;
    if (!state.taken) {
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "CUPTI: no memory for %zu records", state.capacity);
    } else {
        CUptiResult ret = cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        if (ret == CUPTI_SUCCESS)
            ret = cupti.enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
        if (ret == CUPTI_SUCCESS)
            ret = switch_launches(1);
        status = translate(ret, "asking for kernel records");
    }
    if (status == STARLIN_SUCCESS)
        *state_p = &state;
    else
        cupti_close(&state);
    return status;
}

static bool cupti_begin(void *owner, size_t slot, starlin__stream_t stream, starlin__event_t *after)
{
    (void)owner, (void)stream, (void)after;
    return cupti.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, state.generation << 32 | slot) ==
           CUPTI_SUCCESS;
}

static bool cupti_end(void *owner, size_t slot, starlin__stream_t stream)
{
    uint64_t last;
    (void)owner, (void)slot, (void)stream;
    return cupti.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last) == CUPTI_SUCCESS;
}

/* --- from kernels to launches */

/* What to add to CUPTI's clock to get the host's. */
static starlin_status_t compare_clocks(int64_t *offset_ns)
{
    double best_us = 0;
    for (int i = 0; i < NTRIES; i++) {
        uint64_t now_ns;
        double before_us = starlin__now_us();
        STARLIN__FORWARD(translate(cupti.timestamp(&now_ns), "reading its clock"));
        double after_us = starlin__now_us();
        if (i > 0 && after_us - before_us >= best_us)
            continue;
        *offset_ns = (int64_t)(500 * (before_us + after_us)) - (int64_t)now_ns;
        best_us = after_us - before_us;
    }
    return STARLIN_SUCCESS;
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

/* A launch may have several kernels; its grid is that of the longest. */
static void add_kernel(starlin__launch_t *launch, const kernel_t *kernel, int64_t offset_ns)
{
    starlin__span_t *span = &launch->span;
    double start_us = (double)((int64_t)kernel->start_ns + offset_ns) / 1e3;
    double end_us = (double)((int64_t)kernel->end_ns + offset_ns) / 1e3;
    bool first = !launch->found;
    if (first || end_us - start_us > span->end_us - span->start_us)
        span->grid = kernel->grid;
    span->start_us = first || start_us < span->start_us ? start_us : span->start_us;
    span->end_us = first || end_us > span->end_us ? end_us : span->end_us;
    launch->found = true;
}

static bool is_open(const starlin__launch_t *launch, starlin__stream_t stream)
{
    return !launch->found && !launch->broken && starlin__launch_stream(launch) == stream;
}

/* Kernels without an id, on one of our streams: by their order, if there are as many as launches without a
 * kernel. Returns how many launches stay without. */
static size_t match_orphans(starlin__launch_t *launches, size_t n, starlin__stream_t stream,
                            int64_t offset_ns)
{
    size_t norphans = 0, nopen = 0, next = 0;
    for (size_t i = 0; i < n; i++)
        nopen += is_open(&launches[i], stream);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < state.nkernels; i++) {
            const kernel_t *kernel = &state.kernels[i];
            if (kernel->stream != state.stream_ids[stream] || slot_of(kernel, n) != n)
                continue;
            norphans += pass == 0;
            if (pass == 0 || norphans != nopen)
                continue;
            while (!is_open(&launches[next], stream))
                next++;
            add_kernel(&launches[next], kernel, offset_ns);
        }
    return norphans == nopen ? 0 : nopen;
}

/* Returns how many launches have no kernel. */
static size_t match(starlin__launch_t *launches, size_t n, int64_t offset_ns)
{
    pthread_mutex_lock(&state.lock);
    qsort(state.kernels, state.nkernels, sizeof *state.kernels, kernel_compare);
    qsort(state.externals, state.nexternals, sizeof *state.externals, external_compare);
    for (size_t i = 0; i < n; i++)
        launches[i].found = false;
    for (size_t i = 0; i < state.nkernels; i++) {
        size_t slot = slot_of(&state.kernels[i], n);
        if (slot < n)
            add_kernel(&launches[slot], &state.kernels[i], offset_ns);
    }
    size_t nopen = match_orphans(launches, n, STARLIN__STREAM_COMPUTE, offset_ns) +
                   match_orphans(launches, n, STARLIN__STREAM_COMM, offset_ns);
    pthread_mutex_unlock(&state.lock);
    return nopen;
}

static starlin_status_t cupti_resolve(void *owner, starlin__launch_t *launches, size_t n)
{
    static const uint32_t flags[] = {0, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED};
    int64_t offset_ns = 0;
    (void)owner;
    starlin_status_t status = compare_clocks(&offset_ns);
    for (size_t i = 0, nopen = n; i < LENGTH(flags) && nopen > 0 && status == STARLIN_SUCCESS; i++) {
        status = translate(cupti.flush(flags[i]), "flushing its buffers");
        if (status == STARLIN_SUCCESS)
            nopen = match(launches, n, offset_ns);
    }
    starlin__log("CUPTI: %zu kernels, %zu marks, %zu dropped for %zu launches", state.nkernels,
                 state.nexternals, state.ndropped, n);
    forget_records();
    return status;
}

const starlin__activity_ops_t starlin__activity_cupti_ops = {.source = "cupti",
                                                             .open = cupti_open,
                                                             .close = cupti_close,
                                                             .begin = cupti_begin,
                                                             .end = cupti_end,
                                                             .resolve = cupti_resolve};
