#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# All GPU tests without ctest, from any folder: one line each, and their output where they fail.
# usage: gpu_all.sh BIN_DIR [PATTERN]  (only names that match)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/gpu_lib.sh
. "$here/gpu_lib.sh"
bin=$(cd "$1" && pwd) || exit 2
pattern=${2:-.}
passed=0 failed=0 skipped=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export STARLIN_SHARE_GPU=1

# run NAME COMMAND...
run() {
    name=$1
    shift
    echo "$name" | grep -q -- "$pattern" || return 0
    begin=$(date +%s)
    "$@" >"$scratch/log" 2>&1
    code=$?
    seconds=$(($(date +%s) - begin))
    case $code in
    0) passed=$((passed + 1)) word=passed ;;
    77) skipped=$((skipped + 1)) word="skipped ($(grep -m 1 -i 'skipped' "$scratch/log"))" ;;
    *) failed=$((failed + 1)) word="FAILED (exit code $code)" ;;
    esac
    printf '%-24s %4d s  %s\n' "$name" "$seconds" "$word"
    [ "$code" = 0 ] || [ "$code" = 77 ] || tail -n 40 "$scratch/log" | sed 's/^/    /'
}

alone() {
    timeout --kill-after=10 "${LIMIT_S:-300}" "$@"
}

# a process for each policy, or a tool that slows kernels down
long() {
    timeout --kill-after=10 "${LONG_LIMIT_S:-580}" "$@"
}

# with VARIABLE=VALUE RANKS PROGRAM [ARGUMENT...]
with() {
    (
        # shellcheck disable=SC2163
        export "$1"
        shift
        ranks "$@"
    )
}

for test in device gemm paced nccl caller_cuda steady memory streams handles timeline; do
    run "gpu_$test" alone "$bin/test_gpu_$test"
done
run gpu_policies long "$bin/test_gpu_policies"
for comm in self model:gbps=200 nccl mpi; do
    run "gpu_operators_${comm%%:*}_1" with STARLIN_COMM="$comm" 1 "$bin/test_gpu_operators"
done
for count in 2 4; do
    run "gpu_nccl_ranks_$count" ranks "$count" "$bin/test_gpu_nccl_ranks"
    for comm in nccl mpi; do
        run "gpu_operators_${comm}_$count" with STARLIN_COMM="$comm" "$count" "$bin/test_gpu_operators"
    done
done
run gpu_order_model_1 with STARLIN_COMM=model:gbps=200 1 "$bin/test_gpu_order"
run gpu_order_nccl_1 with STARLIN_COMM=nccl 1 "$bin/test_gpu_order"
run gpu_order_nccl_2 with STARLIN_COMM=nccl 2 "$bin/test_gpu_order" 40
for chunks in 1 4; do
    run "gpu_failure_nccl_2_$chunks" with STARLIN_COMM=nccl 2 "$bin/test_failure" 6 "$chunks"
done
run gpu_agree long sh "$here/gpu_agree.sh" "$bin"
run gpu_sanitizer long sh "$here/gpu_sanitizer.sh" "$bin"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
