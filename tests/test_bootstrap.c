/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap of one rank, and locating ranks on nodes with an exchange that is made up. */
#include "ranks/bootstrap.h"
#include "check.h"

static int received_count;

static void received(void *arg, const starlin__notice_t *notice)
{
    (void)arg;
    (void)notice;
    received_count++;
}

static void test_self(void)
{
    starlin__notice_t notice = {.rank = 0, .status = STARLIN_ERR_COMM};
    starlin__bootstrap_t *bootstrap = NULL;
    int mine = 17, all = 0;

    CHECK_STATUS(starlin__bootstrap_self_create(&bootstrap), STARLIN_SUCCESS);
    if (bootstrap == NULL)
        return;
    CHECK_EQ_STR(bootstrap->ops->name, "self");
    CHECK_EQ_INT(bootstrap->rank, 0);
    CHECK_EQ_INT(bootstrap->nranks, 1);
    CHECK_STATUS(bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), &all, 1000), STARLIN_SUCCESS);
    CHECK_EQ_INT(all, 17);
    CHECK_STATUS(bootstrap->ops->allgather(bootstrap, &mine, sizeof(mine), &mine, 1000), STARLIN_SUCCESS);
    CHECK_EQ_INT(mine, 17);
    CHECK_STATUS(bootstrap->ops->notify(bootstrap, &notice, 1000, received, NULL), STARLIN_SUCCESS);
    CHECK_STATUS(bootstrap->ops->poll(bootstrap, received, NULL), STARLIN_SUCCESS);
    CHECK_EQ_INT(received_count, 0);
    bootstrap->local_size = bootstrap->local_rank = -1;
    CHECK_STATUS(starlin__bootstrap_locate(bootstrap, 1000), STARLIN_SUCCESS);
    CHECK_EQ_INT(bootstrap->local_rank, 0);
    CHECK_EQ_INT(bootstrap->local_size, 1);
    bootstrap->ops->destroy(bootstrap);
}

/* Ranks whose bit is set in `mpi_comm` are on this node; the others differ in the last byte. */
static starlin_status_t fake_allgather(starlin__bootstrap_t *bootstrap, const void *mine, size_t nbytes,
                                       void *all, unsigned timeout_ms)
{
    if (timeout_ms == 0)
        return starlin__error(STARLIN_ERR_TIMEOUT, "made up");
    for (int rank = 0; rank < bootstrap->nranks; rank++) {
        unsigned char *theirs = (unsigned char *)all + (size_t)rank * nbytes;

        memcpy(theirs, mine, nbytes);
        if ((bootstrap->mpi_comm >> rank & 1) == 0)
            theirs[nbytes - 1] ^= 1;
    }
    return STARLIN_SUCCESS;
}

static void test_locate(void)
{
    static const starlin__bootstrap_ops_t fake_ops = {.name = "fake", .allgather = fake_allgather};
    starlin__bootstrap_t bootstrap = {
        .ops = &fake_ops, .rank = 3, .nranks = 6, .local_rank = -1, .local_size = -1, .mpi_comm = 0x2a};

    CHECK_STATUS(starlin__bootstrap_locate(&bootstrap, 0), STARLIN_ERR_TIMEOUT);
    CHECK_EQ_INT(bootstrap.local_rank, -1);
    CHECK_STATUS(starlin__bootstrap_locate(&bootstrap, 1000), STARLIN_SUCCESS);
    CHECK_EQ_INT(bootstrap.local_rank, 1); /* ranks 1, 3, 5 */
    CHECK_EQ_INT(bootstrap.local_size, 3);
    bootstrap.mpi_comm = 0x3f;
    CHECK_STATUS(starlin__bootstrap_locate(&bootstrap, 1000), STARLIN_SUCCESS);
    CHECK_EQ_INT(bootstrap.local_rank, 3);
    CHECK_EQ_INT(bootstrap.local_size, 6);
}

static void test_no_memory(void)
{
    starlin__bootstrap_t *bootstrap = NULL;

    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(starlin__bootstrap_self_create(&bootstrap), STARLIN_ERR_NO_MEMORY);
    CHECK(bootstrap == NULL);
    CHECK_STATUS(starlin__bootstrap_self_create(&bootstrap), STARLIN_SUCCESS);
    if (bootstrap == NULL)
        return;
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(starlin__bootstrap_locate(bootstrap, 1000), STARLIN_ERR_NO_MEMORY);
    starlin__alloc_fail_at = 0;
    bootstrap->ops->destroy(bootstrap);
}

int main(void)
{
    test_self();
    test_locate();
    test_no_memory();
    return CHECK_RESULT();
}
