/* SPDX-License-Identifier: BSD-3-Clause */
/* Cores and GPUs of the node, shared out among its ranks. The only file that includes hwloc.
 *
 * The topology is loaded as StarPU loads it: what the cgroup forbids is left out, the current binding is
 * ignored. So logical PU numbers mean the same here and in starpu_conf's workers_bindid. One PU stands for
 * each core; its SMT siblings stay idle. Every rank computes the shares of all ranks, without exchange. */
#define _POSIX_C_SOURCE 200809L

#include "machine/topology.h"

#include <hwloc.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct core {
    unsigned number; /* logical index of the core, for people */
    hwloc_obj_t pu;  /* its first allowed PU */
    hwloc_obj_t object;
} core_t;

struct starlin__topology {
    hwloc_topology_t hwloc;
    hwloc_bitmap_t allowed; /* operating system's numbers of the PUs that may be used */
    unsigned ncores;
    core_t *cores;
};

struct starlin__binding {
    hwloc_bitmap_t cpuset;
};

/* ------------------------------------------------------------- detection */

/* Drivers' components would start CUDA before StarPU does; libpciaccess leaks, and Linux tells the same
 * through sysfs. */
static int hwloc_load(hwloc_topology_t hwloc, const char *description)
{
    static const char *const unwanted[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "pci"};

    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
        hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (description != NULL) {
        int ret = description[0] == '<'
                      ? hwloc_topology_set_xmlbuffer(hwloc, description, (int)strlen(description) + 1)
                      : hwloc_topology_set_synthetic(hwloc, description);

        if (ret != 0)
            return ret;
    }
    return hwloc_topology_load(hwloc);
}

/* A container may hide its cgroup from hwloc, but not from the kernel: ask for everything and see what is
 * granted. The thread's binding is put back. */
static void allowed_probe(hwloc_topology_t hwloc, hwloc_bitmap_t allowed)
{
    hwloc_bitmap_t saved, granted;

    if (!hwloc_topology_is_thissystem(hwloc))
        return;
    saved = hwloc_bitmap_alloc();
    granted = hwloc_bitmap_alloc();
    if (saved != NULL && granted != NULL && hwloc_get_cpubind(hwloc, saved, HWLOC_CPUBIND_THREAD) == 0 &&
        hwloc_set_cpubind(hwloc, hwloc_topology_get_complete_cpuset(hwloc), HWLOC_CPUBIND_THREAD) == 0) {
        if (hwloc_get_cpubind(hwloc, granted, HWLOC_CPUBIND_THREAD) == 0 &&
            hwloc_bitmap_intersects(granted, allowed))
            hwloc_bitmap_and(allowed, allowed, granted);
        hwloc_set_cpubind(hwloc, saved, HWLOC_CPUBIND_THREAD);
    }
    hwloc_bitmap_free(saved);
    hwloc_bitmap_free(granted);
}

