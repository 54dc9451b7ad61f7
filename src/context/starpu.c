/* SPDX-License-Identifier: BSD-3-Clause */
/* How a context starts StarPU: which cores and which GPU its workers get, and which policy. */
#define _GNU_SOURCE
#include <errno.h>
#include <starpu.h>
#include <stdio.h>

#include "context/starpu.h"
#include "policy/policy.h"

/* One worker that uses all cores of the rank through BLAS threads, unless STARPU_NCPU asks for more workers:
 * a few large chunks cannot feed one worker per core. */
static void configure_cpus(starlin_context_t *context, struct starpu_conf *conf, bool on_device)
{
    const starlin__share_t *share = &context->share;

    if (starlin__environment_get("STARPU_NCPU") == NULL && starlin__environment_get("STARPU_NCPUS") == NULL)
        conf->ncpus = on_device ? 0 : 1;
    if (!context->config.bind)
        return;
    conf->use_explicit_workers_bindid = 1;
    for (unsigned i = 0; i < STARPU_NMAXWORKERS; i++)
        conf->workers_bindid[i] = share->pus[i % share->ncores];
}

/* StarPU's files about a machine's buses and kernels: a GPU rank keeps its own, since it sees its own GPU
 * only. */
static starlin_status_t configure_files(starlin_context_t *context, starlin__environment_t *environment)
{
    char name[64], path[512];

    snprintf(name, sizeof name, "starpu-%d.%d-rank%d", STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION,
             context->bootstrap->local_rank);
    if (starlin__environment_get("STARPU_PERF_MODEL_DIR") != NULL ||
        !starlin__environment_cache(name, path, sizeof path))
        return STARLIN_SUCCESS;
    return starlin__environment_default(environment, "STARPU_HOME", path);
}

/* Where the user has not said otherwise, StarPU starts without a word. */
static starlin_status_t configure_environment(starlin_context_t *context, struct starpu_conf *conf,
                                              bool on_device, starlin__environment_t *environment)
{
    STARLIN__FORWARD(starlin__policy_select(context->config.policy, conf, environment));
    STARLIN__FORWARD(starlin__environment_default(environment, "STARPU_SILENT", "1"));
    return on_device ? configure_files(context, environment) : STARLIN_SUCCESS;
}

starlin_status_t starlin__context_choose_gpu(starlin_context_t *context, unsigned *gpu_p)
{
    enum { MOST_GPUS = 32, BUSID = 32 };
    static char busids[MOST_GPUS][BUSID];
    const char *pointers[MOST_GPUS];
    unsigned ngpus = starlin__device_cuda->count(), local_size = (unsigned)context->bootstrap->local_size;

    ngpus = ngpus < MOST_GPUS ? ngpus : MOST_GPUS;
    if (local_size > ngpus && !context->config.share_gpu)
        return starlin__error(
            STARLIN_ERR_NO_DEVICE,
            "%u ranks on this node and %u GPUs: a rank needs a GPU of its own; STARLIN_SHARE_GPU=1 lets "
            "ranks share (right results, speed means nothing)",
            local_size, ngpus);
    for (unsigned i = 0; i < ngpus; i++) {
        STARLIN__FORWARD(starlin__device_cuda->busid(i, busids[i], BUSID));
        pointers[i] = busids[i];
    }
    return starlin__topology_gpu(context->topology, pointers, ngpus, (unsigned)context->bootstrap->local_rank,
                                 local_size, gpu_p);
}

starlin_status_t starlin__context_start_starpu(starlin_context_t *context, bool on_device, unsigned gpu)
{
    starlin__environment_t environment = {0};
    struct starpu_conf conf;
    starlin_status_t status;
    void *caller;
    int ret = 0;

    starpu_conf_init(&conf);
    configure_cpus(context, &conf, on_device);
    conf.nopencl = 0;
    /* A pause between looks for work is idle time of a GPU, and of a collective that idle workers test;
     * without it two ranks on two cores came 1 to 2% closer to a hand-written loop. Workers that share cores
     * need it. */
    if (starlin__environment_get("STARPU_BACKOFF_MAX") == NULL && !context->share.oversubscribed)
        conf.driver_spinning_backoff_min = conf.driver_spinning_backoff_max = 1;
    conf.ncuda = on_device ? -1 : 0;
    if (on_device) {
        conf.ncuda = 1;
        conf.use_explicit_workers_cuda_gpuid = 1;
        for (unsigned i = 0; i < STARPU_NMAXWORKERS; i++)
            conf.workers_cuda_gpuid[i] = gpu;
    }
    caller = on_device ? starlin__device_cuda->caller_take(NULL) : NULL;
    status = configure_environment(context, &conf, on_device, &environment);
    if (status == STARLIN_SUCCESS)
        ret = starpu_init(&conf);
    starlin__environment_restore(&environment);
    if (on_device)
        starlin__device_cuda->caller_give_back(caller);
    STARLIN__FORWARD(status);
    if (ret != 0)
        return starlin__error(STARLIN_ERR_RUNTIME, "starpu_init returned %d%s", ret,
                              ret == -ENODEV ? ": no worker (STARPU_NCPU, STARPU_NCUDA)" : "");
    context->starpu_started = true;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__context_count_workers(starlin_context_t *context, bool on_device)
{
    enum starpu_worker_archtype type = on_device ? STARPU_CUDA_WORKER : STARPU_CPU_WORKER;
    int nworkers = starpu_worker_get_count_by_type(type), worker;

    if (nworkers < 1)
        return starlin__error(STARLIN_ERR_NO_DEVICE,
                              "StarPU runs no %s worker, which compute backend %s needs",
                              on_device ? "CUDA" : "CPU", context->info.compute);
    context->info.nworkers = (unsigned)nworkers;
    worker = starpu_worker_get_by_type(type, 0);
    for (int i = 1; on_device && i < nworkers; i++) {
        if (starpu_worker_get_devid(starpu_worker_get_by_type(type, i)) != starpu_worker_get_devid(worker))
            return starlin__error(STARLIN_ERR_UNSUPPORTED,
                                  "the application's StarPU has workers on several GPUs: one process per "
                                  "device (STARPU_NCUDA=1, STARPU_WORKERS_CUDAID)");
    }
    context->memory_node = starpu_worker_get_memory_node((unsigned)worker);
    return STARLIN_SUCCESS;
}
