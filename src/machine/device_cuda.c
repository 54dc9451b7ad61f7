/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA device. Invariants: every entry leaves the caller's current context as it found it; nothing is
 * created on any other device; after create() neither streams nor events are made except by event_create().
 * The driver's functions are fetched at run time, so that the library loads where there is no driver. */
#include "machine/device_cuda.h"

#include <cudaTypedefs.h>
#include <stdio.h>

typedef struct cuda_device {
    starlin__device_t base;
    CUcontext context; /* the primary one, retained */
    cudaStream_t streams[2];
    cudaStream_t detour; /* for give_way: an event's way here and back takes as long as the yielding should */
    cudaEvent_t detour_end;
    cudaEvent_t joined; /* a caller's stream at the last join */
} cuda_device_t;

static struct {
    PFN_cuCtxPushCurrent_v4000 push;
    PFN_cuCtxPopCurrent_v4000 pop;
    PFN_cuCtxGetCurrent_v4000 get;
    PFN_cuDevicePrimaryCtxRetain_v7000 retain;
    PFN_cuDevicePrimaryCtxRelease_v11000 release;
} driver;

starlin_status_t starlin__device_cuda_status(cudaError_t error, const char *doing)
{
    if (error == cudaSuccess)
        return STARLIN_SUCCESS;
    (void)cudaGetLastError();
    starlin_status_t status =
        error == cudaErrorMemoryAllocation ? STARLIN_ERR_NO_MEMORY : STARLIN_ERR_COMPUTE;
    return starlin__error(status, "CUDA: %s (%s) while %s", cudaGetErrorString(error),
                          cudaGetErrorName(error), doing);
}

/* Forwards a failure of a CUDA call. */
#define TRY(call, doing) STARLIN__FORWARD(starlin__device_cuda_status((call), (doing)))

/* Returns the status of one CUDA call with the device current. */
#define RETURN_ON_DEVICE(device, call, doing)                                                                \
    do {                                                                                                     \
        STARLIN__FORWARD(starlin__device_cuda_enter(device));                                                \
        cudaError_t error__ = (call);                                                                        \
        starlin__device_cuda_leave(device);                                                                  \
        return starlin__device_cuda_status(error__, (doing));                                                \
    } while (0)

cudaStream_t starlin__device_cuda_stream(const starlin__device_t *device, starlin__stream_t which)
{
    return ((const cuda_device_t *)device)->streams[which];
}

starlin_status_t starlin__device_cuda_enter(const starlin__device_t *device)
{
    CUresult ret = driver.push(((const cuda_device_t *)device)->context);
    if (ret != CUDA_SUCCESS)
        return starlin__error(STARLIN_ERR_COMPUTE, "CUDA: error %d while making device %u current", (int)ret,
                              device->index);
    return STARLIN_SUCCESS;
}

void starlin__device_cuda_leave(const starlin__device_t *device)
{
    CUcontext ours;
    (void)device;
    (void)driver.pop(&ours);
}

static bool driver_symbol(const char *name, unsigned version, void **function_p)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    *function_p = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, function_p, version, cudaEnableDefault, &found);
#else
    (void)version;
    cudaError_t error = cudaGetDriverEntryPoint(name, function_p, cudaEnableDefault, &found);
#endif
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess && *function_p != NULL;
}

/* Idempotent: several threads would store the same values. */
static starlin_status_t driver_load(void)
{
    void *push, *pop, *get, *retain, *release;
    if (!driver_symbol("cuCtxGetCurrent", 4000, &get) || !driver_symbol("cuCtxPushCurrent", 4000, &push) ||
        !driver_symbol("cuCtxPopCurrent", 4000, &pop) ||
        !driver_symbol("cuDevicePrimaryCtxRetain", 7000, &retain) ||
        !driver_symbol("cuDevicePrimaryCtxRelease", 11000, &release))
        return starlin__error(STARLIN_ERR_NO_DEVICE, "the CUDA driver is missing or too old");
    driver.push = (PFN_cuCtxPushCurrent_v4000)push;
    driver.pop = (PFN_cuCtxPopCurrent_v4000)pop;
    driver.get = (PFN_cuCtxGetCurrent_v4000)get;
    driver.retain = (PFN_cuDevicePrimaryCtxRetain_v7000)retain;
    driver.release = (PFN_cuDevicePrimaryCtxRelease_v11000)release;
    return STARLIN_SUCCESS;
}

