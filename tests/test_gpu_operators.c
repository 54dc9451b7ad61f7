/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator on a device: exact for every dtype, reduction, memory and rank count, whatever STARLIN_COMM
 * says. With STARLIN_COMPUTE=cblas the same on the host. The last line holds hashes of all results, which
 * gpu_agree.sh compares. usage: test_gpu_operators [small] */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "world.h"

#include "gpu.h"
#include "operators.h"

static const struct kind {
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
} kinds[] = {{STARLIN_F32, STARLIN_REDUCTION_NATIVE}, {STARLIN_F64, STARLIN_REDUCTION_NATIVE},
             {STARLIN_F16, STARLIN_REDUCTION_NATIVE}, {STARLIN_BF16, STARLIN_REDUCTION_NATIVE},
             {STARLIN_F16, STARLIN_REDUCTION_F32},    {STARLIN_BF16, STARLIN_REDUCTION_F32}};
enum { NKINDS = sizeof kinds / sizeof kinds[0], NREPETITIONS = 4 };

static uint64_t bits_hash = STARLIN__HASH_INIT;

/* All operators in flight, again and again over the same memory. */
static void run_scene(scene_t scene)
{
    job_t jobs[NJOBS + NCHAINED];
    size_t count;

    if (world_has_failed()) /* one report is enough */
        return;
    scene_open(&scene);
    if (scene.rows == NULL)
        return;
    count = open_every_job(&scene, jobs);
    for (size_t i = 0; i < NREPETITIONS * count; i++)
        job_submit(&jobs[i % count]);
    for (size_t i = 0; i < count; i++)
        job_check(&jobs[i], &bits_hash);
    close_every_job(jobs, count);
    scene_close(&scene);
}

/* One operator that is large enough for other kernels. */
static void run_large(scene_t scene)
{
    job_t jobs[] = {JOB_ROW(REPLICATE, JOB_FINISH), JOB_ROW(SHARD_ROWS, JOB_FINISH),
                    JOB_COLUMN(SHARD_ROWS, JOB_FINISH)};

    scene_open(&scene);
    for (size_t i = 0; scene.rows != NULL && i < sizeof jobs / sizeof jobs[0]; i++) {
        jobs[i].n = 513;
        jobs[i].k = 129;
        job_open(&jobs[i], &scene, i);
        job_submit(&jobs[i]);
        job_check(&jobs[i], &bits_hash);
        job_close(&jobs[i]);
    }
    scene_close(&scene);
}

/* auto measures, so it chooses anew on each machine: not for results that are compared */
static void run_all(starlin_context_t *context, bool is_small)
{
    static const size_t counts[] = {1, 5, 3};
    unsigned turn = 0;

    for (int i = 0; i < NKINDS; i++) {
        for (int memory = 0; memory < 6; memory++, turn++) {
            scene_t scene = {.context = context,
                             .m = turn % 5 == 4 ? 1 : 37,
                             .dtype = kinds[i].dtype,
                             .reduction = kinds[i].reduction,
                             .cut = (cut_t)(turn / 2 % NCUTS),
                             .variant = (turn % 3) * 4 + (unsigned)(memory / 2 == 1 ? 3 : memory),
                             .on_host = memory / 2 == 2,
                             .count = counts[turn % 3],
                             .blocks = memory % 2 == 0 && memory / 2 != 2};
            run_scene(scene);
            scene.m = 257;
            if (!is_small && scene.blocks)
                run_large(scene);
        }
    }
}

int main(int argc, char **argv)
{
    const char *compute = getenv("STARLIN_COMPUTE");
    starlin_context_info_t info = STARLIN_CONTEXT_INFO_INIT;
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    if ((compute == NULL || strcmp(compute, "cblas") != 0) && !gpu_is_here()) {
        MPI_Finalize();
        return 77;
    }
    context = world_context(60000);
    if (context != NULL) {
        run_all(context, argc > 1 && strcmp(argv[1], "small") == 0);
        CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
        if (world_rank == 0)
            printf("%d ranks, %s, %s: bits %016llx numbers %016llx\n", world_nranks, info.comm, info.compute,
                   (unsigned long long)bits_hash, (unsigned long long)numbers_hash);
        fflush(stdout);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    return world_end();
}
