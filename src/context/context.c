/* SPDX-License-Identifier: BSD-3-Clause */
/* The context: opens everything in an order in which each step can be undone, and closes it in reverse.
 * Ranks compare what they opened before any of them returns, so that a rank which could not is an error
 * on every rank. */
#define _GNU_SOURCE
#include <starpu.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "context/starpu.h"
#include "graph/graph.h"
#include "policy/policy.h"
#include "record/ranges.h"

enum { TIMELINE_SPANS = 1 << 16 };

/* StarPU is a runtime of the process, so there is one context at a time. */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static starlin_context_t *current;

/* --- opening, step by step */

static starlin_status_t open_ranks(starlin_context_t *context, const starlin_context_options_t *options)
{
    if (options->use_mpi && starlin__bootstrap_mpi_create == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "this build has no MPI (STARLIN_USE_MPI=OFF)");
    if (options->use_mpi)
        STARLIN__FORWARD(starlin__bootstrap_mpi_create(options->mpi_comm, context->config.timeout_ms,
                                                       &context->bootstrap));
    else
        STARLIN__FORWARD(starlin__bootstrap_self_create(&context->bootstrap));
    return starlin__bootstrap_locate(context->bootstrap, context->config.timeout_ms);
}

static starlin_status_t open_topology(starlin_context_t *context)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;

    STARLIN__FORWARD(starlin__topology_create(&context->topology));
    STARLIN__FORWARD(starlin__topology_share(context->topology, (unsigned)bootstrap->local_rank,
                                             (unsigned)bootstrap->local_size, &context->share));
    if (context->owns_starpu && context->config.bind) {
        STARLIN__FORWARD(starlin__topology_binding_save(context->topology, &context->caller_binding));
        /* StarPU looks at the binding of its starter: the whole machine, and the cores by number */
        starlin__topology_bind_all(context->topology);
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t open_compute(starlin_context_t *context)
{
    const starlin__compute_ops_t *ops = NULL;
    unsigned gpu = 0, nthreads;
    bool on_device;

    STARLIN__FORWARD(starlin__compute_find(context->config.compute, &ops));
    context->info.compute = ops->name;
    on_device = ops->space == STARLIN__DEVICE;
    if (on_device && context->owns_starpu)
        STARLIN__FORWARD(starlin__context_choose_gpu(context, &gpu));
    if (context->owns_starpu)
        STARLIN__FORWARD(starlin__context_start_starpu(context, on_device, gpu));
    STARLIN__FORWARD(starlin__context_count_workers(context, on_device));
    if (on_device) {
        if (!context->owns_starpu)
            gpu = (unsigned)starpu_worker_get_devid(starpu_worker_get_by_type(STARPU_CUDA_WORKER, 0));
        context->codelets->attach_workers();
        STARLIN__FORWARD(starlin__device_cuda->create(gpu, &context->device));
        for (int i = 0; i < 2; i++)
            STARLIN__FORWARD(context->device->ops->event_create(context->device, &context->stream_end[i]));
    }
    if (context->caller_binding != NULL)
        starlin__topology_bind_share(context->topology, &context->share);
    nthreads = on_device ? 1 : context->share.ncores / context->info.nworkers;
    context->info.nblas_threads = nthreads > 0 ? nthreads : 1;
    return ops->create(context->device, &context->config, starpu_worker_get_count(),
                       context->info.nblas_threads, &context->compute);
}

static void attach_progress(void *arg)
{
    starlin_context_t *context = arg;

    if (context->caller_binding != NULL)
        starlin__topology_bind_pu(context->topology, (unsigned)context->share.comm_pu);
    if (context->device != NULL)
        (void)context->device->ops->attach_thread(context->device);
    pthread_setname_np(pthread_self(), "starlin-comm");
}

static void progress_failed(void *arg, const starlin__notice_t *notice)
{
    starlin__context_fail(arg, notice);
}

/* Ranks that share a core wait for each other, so one that only looks must let go of the core, which
 * sched_yield() does not. Medians on 2 cores, 4 small chunks: 4 ranks 12 to 16 ms without pauses and 3.4 to 7
 * with them, 3 ranks 12 and 8; 5 and 200 us were worse. */
static const struct timespec shared_core_pause = {.tv_nsec = 50000};

/* StarPU may still call a hook that has just been taken back, so what it leads to is behind a lock. */
static pthread_rwlock_t lent_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static starlin_context_t *lent_to;

/* A worker without a task lends its time. Returns whether it may sleep instead. */
static unsigned worker_idles(void *arg)
{
    bool advances, shares_core;

    (void)arg;
    if (pthread_rwlock_tryrdlock(&lent_lock) != 0)
        return 1;
    advances = lent_to != NULL && starlin__progress_advance(lent_to->progress);
    shares_core = advances && lent_to->share.oversubscribed;
    pthread_rwlock_unlock(&lent_lock);
    if (shares_core)
        nanosleep(&shared_core_pause, NULL);
    return !advances;
}

static void lend(starlin_context_t *context)
{
    pthread_rwlock_wrlock(&lent_lock);
    lent_to = context;
    pthread_rwlock_unlock(&lent_lock);
    context->idle_hook = starpu_progression_hook_register(worker_idles, NULL);
}

static void lend_no_more(starlin_context_t *context)
{
    if (context->idle_hook < 0)
        return;
    pthread_rwlock_wrlock(&lent_lock);
    lent_to = NULL;
    pthread_rwlock_unlock(&lent_lock);
    starpu_progression_hook_deregister(context->idle_hook);
}

/* Where workers go through the rounds, the progress thread only looks after what becomes due during a long
 * gemm. Rarely, if it shares a worker's core: a collective that moves data beside a gemm on one core costs
 * both their caches. */
static double progress_pause_us(const starlin_context_t *context)
{
    if (context->share.comm_has_core)
        return 100.0;                               /* some core is free, though not a known one */
    return context->owns_starpu ? 20000.0 : 1000.0; /* an application's tasks may be longer than any gemm */
}

static starlin_status_t open_comm(starlin_context_t *context)
{
    starlin__comm_setup_t setup = {.config = &context->config,
                                   .bootstrap = context->bootstrap,
                                   .device = context->device,
                                   .parameters = ""};
    starlin__progress_setup_t progress = {.bootstrap = context->bootstrap,
                                          .timeout_ms = context->config.timeout_ms,
                                          /* an application's StarPU keeps no core free for it */
                                          .has_core =
                                              context->share.comm_has_core && context->caller_binding != NULL,
                                          .pause_us = progress_pause_us(context),
                                          .attach = attach_progress,
                                          .failed = progress_failed,
                                          .arg = context};

    STARLIN__FORWARD(starlin__comm_create(&setup, &context->comm));
    STARLIN__FORWARD(starlin__timeline_create(TIMELINE_SPANS, &context->timeline));
    progress.comm = context->comm;
    progress.device = context->device;
    STARLIN__FORWARD(starlin__progress_create(&progress, &context->progress));
    lend(context);
    return STARLIN_SUCCESS;
}

static void describe(starlin_context_t *context)
{
    starlin_context_info_t *info = &context->info;
    int version[3];

    starpu_get_version(&version[0], &version[1], &version[2]);
    snprintf(context->starpu_version, sizeof context->starpu_version, "%d.%d.%d", version[0], version[1],
             version[2]);
    if (gethostname(context->host, sizeof context->host - 1) != 0)
        snprintf(context->host, sizeof context->host, "unknown");
    info->comm = context->comm->ops->name;
    info->compute_version = context->compute->version;
    info->compute_warning = context->compute->warning[0] != '\0' ? context->compute->warning : NULL;
    info->policy = starlin__policy_running();
    info->starpu_version = context->starpu_version;
    info->host = context->host;
    info->device = context->device != NULL ? context->device->model : "CPU";
    info->comm_ranks = (unsigned)context->comm->nranks;
    info->adopted = !context->owns_starpu;
    info->binding = context->caller_binding != NULL ? context->share.text
                    : context->config.bind          ? "by the application's StarPU"
                                                    : context->config.no_bind_reason;
}

/* After each step that can fail on one rank alone: does every rank go on? Returns this rank's status if it
 * failed, else an error if another rank did. */
static starlin_status_t agree_opened(starlin_context_t *context, starlin_status_t status)
{
    starlin__fields_t fields;
    starlin_status_t agreement;
    char text[1024]; /* a list of policies is long */

    snprintf(text, sizeof text, "%s", starlin_last_error());
    starlin__fields_open(&fields, "starlin_context_create");
    starlin__fields_add(&fields, "the context", status == STARLIN_SUCCESS ? "open" : "refused (%.190s)",
                        text);
    starlin__fields_add(&fields, "the compute backend", "%s",
                        context->info.compute != NULL ? context->info.compute : "none");
    starlin__fields_add(&fields, "the communicator", "%s", context->config.comm);
    agreement = starlin__agree(context->bootstrap, &fields, context->config.timeout_ms);
    return status != STARLIN_SUCCESS ? starlin__error(status, "%s", text) : agreement;
}

static void unclaim(const starlin_context_t *context)
{
    pthread_mutex_lock(&current_lock);
    if (current == context)
        current = NULL;
    pthread_mutex_unlock(&current_lock);
}

static void close_all(starlin_context_t *context)
{
    lend_no_more(context);
    starlin__progress_destroy(context->progress);
    starlin__comm_destroy(context->comm);
    starlin__activity_close(context->activity);
    if (context->compute != NULL)
        context->compute->ops->destroy(context->compute);
    for (int i = 0; i < 2; i++) {
        if (context->stream_end[i] != NULL)
            context->device->ops->event_destroy(context->device, context->stream_end[i]);
    }
    const starlin__device_ops_t *device_ops = context->device != NULL ? context->device->ops : NULL;
    if (device_ops != NULL)
        device_ops->destroy(context->device);
    if (context->starpu_started) {
        void *caller = device_ops != NULL ? device_ops->caller_take(NULL) : NULL;
        starpu_shutdown();
        if (device_ops != NULL)
            device_ops->caller_give_back(caller);
    }
    starlin__timeline_destroy(context->timeline);
    if (context->caller_binding != NULL)
        starlin__topology_binding_restore(context->topology, context->caller_binding);
    starlin__share_release(&context->share);
    starlin__topology_destroy(context->topology);
    if (context->bootstrap != NULL)
        context->bootstrap->ops->destroy(context->bootstrap);
    starlin__graph_close(context);
    pthread_cond_destroy(&context->idle);
    pthread_mutex_destroy(&context->lock);
    unclaim(context);
    starlin__free(context);
}

/* `validity`: what this rank thinks of its options; the other ranks must hear of it. */
static starlin_status_t open_all(starlin_context_t *context, const starlin_context_options_t *options,
                                 starlin_status_t validity)
{
    char text[1024];
    starlin_status_t status;

    snprintf(text, sizeof text, "%s", validity != STARLIN_SUCCESS ? starlin_last_error() : "");
    starlin__ranges_open(validity == STARLIN_SUCCESS && context->config.nvtx);
    STARLIN__FORWARD(open_ranks(context, options));
    if (validity != STARLIN_SUCCESS)
        return agree_opened(context, starlin__error(validity, "%s", text));
    status = open_topology(context);
    if (status == STARLIN_SUCCESS)
        status = open_compute(context);
    STARLIN__FORWARD(agree_opened(context, status));
    STARLIN__FORWARD(agree_opened(context, open_comm(context)));
    describe(context);
    return STARLIN_SUCCESS;
}

static starlin_status_t claim(starlin_context_t *context)
{
    bool free_place;
    pthread_mutex_lock(&current_lock);
    free_place = current == NULL;
    if (free_place)
        current = context;
    pthread_mutex_unlock(&current_lock);
    return free_place ? STARLIN_SUCCESS
                      : starlin__error(STARLIN_ERR_BUSY, "this process has a context already");
}

/* Can this rank open a context at all? `copied`: how its options were taken. */
static starlin_status_t check_options(starlin_context_t *context, const starlin_context_options_t *options,
                                      starlin_status_t copied)
{
    starlin__config_t config;

    /* for the exchange in which the others hear of a refusal */
    context->config = (starlin__config_t){.comm = "?", .timeout_ms = 300000};
    STARLIN__FORWARD(copied);
    STARLIN__FORWARD(starlin__config_load(options, &config));
    context->config = config;
    STARLIN__FORWARD(starlin__comm_check(config.comm));
    return claim(context);
}

starlin_status_t starlin_context_create(const starlin_context_options_t *options,
                                        starlin_context_t **context_p)
{
    starlin_context_options_t known;
    starlin_context_t *context;
    starlin_status_t status;

    if (context_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context_p is NULL");
    status = starlin__struct_copy(&known, sizeof known, options, "options");
    if (status == STARLIN_ERR_INVALID) /* no rank to tell */
        return status;
    context = starlin__alloc(sizeof *context);
    if (context == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "context");
    context->history = STARLIN__HASH_INIT;
    context->codelets = &starlin__codelets;
    context->idle_hook = -1;
    context->owns_starpu = !starpu_is_initialized();
    pthread_mutex_init(&context->lock, NULL);
    pthread_cond_init(&context->idle, NULL);
    status = open_all(context, &known, check_options(context, &known, status));
    if (status != STARLIN_SUCCESS) {
        close_all(context);
        return status;
    }
    *context_p = context;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_context_destroy(starlin_context_t *context)
{
    starlin_status_t status;

    if (context == NULL)
        return STARLIN_SUCCESS;
    if (starlin__graph_is_grouping(context))
        return starlin__error(STARLIN_ERR_INVALID,
                              "a group of operators is open: starlin_group_end comes first");
    if (context->nmatrices > 0)
        return starlin__error(STARLIN_ERR_BUSY, "%u matrices of this context still exist",
                              context->nmatrices);
    status = starlin_context_wait(context);
    close_all(context);
    return status;
}

int starlin_context_rank(const starlin_context_t *context)
{
    return context != NULL ? context->bootstrap->rank : 0;
}

uint64_t starlin_context_ntasks(const starlin_context_t *context)
{
    return context != NULL ? context->ntasks : 0;
}

int starlin_context_nranks(const starlin_context_t *context)
{
    return context != NULL ? context->bootstrap->nranks : 0;
}

starlin_status_t starlin_context_get_info(const starlin_context_t *context, starlin_context_info_t *info_p)
{
    if (context == NULL || info_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", context == NULL ? "context" : "info_p");
    return starlin__struct_fill(info_p, &context->info, sizeof context->info, "info_p");
}
