/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of cores and GPUs on described machines, and binding on this one. */
#define _GNU_SOURCE

#include <sched.h>
#include <stdlib.h>

#include "check.h"
#include "machine/topology.h"

static starlin__topology_t *described(const char *description)
{
    starlin__topology_t *topology = NULL;

    CHECK_STATUS(starlin__topology_create_described(description, &topology), STARLIN_SUCCESS);
    if (topology == NULL)
        exit(1);
    return topology;
}

static void check_share(const starlin__topology_t *topology, unsigned local_rank, unsigned local_size,
                        unsigned ncores, unsigned first_pu, int comm_pu, const char *text)
{
    starlin__share_t share;

    CHECK_STATUS(starlin__topology_share(topology, local_rank, local_size, &share), STARLIN_SUCCESS);
    CHECK_EQ_INT(share.ncores, ncores);
    CHECK_EQ_INT(share.pus[0], first_pu);
    CHECK_EQ_INT(share.comm_pu, comm_pu);
    CHECK_EQ_STR(share.text, text);
    starlin__share_release(&share);
}

static void test_known_shares(void)
{
    starlin__topology_t *topology = described("pack:2 core:8 pu:2");

    CHECK_EQ_INT(starlin__topology_ncores(topology), 16);
    check_share(topology, 0, 1, 15, 0, 30, "cores 0-14, communication on 15");
    check_share(topology, 0, 2, 7, 0, 14, "cores 0-6, communication on 7");
    check_share(topology, 1, 2, 7, 16, 30, "cores 8-14, communication on 15");
    check_share(topology, 4, 5, 3, 24, 30, "cores 12-14, communication on 15");
    check_share(topology, 1, 8, 2, 4, 6, "cores 2-3, communication on 3 (shared)");
    check_share(topology, 15, 16, 1, 30, 30, "core 15, communication on 15 (shared)");
    check_share(topology, 17, 20, 1, 2, 2, "core 1, communication on 1 (shared with other ranks)");
    starlin__topology_destroy(topology);

    topology = described("core:3 pu:1");
    check_share(topology, 0, 1, 2, 0, 2, "cores 0-1, communication on 2");
    starlin__topology_destroy(topology);
    topology = described("pu:1");
    check_share(topology, 0, 1, 1, 0, 0, "core 0, communication on 0 (shared)");
    starlin__topology_destroy(topology);
}

/* For every number of ranks: shares are disjoint, complete and differ by at most one core. */
static void test_all_splits(const char *description, unsigned ncores, unsigned pus_per_core)
{
    starlin__topology_t *topology = described(description);

    CHECK_EQ_INT(starlin__topology_ncores(topology), ncores);
    for (unsigned size = 1; size <= 2 * ncores; size++) {
        unsigned next = 0, least = ncores, most = 0;

        for (unsigned rank = 0; rank < size; rank++) {
            starlin__share_t share;
            unsigned cores;

            CHECK_STATUS(starlin__topology_share(topology, rank, size, &share), STARLIN_SUCCESS);
            cores = share.ncores + share.comm_has_core;
            least = cores < least ? cores : least;
            most = cores > most ? cores : most;
            CHECK_EQ_INT(share.oversubscribed, size > ncores);
            CHECK_EQ_INT(share.comm_has_core, cores >= 3);
            if (share.oversubscribed)
                next = rank % ncores;
            for (unsigned i = 0; i < share.ncores; i++)
                CHECK_EQ_INT(share.pus[i], (next + i) * pus_per_core);
            next += cores;
            CHECK_EQ_INT(share.comm_pu, (next - 1) * pus_per_core);
            starlin__share_release(&share);
        }
        CHECK(most - least <= 1);
        if (size <= ncores)
            CHECK_EQ_INT(next, ncores);
    }
    starlin__topology_destroy(topology);
}

static void test_bad_arguments(void)
{
    starlin__topology_t *topology = described("core:4 pu:1"), *other = NULL;
    const char *busids[] = {"0000:01:00.0"};
    starlin__share_t share;
    unsigned gpu = 7;

    CHECK_STATUS(starlin__topology_share(topology, 0, 0, &share), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin__topology_share(topology, 2, 2, &share), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "local rank 2 of 2");
    CHECK_STATUS(starlin__topology_gpu(topology, busids, 0, 0, 1, &gpu), STARLIN_ERR_NO_DEVICE);
    CHECK_STATUS(starlin__topology_gpu(topology, busids, 1, 1, 1, &gpu), STARLIN_ERR_INVALID);
    CHECK_EQ_INT(gpu, 7);
    CHECK_STATUS(starlin__topology_create_described("nonsense", &other), STARLIN_ERR_INVALID);
    CHECK(other == NULL);
    starlin__topology_destroy(NULL);
    starlin__topology_destroy(topology);
}

