#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Small cases under compute-sanitizer: no invalid access, no read of device memory that nobody wrote, no race in
# the project's kernels. 77 where the tool or a device is missing.
# usage: gpu_sanitizer.sh BIN_DIR
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/gpu_lib.sh
. "$here/gpu_lib.sh"
bin=$1
failures=0
# shellcheck disable=SC2012
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/compute-sanitizer/compute-sanitizer /usr/local/cuda/bin/compute-sanitizer 2>/dev/null | head -n 1)
if ! [ -x "$sanitizer" ]; then
    echo "skipped: compute-sanitizer is not here"
    exit 77
fi
"$bin/test_gpu_device" >/dev/null 2>&1
if [ $? = 77 ]; then
    echo "skipped: no CUDA device is visible"
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# check TOOL KERNELS PROGRAM [ARGUMENT...]: KERNELS is a filter, or "all"
check() {
    tool=$1 kernels=$2
    shift 2
    filter=
    [ "$kernels" = all ] || filter="--kernel-regex kns=$kernels"
    # shellcheck disable=SC2086
    timeout --kill-after=10 "${LIMIT_S:-300}" "$sanitizer" --tool $tool --error-exitcode 9 $filter "$@" \
        >"$scratch/log" 2>&1
    code=$?
    if [ "$code" = 0 ] && grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$scratch/log"; then
        echo "$tool $*: clean"
    else
        echo "$tool $*: exit code $code"
        grep -v '^ok' "$scratch/log" | head -n 60
        failures=$((failures + 1))
    fi
}

export STARLIN_COMM=model:gbps=200
# statuses tell of failing calls, some of which are StarPU's ways of asking
check "memcheck --report-api-errors no" all "$bin/test_gpu_operators" small
check initcheck all "$bin/test_gpu_operators" small
check racecheck paced "$bin/test_gpu_paced" small
check racecheck finish "$bin/test_gpu_gemm" finish
[ "$failures" = 0 ] || exit 1
