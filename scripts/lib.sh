# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What scripts/demo and scripts/test share: installing what is missing, the environment of mpirun, configuring
# and building. Sourced, with `set -euo pipefail` in force and the repository's root as current directory.

say() {
    printf '== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

have_library() {
    local name
    have pkg-config || return 1
    for name in "$@"; do
        pkg-config --exists "$name" && return 0
    done
    return 1
}

# need PACKAGE CHECK...: notes PACKAGE as missing where the command CHECK fails
missing=()
need() {
    local package=$1
    shift
    "$@" || missing+=("$package")
}

needs_to_build() {
    need gcc have cc
    need libc6-dev test -e /usr/include/stdio.h
    need cmake have cmake
    need ninja-build have ninja
    need pkg-config have pkg-config
    need libstarpu-dev have_library starpu-1.4 starpu-1.3
    need libhwloc-dev have_library hwloc
    need libopenmpi-dev have mpicc
    need openmpi-bin have mpirun
    need libopenblas-dev have_library openblas # a reference BLAS would do, but many times slower
    need libjansson-dev have_library jansson
}

# Several hosts on one machine (scripts/hosts) need root anyway.
needs_to_make_hosts() {
    [ "$(id -u)" = 0 ] || return 0
    need iproute2 have tc
}

# Runs a command as root, or fails where that is not possible without asking.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo -- "$@"
    else
        return 1
    fi
}

is_apt_system() {
    have apt-get && [ -r /etc/os-release ] && grep -Eq '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release
}

# Installs the packages in `missing`. Nothing missing: nothing is done and no network is used.
# Not every missing package is fatal here: a build that cannot go on without one says so itself.
install_missing() {
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! is_apt_system; then
        say "not found here: ${missing[*]} (names as in Debian); please install them. Going on without."
        return 0
    fi
    say "installing ${missing[*]}"
    if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${missing[@]}" >/dev/null; }; then
        say "apt could not install all of: ${missing[*]}. Going on without."
    fi
    missing=()
}

# Open MPI refuses root and more ranks than cores unless told otherwise; version 4 and 5 listen to different
# names. Nothing here changes how ranks are bound: the library does that.
mpi_environment() {
    if [ "$(id -u)" = 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    export OMPI_MCA_rmaps_base_oversubscribe=1
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
}

jobs_count() {
    local count
    count=$(nproc 2>/dev/null || echo 2)
    echo "${STARLIN_JOBS:-$count}"
}

# build_preset PRESET NAME [CMAKE ARGUMENT...]: configures and builds a preset in build/NAME
build_preset() {
    local preset=$1 name=$2 log=build/logs/$2
    shift 2
    mkdir -p build/logs
    cmake --preset "$preset" -B "build/$name" "$@" >"$log-configure.log" 2>&1 ||
        { cat "$log-configure.log"; return 1; }
    cmake --build "build/$name" --parallel "$(jobs_count)" >"$log-build.log" 2>&1 ||
        { grep -Ev '^\[[0-9]+/[0-9]+\] (Building|Linking)' "$log-build.log" | tail -n 100; return 1; }
}