static void test_no_memory(void)
{
    starlin__topology_t *topology = NULL;
    starlin_status_t status = STARLIN_ERR_NO_MEMORY;

    for (uint64_t i = 1; i < 10 && status == STARLIN_ERR_NO_MEMORY; i++) {
        starlin__alloc_fail_at = starlin__alloc_count + i;
        status = starlin__topology_create_described("core:4 pu:1", &topology);
        CHECK(i > 2 || (status == STARLIN_ERR_NO_MEMORY && topology == NULL));
    }
    starlin__alloc_fail_at = 0;
    CHECK_STATUS(status, STARLIN_SUCCESS);
    starlin__topology_destroy(topology);
}

/* Two packages of four cores; GPUs 81, c1 and c2 are near the second one, 01 and 41 near the first. */
static const char two_packages[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
    "version=\"2.0\">"
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0xff\" complete_cpuset=\"0xff\" allowed_cpuset=\"0xff\""
    " nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">"
#define PU(core, mask, gp)                                                                                   \
    "<object type=\"Core\" os_index=\"" #core "\" cpuset=\"" mask "\" complete_cpuset=\"" mask               \
    "\" nodeset=\"0x3\" complete_nodeset=\"0x3\" gp_index=\"1" #gp                                           \
    "\"><object type=\"PU\" os_index=\"" #core "\" cpuset=\"" mask "\" complete_cpuset=\"" mask              \
    "\" nodeset=\"0x3\" complete_nodeset=\"0x3\" gp_index=\"2" #gp "\"/></object>"
#define GPU(bus, gp)                                                                                         \
    "<object type=\"PCIDev\" gp_index=\"" #gp "\" pci_busid=\"0000:" bus                                     \
    ":00.0\" pci_type=\"0302 [10de:2335] [10de:18be] a1\" pci_link_speed=\"0.0\"/>"
#define PACKAGE(number, mask, gp)                                                                            \
    "<object type=\"Package\" os_index=\"" #number "\" cpuset=\"" mask "\" complete_cpuset=\"" mask          \
    "\" nodeset=\"" #gp "\" complete_nodeset=\"" #gp "\" gp_index=\"5" #number                               \
    "\"><object type=\"NUMANode\" os_index=\"" #number "\" cpuset=\"" mask "\" complete_cpuset=\"" mask      \
    "\" nodeset=\"" #gp "\" complete_nodeset=\"" #gp "\" gp_index=\"6" #number                               \
    "\" local_memory=\"1000000\"/>"
    PACKAGE(0, "0x0f", 0x1) PU(0, "0x01", 10) PU(1, "0x02", 11) PU(2, "0x04", 12) PU(3, "0x08", 13)
        GPU("01", 301) GPU("41", 302) "</object>" PACKAGE(1, "0xf0", 0x2) PU(4, "0x10", 14) PU(5, "0x20", 15)
            PU(6, "0x40", 16) PU(7, "0x80", 17) GPU("81", 303) GPU("c1", 304)
                GPU("c2", 305) "</object></object></topology>";

static void check_gpus(const starlin__topology_t *topology, const char *const *busids, unsigned ngpus,
                       unsigned local_size, const unsigned *expected)
{
    for (unsigned rank = 0; rank < local_size; rank++) {
        unsigned gpu = 999;

        CHECK_STATUS(starlin__topology_gpu(topology, busids, ngpus, rank, local_size, &gpu), STARLIN_SUCCESS);
        check_count++;
        if (gpu != expected[rank])
            CHECK_FAIL("rank %u of %u has GPU %u, expected %u", rank, local_size, gpu, expected[rank]);
    }
}

static void test_gpus(void)
{
    starlin__topology_t *topology = described(two_packages);
    const char *const near[] = {"0000:01:00.0", "0000:41:00.0", "0000:81:00.0", "0000:c1:00.0"};
    const char *const crossed[] = {"0000:c1:00.0", "0000:01:00.0", "0000:81:00.0", "0000:41:00.0"};
    const char *const far[] = {"0000:81:00.0", "0000:c1:00.0", "0000:01:00.0", "0000:41:00.0"};
    const char *const uneven[] = {"0000:81:00.0", "0000:c1:00.0", "0000:01:00.0", "0000:c2:00.0"};
    const char *const unknown[] = {"0000:aa:00.0", "rubbish", "0000:ab:00.0"};

    CHECK_EQ_INT(starlin__topology_ncores(topology), 8);
    check_gpus(topology, near, 4, 1, (unsigned[]){0});
    check_gpus(topology, near, 4, 2, (unsigned[]){0, 2});
    check_gpus(topology, near, 4, 4, (unsigned[]){0, 1, 2, 3});
    check_gpus(topology, near, 4, 8, (unsigned[]){0, 1, 0, 1, 2, 3, 2, 3});
    check_gpus(topology, crossed, 4, 2, (unsigned[]){1, 0});
    check_gpus(topology, crossed, 4, 4, (unsigned[]){1, 3, 0, 2});
    check_gpus(topology, far, 2, 2, (unsigned[]){1, 0});          /* rank 1 is near and comes first */
    check_gpus(topology, far, 3, 3, (unsigned[]){2, 0, 1});       /* rank 1 straddles the packages */
    check_gpus(topology, far, 4, 3, (unsigned[]){2, 3, 0});       /* most of its cores are in the first one */
    check_gpus(topology, uneven, 4, 4, (unsigned[]){2, 3, 0, 1}); /* rank 1 takes what is left */
    check_gpus(topology, unknown, 3, 5, (unsigned[]){0, 1, 2, 0, 1});
    check_gpus(topology, near, 1, 3, (unsigned[]){0, 0, 0});
    starlin__topology_destroy(topology);
}

/* Whatever this thread is bound to, all cores are found; and binding does what it says. */
static void test_this_machine(void)
{
    starlin__topology_t *topology = NULL;
    starlin__binding_t *binding = NULL;
    starlin__share_t share;
    cpu_set_t before, one, now;
    unsigned ncores;

    CHECK_EQ_INT(sched_getaffinity(0, sizeof(before), &before), 0);
    CHECK_STATUS(starlin__topology_create(&topology), STARLIN_SUCCESS);
    if (topology == NULL)
        return;
    ncores = starlin__topology_ncores(topology);
    CHECK(ncores >= 1);
    starlin__topology_destroy(topology);

    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    CHECK_EQ_INT(sched_setaffinity(0, sizeof(one), &one), 0);
    CHECK_STATUS(starlin__topology_create(&topology), STARLIN_SUCCESS);
    CHECK_EQ_INT(starlin__topology_ncores(topology), ncores);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof(now), &now), 0);
    CHECK(CPU_EQUAL(&now, &one));

    CHECK_STATUS(starlin__topology_binding_save(topology, &binding), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__topology_share(topology, 0, 1, &share), STARLIN_SUCCESS);
    starlin__topology_bind_all(topology);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof(now), &now), 0);
    CHECK(CPU_COUNT(&now) >= (int)ncores);
    starlin__topology_bind_pu(topology, (unsigned)share.comm_pu);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof(now), &now), 0);
    CHECK_EQ_INT(CPU_COUNT(&now), 1);
    starlin__topology_bind_share(topology, &share);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof(now), &now), 0);
    CHECK(CPU_COUNT(&now) >= (int)share.ncores + share.comm_has_core);
    starlin__topology_bind_pu(topology, 1000000); /* refused, not an error */
    starlin__topology_binding_restore(topology, binding);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof(now), &now), 0);
    CHECK(CPU_EQUAL(&now, &one));
    starlin__topology_binding_restore(topology, NULL);

    starlin__share_release(&share);
    starlin__topology_destroy(topology);
    sched_setaffinity(0, sizeof(before), &before);
}

int main(void)
{
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    test_known_shares();
    test_all_splits("pack:2 core:8 pu:2", 16, 2);
    test_all_splits("pack:1 core:7 pu:1", 7, 1);
    test_all_splits("core:2 pu:4", 2, 4);
    test_bad_arguments();
    test_no_memory();
    test_gpus();
    test_this_machine();
    return CHECK_RESULT();
}
