/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection of a compute backend: one asked for by name must be usable, an automatic one may be passed over.
 */
#include "compute/compute.h"

#include <stdio.h>
#include <string.h>

starlin_status_t starlin__compute_find(const char *name, const starlin__compute_ops_t **ops_p)
{
    char names[128] = "", why[160] = "";
    size_t used = 0;
    bool automatic = strcmp(name, "auto") == 0;

    for (size_t i = 0; starlin__compute_registry[i] != NULL; i++) {
        const starlin__compute_ops_t *ops = starlin__compute_registry[i];
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", ops->name);
        if (!automatic && strcmp(ops->name, name) != 0)
            continue;
        if (ops->usable(why, sizeof why)) {
            *ops_p = ops;
            return STARLIN_SUCCESS;
        }
        if (!automatic)
            return starlin__error(STARLIN_ERR_NO_DEVICE, "compute backend \"%s\" is not usable: %s", name,
                                  why);
        starlin__log("compute backend %s passed over: %s", ops->name, why);
    }
    return starlin__error(STARLIN_ERR_UNSUPPORTED,
                          "compute backend \"%s\" is not in this build; built: auto, %s", name, names);
}