/* Cores (PUs, where no cores are known) with at least one allowed PU, in logical order. */
static starlin_status_t cores_collect(starlin__topology_t *topology)
{
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int count = hwloc_get_nbobjs_by_type(topology->hwloc, type);
    hwloc_obj_t object = NULL;

    topology->cores = starlin__alloc((size_t)(count > 0 ? count : 0) * sizeof(*topology->cores));
    if (topology->cores == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for a table of %d cores", count);
    while ((object = hwloc_get_next_obj_by_type(topology->hwloc, type, object)) != NULL) {
        hwloc_obj_t pu = NULL;

        while ((pu = hwloc_get_next_obj_inside_cpuset_by_type(topology->hwloc, object->cpuset, HWLOC_OBJ_PU,
                                                              pu)) != NULL)
            if (hwloc_bitmap_isset(topology->allowed, pu->os_index))
                break;
        if (pu != NULL)
            topology->cores[topology->ncores++] =
                (core_t){.number = object->logical_index, .pu = pu, .object = object};
    }
    if (topology->ncores == 0)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "hwloc found no core that may be used");
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__topology_create_described(const char *description, starlin__topology_t **topology_p)
{
    starlin__topology_t *topology = starlin__alloc(sizeof(*topology));
    starlin_status_t status;

    if (topology == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the topology");
    if (hwloc_topology_init(&topology->hwloc) != 0) {
        topology->hwloc = NULL;
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "hwloc could not be started");
        goto fail;
    }
    if (hwloc_load(topology->hwloc, description) != 0) {
        status = starlin__error(description != NULL ? STARLIN_ERR_INVALID : STARLIN_ERR_UNSUPPORTED,
                                "hwloc could not load the topology: %s", strerror(errno));
        goto fail;
    }
    topology->allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology->hwloc));
    if (topology->allowed == NULL) {
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the set of allowed cores");
        goto fail;
    }
    allowed_probe(topology->hwloc, topology->allowed);
    status = cores_collect(topology);
    if (status != STARLIN_SUCCESS)
        goto fail;
    *topology_p = topology;
    return STARLIN_SUCCESS;
fail:
    starlin__topology_destroy(topology);
    return status;
}

starlin_status_t starlin__topology_create(starlin__topology_t **topology_p)
{
    return starlin__topology_create_described(NULL, topology_p);
}

void starlin__topology_destroy(starlin__topology_t *topology)
{
    if (topology == NULL)
        return;
    hwloc_bitmap_free(topology->allowed);
    if (topology->hwloc != NULL)
        hwloc_topology_destroy(topology->hwloc);
    starlin__free(topology->cores);
    starlin__free(topology);
}

unsigned starlin__topology_ncores(const starlin__topology_t *topology)
{
    return topology->ncores;
}

/* ---------------------------------------------------------------- shares */

/* First core and number of cores of a rank; with fewer cores than ranks, one core in turn. */
static void share_range(unsigned ncores, unsigned local_rank, unsigned local_size, unsigned *first_p,
                        unsigned *count_p)
{
    uint64_t first = (uint64_t)local_rank * ncores / local_size;
    uint64_t end = ((uint64_t)local_rank + 1) * ncores / local_size;

    if (ncores < local_size) {
        first = local_rank % ncores;
        end = first + 1;
    }
    *first_p = (unsigned)first;
    *count_p = (unsigned)(end - first);
}

/* "cores 0-3,6, communication on 7" */
static void share_describe(const core_t *cores, unsigned comm_core, starlin__share_t *share)
{
    size_t size = sizeof(share->text) - 48, used; /* room for the end of the text */

    used = (size_t)snprintf(share->text, size, "core%s ", share->ncores > 1 ? "s" : "");
    for (unsigned i = 0; i < share->ncores && used < size;) {
        unsigned last = i;

        while (last + 1 < share->ncores && cores[last + 1].number == cores[last].number + 1)
            last++;
        used += (size_t)snprintf(share->text + used, size - used, last > i ? "%s%u-%u" : "%s%u",
                                 i > 0 ? "," : "", cores[i].number, cores[last].number);
        i = last + 1;
    }
    if (used >= size)
        used = size - 1;
    snprintf(share->text + used, sizeof(share->text) - used, ", communication on %u%s",
             cores[comm_core].number,
             share->oversubscribed  ? " (shared with other ranks)"
             : share->comm_has_core ? ""
                                    : " (shared)");
}

