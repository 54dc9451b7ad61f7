/* SPDX-License-Identifier: BSD-3-Clause */
/* --comm and --compute against what was built, before anything starts. Whether a backend that was built is
 * usable here is for the context to find out. */
#include "options.h"

#include <string.h>

#include "comm/comm.h"
#include "compute/compute.h"

static bool check_compute(const char *compute, perf_error_t *error)
{
    char built[256] = "auto";
    bool found = strcmp(compute, "auto") == 0;
    for (const starlin__compute_ops_t *const *ops = starlin__compute_registry; *ops != NULL; ops++) {
        size_t used = strlen(built);
        snprintf(built + used, sizeof(built) - used, ", %s", (*ops)->name);
        found = found || strcmp((*ops)->name, compute) == 0;
    }
    if (!found)
        return perf_error_set(error, "--compute: unknown backend '%s' (built: %s)", compute, built);
    return true;
}

bool perf_options_check_backends(const perf_options_t *options, perf_error_t *error)
{
    if (options->comm != NULL && starlin__comm_check(options->comm) != STARLIN_SUCCESS)
        return perf_error_set(error, "--comm: %s", starlin_last_error());
    return options->compute == NULL || check_compute(options->compute, error);
}
