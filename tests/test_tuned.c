/* SPDX-License-Identifier: BSD-3-Clause */
/* Stored curves as a context sees them: several numbers of CTAs, those that the communicator offers, all of
 * them up to the layer's rows; the same on every rank. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <unistd.h>

#include "plan/tuned.h"
#include "tune_dir.h"
#include "world.h"

static unsigned offered[4];
static size_t noffered;

static size_t offer_choices(const starlin__comm_t *comm, unsigned *ctas, size_t most)
{
    (void)comm;
    for (size_t i = 0; i < noffered && i < most; i++)
        ctas[i] = offered[i];
    return noffered < most ? noffered : most;
}

/* A gemm's curve up to m rows and collectives of 0, 2, 4 and 8 CTAs, each with a curve of its own. */
static starlin__tune_entry_t entry_make(const starlin__gemm_t *gemm)
{
    starlin__tune_entry_t entry = {.task_us = 3.0, .ncomms = 4};
    double nbytes = (double)(gemm->m * gemm->n) * 4.0;

    starlin__curve_add(&entry.gemm, 1.0, 10.0);
    starlin__curve_add(&entry.gemm, (double)gemm->m, 1000.0);
    for (size_t i = 0; i < entry.ncomms; i++) {
        entry.comms[i] = (starlin__tune_comm_t){.ctas = i > 0 ? 1u << i : 0,
                                                .gemm_slowdown = 1.0 + 0.1 * (double)i,
                                                .comm_slowdown = 1.5 - 0.1 * (double)i,
                                                .comm_delay_us = 7.0};
        starlin__curve_add(&entry.comms[i].curve, 1.0, 5.0);
        starlin__curve_add(&entry.comms[i].curve, nbytes, 500.0 / (double)(i + 1));
    }
    return entry;
}

/* Stores the entry and loads it again. */
static bool stores_and_loads(starlin_context_t *context, const starlin__gemm_t *gemm,
                             const starlin__tune_entry_t *entry, starlin__tune_entry_t *loaded)
{
    bool found = false;

    memset(loaded, 0, sizeof *loaded);
    CHECK_STATUS(starlin__tuned_store(context, gemm, entry), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__tuned_load(context, gemm, &found, loaded), STARLIN_SUCCESS);
    return found;
}

static void check_entries(starlin_context_t *context)
{
    starlin__gemm_t gemm = {.m = 100, .n = 30, .k = 20 + world_rank, .out_dtype = STARLIN_F32};
    const starlin__tune_entry_t entry = entry_make(&gemm);
    starlin__tune_entry_t loaded, other;

    noffered = 4;
    memcpy(offered, (unsigned[4]){2, 4, 8, 16}, sizeof offered);
    CHECK(stores_and_loads(context, &gemm, &entry, &loaded));
    CHECK(memcmp(&loaded, &entry, sizeof entry) == 0);

    for (size_t i = 0; i < 4; i++) { /* any of them may be the one that ends early */
        other = entry;
        other.comms[i].curve.size[1] -= 1.0;
        CHECK(!stores_and_loads(context, &gemm, &other, &loaded));
    }
    noffered = 1; /* those that do not count here do no harm */
    other = entry;
    other.comms[2].curve.size[1] -= 1.0;
    CHECK(stores_and_loads(context, &gemm, &other, &loaded));
    CHECK_EQ_INT(loaded.ncomms, 2);
    CHECK(memcmp(loaded.comms, entry.comms, 2 * sizeof entry.comms[0]) == 0);
    noffered = 0;
    CHECK(stores_and_loads(context, &gemm, &entry, &loaded));
    CHECK_EQ_INT(loaded.ncomms, 1);
    CHECK_EQ_INT(loaded.comms[0].ctas, 0);
    CHECK_EQ_INT(loaded.comms[1].curve.npoints, 0);

    noffered = 4; /* without the communicator's own number there is nothing to compare with */
    other = entry;
    other.comms[0] = entry.comms[3];
    other.ncomms = 3;
    CHECK(!stores_and_loads(context, &gemm, &other, &loaded));
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    world_begin(&argc, &argv);
    tune_dir_open();
    context = world_context(10000);
    if (context != NULL) {
        const starlin__comm_ops_t *own = context->comm->ops;
        starlin__comm_ops_t ops = *own;
        ops.ctas_choices = offer_choices;
        context->comm->ops = &ops;
        check_entries(context);
        context->comm->ops = own;
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    tune_dir_close();
    return world_end();
}