starlin_status_t starlin__topology_share(const starlin__topology_t *topology, unsigned local_rank,
                                         unsigned local_size, starlin__share_t *share_p)
{
    starlin__share_t share = {0};
    const core_t *cores;
    unsigned first, count;

    if (local_size == 0 || local_rank >= local_size)
        return starlin__error(STARLIN_ERR_INVALID, "local rank %u of %u: must be below the number of ranks",
                              local_rank, local_size);
    share_range(topology->ncores, local_rank, local_size, &first, &count);
    cores = topology->cores + first;
    share.comm_has_core = count >= 3;
    share.ncores = share.comm_has_core ? count - 1 : count;
    share.oversubscribed = topology->ncores < local_size;
    share.comm_pu = (int)cores[count - 1].pu->logical_index;
    share.pus = starlin__alloc(share.ncores * sizeof(*share.pus));
    if (share.pus == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for a share of %u cores", share.ncores);
    for (unsigned i = 0; i < share.ncores; i++)
        share.pus[i] = cores[i].pu->logical_index;
    share_describe(cores, count - 1, &share);
    *share_p = share;
    return STARLIN_SUCCESS;
}

void starlin__share_release(starlin__share_t *share)
{
    starlin__free(share->pus);
    share->pus = NULL;
}

/* --------------------------------------------------------------- binding */

static void bind_cpuset(const starlin__topology_t *topology, hwloc_const_cpuset_t cpuset, const char *what)
{
    if (hwloc_set_cpubind(topology->hwloc, cpuset, HWLOC_CPUBIND_THREAD) != 0)
        starlin__log("binding to %s was refused: %s", what, strerror(errno));
}

/* Adds the allowed PUs of the core around a PU: helper threads that inherit the binding may use siblings. */
static void cpuset_add_core(const starlin__topology_t *topology, hwloc_bitmap_t cpuset, unsigned pu)
{
    for (unsigned i = 0; i < topology->ncores; i++)
        if (topology->cores[i].pu->logical_index == pu)
            hwloc_bitmap_or(cpuset, cpuset, topology->cores[i].object->cpuset);
    hwloc_bitmap_and(cpuset, cpuset, topology->allowed);
}

void starlin__topology_bind_share(const starlin__topology_t *topology, const starlin__share_t *share)
{
    hwloc_bitmap_t cpuset = hwloc_bitmap_alloc();

    if (cpuset == NULL) {
        starlin__log("binding to %s failed: out of memory", share->text);
        return;
    }
    for (unsigned i = 0; i < share->ncores; i++)
        cpuset_add_core(topology, cpuset, share->pus[i]);
    cpuset_add_core(topology, cpuset, (unsigned)share->comm_pu);
    bind_cpuset(topology, cpuset, share->text);
    hwloc_bitmap_free(cpuset);
}

void starlin__topology_bind_pu(const starlin__topology_t *topology, unsigned pu)
{
    hwloc_obj_t object = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PU, pu);
    char what[32];

    if (object == NULL) {
        starlin__log("binding to PU %u was refused: there is none", pu);
        return;
    }
    snprintf(what, sizeof(what), "PU %u", pu);
    bind_cpuset(topology, object->cpuset, what);
}

void starlin__topology_bind_all(const starlin__topology_t *topology)
{
    bind_cpuset(topology, topology->allowed, "all cores");
}

starlin_status_t starlin__topology_binding_save(const starlin__topology_t *topology,
                                                starlin__binding_t **binding_p)
{
    starlin__binding_t *binding = starlin__alloc(sizeof(*binding));
    starlin_status_t status;

    if (binding == NULL || (binding->cpuset = hwloc_bitmap_alloc()) == NULL) {
        starlin__free(binding);
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the binding of the thread");
    }
    if (hwloc_get_cpubind(topology->hwloc, binding->cpuset, HWLOC_CPUBIND_THREAD) != 0) {
        status = starlin__error(STARLIN_ERR_UNSUPPORTED, "the binding of the thread cannot be read: %s",
                                strerror(errno));
        hwloc_bitmap_free(binding->cpuset);
        starlin__free(binding);
        return status;
    }
    *binding_p = binding;
    return STARLIN_SUCCESS;
}

void starlin__topology_binding_restore(const starlin__topology_t *topology, starlin__binding_t *binding)
{
    if (binding == NULL)
        return;
    bind_cpuset(topology, binding->cpuset, "what it was before");
    hwloc_bitmap_free(binding->cpuset);
    starlin__free(binding);
}

