/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's communicators over 1 to 4 ranks: each collective, dtype and shape of runs, several in flight,
 * exact. Over one rank also `self` and `model`, and what they refuse. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "collective.h"
#include "watchdog.h"
#include "world.h"

enum { INFLIGHT = 4 };

static starlin__bootstrap_t *bootstrap;

/* Several of one kind, dtype and shape in flight, waited for from the last to the first. The requests are
 * used again and again, as operators do. */
static void check_kind(starlin__comm_t *comm, transfer_t *transfers, const int64_t *rows, bool in_place)
{
    for (int i = 0; i < INFLIGHT; i++) {
        transfer_open(&transfers[i], bootstrap->rank, bootstrap->nranks, rows, 1 + 2 * i, i);
        if (in_place) {
            memcpy(transfers[i].recv, transfers[i].send, transfers[i].send_nbytes);
            transfers[i].collective.send = transfers[i].recv;
        }
        CHECK_STATUS(comm->ops->start(comm, &transfers[i].collective), STARLIN_SUCCESS);
    }
    for (int i = INFLIGHT - 1; i >= 0; i--) {
        collective_wait(comm, &transfers[i].collective);
        transfer_close(&transfers[i], bootstrap->rank);
    }
}

static void check_all(starlin__comm_t *comm, bool only_in_place)
{
    transfer_t transfers[INFLIGHT];

    memset(transfers, 0, sizeof transfers);
    for (int kind = 0; kind < STARLIN__NCOLLECTIVES; kind++) {
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
            for (size_t shape = 0; shape < COLLECTIVE_NSHAPES; shape++) {
                step_begin(starlin__collective_name((starlin__collective_kind_t)kind), (int)shape);
                for (int i = 0; i < INFLIGHT; i++) {
                    transfers[i].collective.kind = (starlin__collective_kind_t)kind;
                    transfers[i].collective.dtype = (starlin_dtype_t)dtype;
                }
                if (!only_in_place)
                    check_kind(comm, transfers, collective_shapes[shape], false);
                if (kind == STARLIN__ALLREDUCE || bootstrap->nranks == 1)
                    check_kind(comm, transfers, collective_shapes[shape], true);
            }
        }
    }
    for (int i = 0; i < INFLIGHT; i++)
        starlin__collective_release(&transfers[i].collective);
}

/* Kinds that take turns, all in flight. */
static void check_mixed(starlin__comm_t *comm)
{
    enum { MIXED = 12 };
    transfer_t transfers[MIXED];

    memset(transfers, 0, sizeof transfers);
    step_begin("mixed", MIXED);
    for (int i = 0; i < MIXED; i++) {
        transfers[i].collective.kind = (starlin__collective_kind_t)(i % STARLIN__NCOLLECTIVES);
        transfers[i].collective.dtype = (starlin_dtype_t)(i % 4);
        transfer_open(&transfers[i], bootstrap->rank, bootstrap->nranks, collective_shapes[i % 3], 11, i);
        CHECK_STATUS(comm->ops->start(comm, &transfers[i].collective), STARLIN_SUCCESS);
    }
    for (int i = 0; i < MIXED; i++) {
        collective_wait(comm, &transfers[i].collective);
        transfer_close(&transfers[i], bootstrap->rank);
        starlin__collective_release(&transfers[i].collective);
        CHECK(transfers[i].collective.counts == NULL);
    }
}

static void check_limit(starlin__comm_t *comm)
{
    starlin__collective_t collective = {.kind = STARLIN__REDUCE_SCATTER, .count = 1 << 20, .cols = 1 << 20};

    CHECK_STATUS(comm->ops->start(comm, &collective), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "a collective of 1099511627776 elements: MPI counts at most");
}

/* Steady state allocates nothing: the second use of a request finds the arrays of the first. */
static void check_reuse(starlin__comm_t *comm)
{
    transfer_t transfer;
    uint64_t count = 0;

    memset(&transfer, 0, sizeof transfer);
    transfer.collective.kind = STARLIN__ALLGATHER;
    for (int i = 0; i < 3; i++) {
        transfer_open(&transfer, bootstrap->rank, bootstrap->nranks, collective_shapes[i], 3, i);
        CHECK_STATUS(comm->ops->start(comm, &transfer.collective), STARLIN_SUCCESS);
        collective_wait(comm, &transfer.collective);
        if (i == 0)
            count = starlin__alloc_count;
        CHECK_EQ_INT(starlin__alloc_count, count);
        transfer_close(&transfer, bootstrap->rank);
    }
    starlin__collective_release(&transfer.collective);
}

static void received(void *arg, const starlin__notice_t *notice)
{
    CHECK_CONTAINS(notice->text, "failed on rank 0");
    CHECK_EQ_INT(notice->sequence, 7);
    ++*(int *)arg;
}

