/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap of a single rank, and the search for the ranks of this node, which serves every kind. */
#define _POSIX_C_SOURCE 200809L

#include "ranks/bootstrap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Equal on two ranks exactly when they run on one node: host names may repeat, such as "localhost" in virtual
 * machines, and containers of one machine have the same boot identifier. Zeroed, so it compares bytewise. */
typedef struct node_id {
    char host[256];
    char boot_id[64];
} node_id_t;

bool starlin__notice_precedes(const starlin__notice_t *notice, const starlin__notice_t *other)
{
    if (notice->sequence != other->sequence)
        return notice->sequence < other->sequence;
    if (notice->rank != other->rank)
        return notice->rank < other->rank;
    return notice->chunk < other->chunk;
}

static starlin_status_t self_allgather(starlin__bootstrap_t *bootstrap, const void *mine, size_t nbytes,
                                       void *all, unsigned timeout_ms)
{
    (void)bootstrap;
    (void)timeout_ms;
    if (nbytes > 0)
        memmove(all, mine, nbytes);
    return STARLIN_SUCCESS;
}

/* There is no other rank to tell. */
static starlin_status_t self_notify(starlin__bootstrap_t *bootstrap, const starlin__notice_t *notice,
                                    unsigned timeout_ms,
                                    void (*received)(void *arg, const starlin__notice_t *notice), void *arg)
{
    (void)bootstrap;
    (void)notice;
    (void)timeout_ms;
    (void)received;
    (void)arg;
    return STARLIN_SUCCESS;
}

static starlin_status_t self_poll(starlin__bootstrap_t *bootstrap,
                                  void (*received)(void *arg, const starlin__notice_t *notice), void *arg)
{
    (void)bootstrap;
    (void)received;
    (void)arg;
    return STARLIN_SUCCESS;
}

static void self_destroy(starlin__bootstrap_t *bootstrap)
{
    starlin__free(bootstrap);
}

static const starlin__bootstrap_ops_t self_ops = {.name = "self",
                                                  .allgather = self_allgather,
                                                  .notify = self_notify,
                                                  .poll = self_poll,
                                                  .destroy = self_destroy};

starlin_status_t starlin__bootstrap_self_create(starlin__bootstrap_t **bootstrap_p)
{
    starlin__bootstrap_t *bootstrap = starlin__alloc(sizeof(*bootstrap));

    if (bootstrap == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the bootstrap");
    bootstrap->ops = &self_ops;
    bootstrap->nranks = 1;
    bootstrap->local_size = 1;
    *bootstrap_p = bootstrap;
    return STARLIN_SUCCESS;
}

static void node_id_get(node_id_t *id)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    memset(id, 0, sizeof(*id));
    if (gethostname(id->host, sizeof(id->host) - 1) != 0)
        id->host[0] = '\0';
    if (file != NULL) {
        size_t length = fread(id->boot_id, 1, sizeof(id->boot_id) - 1, file);

        id->boot_id[length] = '\0';
        fclose(file);
    }
}

starlin_status_t starlin__bootstrap_locate(starlin__bootstrap_t *bootstrap, unsigned timeout_ms)
{
    node_id_t mine, *all = starlin__alloc((size_t)bootstrap->nranks * sizeof(*all));
    int local_rank = 0, local_size = 0;
    starlin_status_t status;

    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "no memory for the names of %d ranks' nodes",
                              bootstrap->nranks);
    node_id_get(&mine);
    status = bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), all, timeout_ms);
    for (int rank = 0; status == STARLIN_SUCCESS && rank < bootstrap->nranks; rank++) {
        if (memcmp(&all[rank], &mine, sizeof(mine)) != 0)
            continue;
        if (local_size == 0)
            bootstrap->node = rank;
        local_rank += rank < bootstrap->rank;
        local_size++;
    }
    if (status == STARLIN_SUCCESS) {
        bootstrap->local_rank = local_rank;
        bootstrap->local_size = local_size;
    }
    starlin__free(all);
    return status;
}