/* ------------------------------------------------------------------ GPUs */

/* The PUs near a GPU; the whole machine where that is not known. */
static hwloc_const_cpuset_t gpu_cpuset(const starlin__topology_t *topology, const char *busid)
{
    hwloc_obj_t object = hwloc_get_pcidev_by_busidstring(topology->hwloc, busid);

    if (object != NULL)
        object = hwloc_get_non_io_ancestor_obj(topology->hwloc, object);
    if (object == NULL || object->cpuset == NULL)
        object = hwloc_get_root_obj(topology->hwloc);
    return object->cpuset;
}

/* How many of a rank's cores are near the GPU, weighed against how many others are: 1 is a GPU with exactly
 * the cores of this rank around it, 0 one that is elsewhere. */
static double gpu_affinity(const starlin__topology_t *topology, const char *busid, unsigned local_rank,
                           unsigned local_size)
{
    hwloc_const_cpuset_t cpuset = gpu_cpuset(topology, busid);
    unsigned first, count, near_share = 0, near_all = 0;

    share_range(topology->ncores, local_rank, local_size, &first, &count);
    for (unsigned i = 0; i < topology->ncores; i++) {
        bool near = hwloc_bitmap_isset(cpuset, topology->cores[i].pu->os_index);

        near_all += near;
        near_share += near && i >= first && i < first + count;
    }
    return near_share == 0 ? 0 : (double)near_share / (near_all + count - near_share);
}

/* The nearest of the GPUs with the fewest users below `limit`; ngpus when a near one is required and there
 * is none. */
static unsigned gpu_pick(const starlin__topology_t *topology, const char *const *busids, unsigned ngpus,
                         const unsigned *users, unsigned limit, unsigned local_rank, unsigned local_size,
                         bool near_only)
{
    unsigned best = ngpus;
    double best_affinity = 0;

    for (unsigned gpu = 0; gpu < ngpus; gpu++) {
        double affinity = gpu_affinity(topology, busids[gpu], local_rank, local_size);

        if (users[gpu] >= limit || (near_only && affinity <= 0))
            continue;
        if (best == ngpus || users[gpu] < users[best] ||
            (users[gpu] == users[best] && affinity > best_affinity)) {
            best = gpu;
            best_affinity = affinity;
        }
    }
    return best;
}

/* Ranks with a free GPU near them choose first, in order; the others take what is left. */
starlin_status_t starlin__topology_gpu(const starlin__topology_t *topology, const char *const *busids,
                                       unsigned ngpus, unsigned local_rank, unsigned local_size,
                                       unsigned *gpu_p)
{
    unsigned *users, *chosen, limit;

    if (ngpus == 0)
        return starlin__error(STARLIN_ERR_NO_DEVICE, "no GPU is visible");
    if (local_size == 0 || local_rank >= local_size)
        return starlin__error(STARLIN_ERR_INVALID, "local rank %u of %u: must be below the number of ranks",
                              local_rank, local_size);
    users = starlin__alloc(((size_t)ngpus + local_size) * sizeof(*users));
    if (users == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory to share out %u GPUs", ngpus);
    chosen = users + ngpus;
    limit = (local_size - 1) / ngpus + 1;
    for (unsigned rank = 0; rank < local_size; rank++) {
        chosen[rank] = gpu_pick(topology, busids, ngpus, users, limit, rank, local_size, true);
        if (chosen[rank] < ngpus)
            users[chosen[rank]]++;
    }
    for (unsigned rank = 0; rank < local_size; rank++) {
        if (chosen[rank] < ngpus)
            continue;
        chosen[rank] = gpu_pick(topology, busids, ngpus, users, limit, rank, local_size, false);
        users[chosen[rank]]++;
    }
    *gpu_p = chosen[local_rank];
    starlin__free(users);
    return STARLIN_SUCCESS;
}