static unsigned device_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return count > 0 ? (unsigned)count : 0;
}

static starlin_status_t device_busid(unsigned index, char *busid, size_t size)
{
    return starlin__device_cuda_status(cudaDeviceGetPCIBusId(busid, (int)size, (int)index),
                                       "asking for the bus id of a device");
}

/* Runs with the device current. */
static starlin_status_t open_streams(cuda_device_t *device)
{
    int lowest, highest, driver_version = 0, runtime_version = 0;
    struct cudaDeviceProp properties;
    TRY(cudaGetDeviceProperties(&properties, (int)device->base.index), "asking for the device's properties");
    snprintf(device->base.model, sizeof(device->base.model), "%.*s", (int)sizeof(device->base.model) - 1,
             properties.name);
    device->base.nprocessors = (unsigned)properties.multiProcessorCount;
    (void)cudaDriverGetVersion(&driver_version);
    (void)cudaRuntimeGetVersion(&runtime_version);
    snprintf(device->base.versions, sizeof(device->base.versions), "driver %d, CUDA %d", driver_version,
             runtime_version);
    TRY(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for stream priorities");
    TRY(cudaStreamCreateWithPriority(&device->streams[STARLIN__STREAM_COMPUTE], cudaStreamNonBlocking,
                                     lowest),
        "creating the compute stream");
    TRY(cudaStreamCreateWithPriority(&device->detour, cudaStreamNonBlocking, highest),
        "creating the detour stream");
    TRY(cudaEventCreateWithFlags(&device->detour_end, cudaEventDisableTiming), "creating the detour's event");
    TRY(cudaEventCreateWithFlags(&device->joined, cudaEventDisableTiming), "creating an event");
    TRY(cudaStreamCreateWithPriority(&device->streams[STARLIN__STREAM_COMM], cudaStreamNonBlocking, highest),
        "creating the communication stream");
    return STARLIN_SUCCESS;
}

static void device_destroy(starlin__device_t *base)
{
    cuda_device_t *device = (cuda_device_t *)base;
    if (device == NULL)
        return;
    if (starlin__device_cuda_enter(base) == STARLIN_SUCCESS) {
        for (int i = 0; i < 2; i++) {
            if (device->streams[i] != NULL)
                (void)cudaStreamDestroy(device->streams[i]);
        }
        if (device->detour_end != NULL)
            (void)cudaEventDestroy(device->detour_end);
        if (device->joined != NULL)
            (void)cudaEventDestroy(device->joined);
        if (device->detour != NULL)
            (void)cudaStreamDestroy(device->detour);
        (void)cudaGetLastError();
        starlin__device_cuda_leave(base);
    }
    (void)driver.release((CUdevice)base->index);
    starlin__free(device);
}

static starlin_status_t device_create(unsigned index, starlin__device_t **device_p)
{
    unsigned count = device_count();
    if (index >= count)
        return starlin__error(STARLIN_ERR_NO_DEVICE, "there is no CUDA device %u: this process sees %u",
                              index, count);
    STARLIN__FORWARD(driver_load());
    cuda_device_t *device = starlin__alloc(sizeof(*device));
    if (device == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for a device");
    device->base.ops = starlin__device_cuda;
    device->base.index = index;
    /* the runtime's ordinals are the driver's */
    CUresult ret = driver.retain(&device->context, (CUdevice)index);
    if (ret != CUDA_SUCCESS) {
        starlin__free(device);
        return starlin__error(STARLIN_ERR_NO_DEVICE, "CUDA: error %d while opening device %u", (int)ret,
                              index);
    }
    starlin_status_t status = starlin__device_cuda_enter(&device->base);
    if (status == STARLIN_SUCCESS) {
        status = open_streams(device);
        starlin__device_cuda_leave(&device->base);
    }
    if (status != STARLIN_SUCCESS) {
        device_destroy(&device->base);
        return status;
    }
    *device_p = &device->base;
    return STARLIN_SUCCESS;
}

static starlin_status_t device_attach_thread(starlin__device_t *device)
{
    TRY(cudaSetDevice((int)device->index), "attaching a thread to the device");
    return STARLIN_SUCCESS;
}

static void *caller_take(const starlin__device_t *device)
{
    CUcontext context = NULL;
    if (driver_load() == STARLIN_SUCCESS && driver.get(&context) == CUDA_SUCCESS && context != NULL)
        (void)driver.pop(&context);
    if (device != NULL)
        (void)starlin__device_cuda_enter(device);
    return context;
}

static void caller_give_back(void *caller)
{
    CUcontext theirs = NULL; /* ours, or what StarPU left behind */
    if (driver.get != NULL && driver.get(&theirs) == CUDA_SUCCESS && theirs != NULL)
        (void)driver.pop(&theirs);
    if (caller != NULL)
        (void)driver.push((CUcontext)caller);
}

/* A starlin__event_t * is a cudaEvent_t under another name: no record of our own to allocate. */
static starlin_status_t event_create(starlin__device_t *device, starlin__event_t **event_p)
{
    cudaEvent_t event = NULL;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    starlin__device_cuda_leave(device);
    TRY(error, "creating an event");
    *event_p = (starlin__event_t *)event;
    return STARLIN_SUCCESS;
}

static void event_destroy(starlin__device_t *device, starlin__event_t *event)
{
    if (event == NULL || starlin__device_cuda_enter(device) != STARLIN_SUCCESS)
        return;
    if (cudaEventDestroy((cudaEvent_t)event) != cudaSuccess)
        (void)cudaGetLastError();
    starlin__device_cuda_leave(device);
}

static starlin_status_t event_record(starlin__device_t *device, starlin__event_t *event,
                                     starlin__stream_t stream)
{
    RETURN_ON_DEVICE(device, cudaEventRecord((cudaEvent_t)event, starlin__device_cuda_stream(device, stream)),
                     "recording an event");
}

static starlin_status_t event_wait(starlin__device_t *device, starlin__event_t *event,
                                   starlin__stream_t stream)
{
    RETURN_ON_DEVICE(device,
                     cudaStreamWaitEvent(starlin__device_cuda_stream(device, stream), (cudaEvent_t)event, 0),
                     "making a stream wait for an event");
}

static starlin_status_t join(starlin__device_t *device, void *foreign)
{
    cudaEvent_t event = ((cuda_device_t *)device)->joined;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error = cudaEventRecord(event, (cudaStream_t)foreign);
    for (int i = 0; i < 2 && error == cudaSuccess; i++)
        error = cudaStreamWaitEvent(starlin__device_cuda_stream(device, (starlin__stream_t)i), event, 0);
    starlin__device_cuda_leave(device);
    return starlin__device_cuda_status(error, "waiting for a caller's stream");
}

static starlin_status_t event_wait_foreign(starlin__device_t *device, starlin__event_t *event, void *foreign)
{
    RETURN_ON_DEVICE(device, cudaStreamWaitEvent((cudaStream_t)foreign, (cudaEvent_t)event, 0),
                     "making a caller's stream wait");
}

/* A kernel that fills the device and follows the last one in its stream starts before a kernel of another
 * stream has heard of the event between them, and then keeps it out until its first blocks retire. */
static starlin_status_t give_way(starlin__device_t *base, starlin__event_t *event)
{
    cuda_device_t *device = (cuda_device_t *)base;
    STARLIN__FORWARD(starlin__device_cuda_enter(base));
    cudaError_t error = cudaStreamWaitEvent(device->detour, (cudaEvent_t)event, 0);
    if (error == cudaSuccess)
        error = cudaEventRecord(device->detour_end, device->detour);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(device->streams[STARLIN__STREAM_COMPUTE], device->detour_end, 0);
    starlin__device_cuda_leave(base);
    return starlin__device_cuda_status(error, "letting another stream go first");
}

static starlin_status_t event_query(starlin__device_t *device, starlin__event_t *event, bool *passed_p)
{
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error = cudaEventQuery((cudaEvent_t)event);
    starlin__device_cuda_leave(device);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        *passed_p = false;
        return STARLIN_SUCCESS;
    }
    TRY(error, "running kernels (seen when an event was queried)");
    *passed_p = true;
    return STARLIN_SUCCESS;
}

static starlin_status_t device_idle(starlin__device_t *device, bool *idle_p)
{
    cudaError_t error = cudaSuccess;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    for (int i = 0; i < 2 && error == cudaSuccess; i++)
        error = cudaStreamQuery(starlin__device_cuda_stream(device, (starlin__stream_t)i));
    starlin__device_cuda_leave(device);
    *idle_p = error == cudaSuccess;
    if (error == cudaErrorNotReady) { /* stays behind as the thread's last error */
        (void)cudaGetLastError();
        return STARLIN_SUCCESS;
    }
    return starlin__device_cuda_status(error, "running kernels (seen when the device was waited for)");
}

static starlin_status_t device_synchronize(starlin__device_t *device)
{
    bool is_idle = false;
    /* spins: a blocking wait would add the time of a wake-up */
    while (!is_idle)
        STARLIN__FORWARD(device_idle(device, &is_idle));
    return STARLIN_SUCCESS;
}

/* Memory, and copies from and to it, in the order of the compute stream. */

static starlin_status_t device_free_nbytes(starlin__device_t *device, size_t *nbytes_p)
{
    size_t total;
    RETURN_ON_DEVICE(device, cudaMemGetInfo(nbytes_p, &total), "asking for the free memory");
}

static void device_free(starlin__device_t *device, void *memory)
{
    if (memory == NULL || starlin__device_cuda_enter(device) != STARLIN_SUCCESS)
        return;
    if (cudaFree(memory) != cudaSuccess)
        (void)cudaGetLastError();
    starlin__device_cuda_leave(device);
}

static starlin_status_t device_alloc(starlin__device_t *device, size_t nbytes, void **memory_p)
{
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMPUTE);
    void *memory = NULL;
    if (nbytes == 0)
        nbytes = 1; /* an address of its own, as for malloc */
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    cudaError_t error = cudaMalloc(&memory, nbytes);
    if (error == cudaSuccess) {
        error = cudaMemsetAsync(memory, 0, nbytes, stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
        if (error != cudaSuccess)
            (void)cudaFree(memory);
    }
    starlin__device_cuda_leave(device);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory on device %u for %zu bytes", device->index,
                              nbytes);
    }
    TRY(error, "allocating device memory");
    *memory_p = memory;
    return STARLIN_SUCCESS;
}

