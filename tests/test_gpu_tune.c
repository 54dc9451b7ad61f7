/* SPDX-License-Identifier: BSD-3-Clause */
/* The thorough calibration on a device: an entry with every number of CTAs that the communicator offers,
 * slowdowns within their bounds, the same on every rank. Several ranks under mpirun. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "plan/calibrate.h"
#include "gpu.h"
#include "plan/tuned.h"
#include "tune_dir.h"
#include "world.h"

static void check_entry(const starlin_context_t *context, const starlin_linear_shape_t *shape,
                        const starlin__tune_entry_t *entry)
{
    const starlin__comm_t *comm = context->comm;
    unsigned ctas[STARLIN__TUNE_COMMS - 1];
    size_t nchoices =
        comm->ops->ctas_choices != NULL ? comm->ops->ctas_choices(comm, ctas, STARLIN__TUNE_COMMS - 1) : 0;

    CHECK_EQ_INT(entry->ncomms, nchoices + 1);
    for (size_t i = 0; i < entry->ncomms; i++) {
        const starlin__tune_comm_t *tuned = &entry->comms[i];
        size_t last = tuned->curve.npoints - 1;
        CHECK_EQ_INT(tuned->ctas, i == 0 ? 0 : ctas[i - 1]);
        CHECK_EQ_INT(tuned->curve.size[last], shape->m * shape->n * 2);
        CHECK(tuned->gemm_slowdown >= 1.0 && tuned->gemm_slowdown <= 4.0);
        CHECK(tuned->comm_slowdown >= 1.0 && tuned->comm_slowdown <= 4.0);
        if (world_rank == 0)
            printf("%u CTAs: gemm %.1f us x %.3f, collective %.1f us x %.3f\n", tuned->ctas,
                   entry->gemm.time_us[entry->gemm.npoints - 1], tuned->gemm_slowdown,
                   tuned->curve.time_us[last], tuned->comm_slowdown);
    }
}

static void check_same(const starlin__tune_entry_t *entry)
{
    uint64_t mine = starlin__hash(STARLIN__HASH_INIT, entry, sizeof *entry), others[2];

    MPI_Allreduce(&mine, &others[0], 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &others[1], 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    CHECK(others[0] == others[1]);
}

static void run(starlin_context_t *context)
{
    starlin_linear_shape_t shape = {.m = 1024, .n = 512, .k_local = 1024, .dtype = STARLIN_BF16};
    starlin__gemm_t gemm = {
        .m = shape.m, .n = shape.n, .k = shape.k_local, .dtype = shape.dtype, .out_dtype = shape.dtype};
    starlin__plan_input_t input;
    starlin__tune_entry_t entry;
    bool found = false;

    CHECK_STATUS(starlin__calibrate_tune(context, &shape, &input), STARLIN_SUCCESS);
    memset(&entry, 0, sizeof entry);
    CHECK_STATUS(starlin__tuned_load(context, &gemm, &found, &entry), STARLIN_SUCCESS);
    CHECK(found);
    if (found) {
        check_entry(context, &shape, &entry);
        check_same(&entry);
    }
}

int main(int argc, char **argv)
{
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    if (!gpu_is_here()) {
        MPI_Finalize();
        return 77;
    }
    tune_dir_open();
    context = world_context(60000);
    if (context != NULL) {
        run(context);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    tune_dir_close();
    return world_end();
}
