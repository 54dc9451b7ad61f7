/* SPDX-License-Identifier: BSD-3-Clause */
/* The NCCL communicator's first exchange: which rank is on which GPU. Invariant: nothing of NCCL that reads
 * the environment has run before, since it does so only once. */
#define _GNU_SOURCE /* setenv, gethostname */
#include "comm/nccl/comm_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the ranks tell each other. */
typedef struct hello {
    uint64_t host;
    int32_t status; /* starlin_status_t */
    int32_t version;
    int32_t share_gpu;
    char busid[36];
} hello_t;

/* The same for all processes of one machine, whatever their containers call it. */
static uint64_t host_id(void)
{
    char text[256] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL) {
        if (fgets(text, sizeof(text), file) == NULL)
            text[0] = '\0';
        fclose(file);
    }
    if (text[0] == '\0')
        (void)gethostname(text, sizeof(text) - 1);
    return starlin__hash(STARLIN__HASH_INIT, text, strlen(text));
}

static void hello_fill(const starlin__comm_setup_t *setup, hello_t *hello)
{
    int version = 0;
    memset(hello, 0, sizeof(*hello));
    hello->host = host_id();
    if (ncclGetVersion(&version) == ncclSuccess)
        hello->version = version;
    hello->share_gpu = setup->config->share_gpu;
    starlin_status_t status = STARLIN_SUCCESS;
    if (setup->device == NULL)
        status =
            starlin__error(STARLIN_ERR_UNSUPPORTED, "communicator nccl needs a device, this rank computes on "
                                                    "the host");
    else if (hello->version < NCCL_VERSION(2, 18, 0))
        status = starlin__error(STARLIN_ERR_UNSUPPORTED, "NCCL %d is loaded, 21800 or later is needed",
                                hello->version);
    else
        status = setup->device->ops->busid(setup->device->index, hello->busid, sizeof(hello->busid));
    hello->status = status;
}

/* The first pair of ranks on one GPU, in the same order on every rank. */
static bool find_shared(const hello_t *hellos, int nranks, int *first_p, int *second_p)
{
    for (int i = 0; i < nranks; i++) {
        for (int j = i + 1; j < nranks; j++) {
            if (hellos[i].host == hellos[j].host && strcmp(hellos[i].busid, hellos[j].busid) == 0) {
                *first_p = i;
                *second_p = j;
                return true;
            }
        }
    }
    return false;
}

/* Makes NCCL accept several ranks on one GPU; before its first call, which reads the environment. */
static void share_gpu(const hello_t *hellos, int rank, int nranks)
{
    bool one_host = true, native = true;
    char name[32];
    for (int i = 0; i < nranks; i++) {
        one_host = one_host && hellos[i].host == hellos[0].host;
        native = native && hellos[i].version >= NCCL_VERSION(2, 30, 0);
    }
    if (native) {
        (void)setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    } else {
        /* ranks that look like different hosts talk over sockets */
        snprintf(name, sizeof(name), "starlin-%d", rank);
        (void)setenv("NCCL_HOSTID", name, 0);
        if (one_host)
            (void)setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    }
    if (rank == 0)
        fprintf(stderr,
                "starlin: several ranks share a GPU (STARLIN_SHARE_GPU=1): results are right, speed means "
                "nothing\n");
}

static starlin_status_t judge(const starlin__comm_setup_t *setup, const hello_t *hellos)
{
    int nranks = setup->bootstrap->nranks, first, second;
    bool may_share = true;
    for (int i = 0; i < nranks; i++) {
        if (hellos[i].status != STARLIN_SUCCESS)
            return starlin__error((starlin_status_t)hellos[i].status, "communicator nccl: rank %d: %s", i,
                                  starlin_status_string((starlin_status_t)hellos[i].status));
        may_share = may_share && hellos[i].share_gpu;
    }
    if (!find_shared(hellos, nranks, &first, &second))
        return STARLIN_SUCCESS;
    if (!may_share)
        return starlin__error(
            STARLIN_ERR_NO_DEVICE,
            "ranks %d and %d are on the same GPU %s: give each rank a GPU of its own, or set "
            "STARLIN_SHARE_GPU=1 on every rank (for tests: speed then means nothing)",
            first, second, hellos[first].busid);
    share_gpu(hellos, setup->bootstrap->rank, nranks);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__comm_nccl_meet(const starlin__comm_setup_t *setup)
{
    starlin__bootstrap_t *bootstrap = setup->bootstrap;
    hello_t mine;
    hello_t *hellos = starlin__alloc((size_t)bootstrap->nranks * sizeof(*hellos));
    if (hellos == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for an exchange");
    hello_fill(setup, &mine);
    starlin_status_t status =
        bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), hellos, setup->config->timeout_ms);
    if (status == STARLIN_SUCCESS) /* the text of an own failure is this thread's last error already */
        status = mine.status != STARLIN_SUCCESS ? (starlin_status_t)mine.status : judge(setup, hellos);
    starlin__free(hellos);
    return status;
}