static starlin_status_t device_copy(starlin__device_t *device, void *dst, size_t dst_pitch, const void *src,
                                    size_t src_pitch, size_t width_nbytes, size_t rows)
{
    cudaStream_t stream = starlin__device_cuda_stream(device, STARLIN__STREAM_COMPUTE);
    cudaError_t error;
    if (width_nbytes == 0 || rows == 0)
        return STARLIN_SUCCESS;
    STARLIN__FORWARD(starlin__device_cuda_enter(device));
    if (rows == 1 || (dst_pitch == width_nbytes && src_pitch == width_nbytes))
        error = cudaMemcpyAsync(dst, src, width_nbytes * rows, cudaMemcpyDefault, stream);
    else
        error =
            cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width_nbytes, rows, cudaMemcpyDefault, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    starlin__device_cuda_leave(device);
    return starlin__device_cuda_status(error, "copying between host and device");
}

static const starlin__device_ops_t ops = {
    .name = "cuda",
    .count = device_count,
    .busid = device_busid,
    .create = device_create,
    .destroy = device_destroy,
    .attach_thread = device_attach_thread,
    .caller_take = caller_take,
    .caller_give_back = caller_give_back,
    .alloc = device_alloc,
    .free = device_free,
    .free_nbytes = device_free_nbytes,
    .copy = device_copy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .give_way = give_way,
    .event_query = event_query,
    .join = join,
    .event_wait_foreign = event_wait_foreign,
    .idle = device_idle,
    .synchronize = device_synchronize,
};

const starlin__device_ops_t *const starlin__device_cuda = &ops;
