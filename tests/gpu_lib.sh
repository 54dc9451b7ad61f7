# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the GPU scripts: programs under mpirun, also as root and with more ranks than cores.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export PRTE_ALLOW_RUN_AS_ROOT PRTE_ALLOW_RUN_AS_ROOT_CONFIRM PRTE_MCA_rmaps_default_mapping_policy

# ranks COUNT PROGRAM [ARGUMENT...]
ranks() {
    count=$1
    shift
    timeout --kill-after=10 "${LIMIT_S:-300}" "${MPIRUN:-mpirun}" --oversubscribe -np "$count" "$@"
}