/* A notice can be sent without waiting; the wait for it comes later, or never. */
static void check_notice(void)
{
    const starlin__bootstrap_ops_t *ops = bootstrap->ops;
    starlin__notice_t notice = {.sequence = 7, .status = STARLIN_ERR_RUNTIME, .text = "failed on rank 0"};
    int nreceived = 0;

    step_begin("notice", 0);
    if (bootstrap->rank == 0) {
        double begin_us = starlin__now_us();
        CHECK_STATUS(ops->notify(bootstrap, &notice, 0, received, &nreceived), STARLIN_SUCCESS);
        CHECK(starlin__now_us() - begin_us < 10e6);
        MPI_Barrier(MPI_COMM_WORLD); /* only now the peers look */
        CHECK_STATUS(ops->notify(bootstrap, &notice, 60000, received, &nreceived), STARLIN_SUCCESS);
        CHECK_EQ_INT(nreceived, 0);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        while (nreceived == 0)
            CHECK_STATUS(ops->poll(bootstrap, received, &nreceived), STARLIN_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (bootstrap->rank != 0)
        CHECK_STATUS(ops->poll(bootstrap, received, &nreceived), STARLIN_SUCCESS);
    CHECK_EQ_INT(nreceived, bootstrap->rank != 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (bootstrap->rank == 0) { /* nobody hears this one: the end does not wait for it */
        notice.chunk = 1;
        CHECK_STATUS(ops->notify(bootstrap, &notice, 0, received, &nreceived), STARLIN_SUCCESS);
    }
}

static starlin__comm_t *open_comm(starlin__config_t *config, const char *name)
{
    starlin__comm_setup_t setup = {.config = config, .bootstrap = bootstrap, .parameters = ""};
    starlin__comm_t *comm = NULL;

    snprintf(config->comm, sizeof config->comm, "%s", name);
    CHECK_STATUS(starlin__comm_create(&setup, &comm), STARLIN_SUCCESS);
    return comm;
}

/* One real rank: in place only, and an allreduce takes as long as its two halves. */
static void check_virtual(starlin__config_t *config)
{
    starlin__comm_t *self = open_comm(config, "self");
    starlin__comm_t *model = open_comm(config, "model:gbps=2,latency_us=5,ranks=4");
    char other[8];
    starlin__collective_t collective = {.kind = STARLIN__ALLGATHER, .send = config, .recv = other, .cols = 1};

    check_all(self, true);
    check_all(model, true);
    CHECK_EQ_INT(self->nranks, 1);
    CHECK_EQ_INT(model->nranks, 4);
    CHECK_EQ_INT(model->ctas, 8);
    CHECK(self->ops->predict_us(self, STARLIN__ALLGATHER, 1e6) == 0.0);
    CHECK(model->ops->predict_us(model, STARLIN__ALLREDUCE, 1e6) == 5.0 + 750.0);
    CHECK(model->ops->predict_us(model, STARLIN__ALLGATHER, 1e6) == 5.0 + 375.0);
    CHECK(model->ops->predict_us(model, STARLIN__REDUCE_SCATTER, 1e6) == 5.0 + 375.0);
    for (int i = 0; i < 2; i++) {
        starlin__comm_t *comm = i == 0 ? self : model;
        CHECK_STATUS(comm->ops->start(comm, &collective), STARLIN_ERR_INVALID);
        CHECK_CONTAINS(starlin_last_error(), "allgather from one buffer to another");
        CHECK_CONTAINS(starlin_last_error(), comm->ops->name);
        starlin__comm_destroy(comm);
    }
}

/* The link carries one collective at a time, each for its predicted time. */
static void check_model_time(starlin__config_t *config)
{
    starlin__comm_t *comm = open_comm(config, "model:gbps=0.1,latency_us=100,ranks=2");
    starlin__collective_t collectives[3];
    static char buffer[100000];
    double begin_us = starlin__now_us(), expected_us = 0.0;

    memset(collectives, 0, sizeof collectives);
    for (int i = 0; i < 3; i++) {
        collectives[i] = (starlin__collective_t){.kind = (starlin__collective_kind_t)i,
                                                 .send = buffer,
                                                 .recv = buffer,
                                                 .count = 100,
                                                 .cols = 250,
                                                 .dtype = STARLIN_F32};
        CHECK_STATUS(comm->ops->start(comm, &collectives[i]), STARLIN_SUCCESS);
        expected_us += comm->ops->predict_us(comm, collectives[i].kind, 100000);
        CHECK(comm->ops->wake_us(comm, &collectives[i]) >= begin_us + expected_us);
    }
    collective_wait(comm, &collectives[2]);
    CHECK(expected_us == 1100.0 + 600.0 + 600.0);
    CHECK(starlin__now_us() - begin_us >= expected_us);
    starlin__comm_destroy(comm);
}

int main(int argc, char **argv)
{
    starlin__config_t config;
    starlin__comm_t *comm;

    world_begin(&argc, &argv);
    step_limit(100);
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    config.timeout_ms = 60000;
    CHECK_STATUS(starlin__bootstrap_mpi_create((int)MPI_Comm_c2f(MPI_COMM_WORLD), 60000, &bootstrap),
                 STARLIN_SUCCESS);
    comm = open_comm(&config, "mpi");
    if (comm != NULL) {
        CHECK_EQ_INT(comm->nranks, world_nranks);
        check_all(comm, false);
        check_mixed(comm);
        check_limit(comm);
        check_reuse(comm);
        starlin__comm_destroy(comm);
    }
    if (world_nranks == 1) {
        check_virtual(&config);
        check_model_time(&config);
    }
    check_notice();
    bootstrap->ops->destroy(bootstrap);
    return world_end();
}
