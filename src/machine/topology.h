/* SPDX-License-Identifier: BSD-3-Clause */
/* Cores and memory of this node (hwloc), shared out among the local ranks. Only topology.c includes hwloc. */
#ifndef STARLIN_TOPOLOGY_H
#define STARLIN_TOPOLOGY_H

#include "base/base.h"

typedef struct starlin__topology starlin__topology_t;

/* This rank's share of the node. PU numbers are hwloc's logical indices, as StarPU's bind ids are. */
typedef struct starlin__share {
    unsigned ncores;     /* cores for gemms, >= 1 */
    unsigned *pus;       /* one PU of each of those cores */
    int comm_pu;         /* PU of the communication thread: a core of its own where the share has
                            three or more, else the last of `pus` */
    bool comm_has_core;  /* comm_pu is not among `pus` */
    bool oversubscribed; /* fewer cores than local ranks: cores are shared between ranks */
    char text[128];      /* for people: "cores 0-3, communication on 4" */
} starlin__share_t;

/* Detects the machine: all cores that the cgroup and the operating system allow, whatever the current
 * thread is bound to. */
starlin_status_t starlin__topology_create(starlin__topology_t **topology_p);
/* The same for a machine that is described by hwloc's synthetic notation ("pack:2 core:8 pu:2") or XML. */
starlin_status_t starlin__topology_create_described(const char *description,
                                                    starlin__topology_t **topology_p);
void starlin__topology_destroy(starlin__topology_t *topology);

/* Number of allowed cores. */
unsigned starlin__topology_ncores(const starlin__topology_t *topology);

/* Splits the cores into local_size contiguous, disjoint, nearly equal shares in logical order (so neighbours
 * share caches and memory) and returns share local_rank. The pure part is testable with a synthetic hwloc
 * topology. */
starlin_status_t starlin__topology_share(const starlin__topology_t *topology, unsigned local_rank,
                                         unsigned local_size, starlin__share_t *share_p);
void starlin__share_release(starlin__share_t *share);

/* Binds the calling thread to the whole share, to one PU, or to everything that is allowed. A refusal of
 * the operating system is logged, not an error. */
void starlin__topology_bind_share(const starlin__topology_t *topology, const starlin__share_t *share);
void starlin__topology_bind_pu(const starlin__topology_t *topology, unsigned pu);
void starlin__topology_bind_all(const starlin__topology_t *topology);

/* Saves and restores the calling thread's binding. */
typedef struct starlin__binding starlin__binding_t;
starlin_status_t starlin__topology_binding_save(const starlin__topology_t *topology,
                                                starlin__binding_t **binding_p);
void starlin__topology_binding_restore(const starlin__topology_t *topology,
                                       starlin__binding_t *binding); /* frees it */

/* Index into busids[] ("0000:17:00.0") of the GPU for this local rank: near its cores, each GPU given to one
 * rank; every rank computes the same assignment. With more ranks than GPUs they are shared evenly (the caller
 * decides whether that is allowed); where no locality is known it is local_rank % ngpus. ERR_NO_DEVICE:
 * ngpus is 0. */
starlin_status_t starlin__topology_gpu(const starlin__topology_t *topology, const char *const *busids,
                                       unsigned ngpus, unsigned local_rank, unsigned local_size,
                                       unsigned *gpu_p);

#endif
