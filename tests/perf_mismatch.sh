#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two ranks started with different options: the same error on both, soon, and no hang.
# usage: perf_mismatch.sh STARLIN_PERF MPIEXEC
perf=$1 mpiexec=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export STARLIN_WISDOM="$work/wisdom"
# root and more ranks than cores are fine; Open MPI 4 and 5 listen to different names
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
failures=0 checks=0
small="-n 8 -k 8 -i 1 -w 0"

# disagree "TEXT" "arguments of rank 0" "arguments of rank 1"
disagree()
{
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    timeout 10 "$mpiexec" -np 1 "$perf" $small $2 : -np 1 "$perf" $small $3 >"$work/out" 2>"$work/err"
    rc=$?
    sed -n 's/^starlin-perf: rank \([01]\): //p' "$work/err" >"$work/texts"
    ranks=$(sed -n 's/^starlin-perf: rank \([01]\): .*/\1/p' "$work/err" | sort | tr -d '\n')
    if [ $rc -eq 0 ] || [ $rc -eq 124 ] || [ "$ranks" != 01 ] || [ "$(sort -u "$work/texts" | wc -l)" -ne 1 ] ||
        ! grep -qF -e "$1" "$work/texts"; then
        echo "FAILED: '$2' and '$3': exit code $rc, '$1' expected from both ranks:" >&2
        cat "$work/err" >&2
        failures=$((failures + 1))
    fi
}

disagree "-m: 5 on rank 0, 7 on rank 1" "-m 5" "-m 7"
disagree "-n: 5 on rank 0, 7 on rank 1" "-n 5" "-n 7"
disagree "-t: f32 on rank 0, f64 on rank 1" "-t f32" "-t f64"
disagree "chunk list is 2,3 on rank 0 and 3,2 on rank 1" "-m 5 -c 2,3" "-m 5 -c 3,2"
disagree "-k: 5 on rank 0, 7 on rank 1" "-k 5" "-k 7"
disagree "-m: 5 on rank 0, 5,7 on rank 1" "-m 5" "-m 5,7"
disagree "-i: 1 on rank 0, 3 on rank 1" "" "-i 3"
disagree "--layers: 1 on rank 0, 2 on rank 1" "" "--layers 2"
disagree "--baselines: none on rank 0, serial loop gemm comm on rank 1" "--baselines none" ""
disagree "--data: integers on rank 0, random on rank 1" "" "--data random"
disagree "--op: column_linear on rank 0, row_linear on rank 1" "--op column_linear" ""
disagree "--sequence-parallel: not given on rank 0, given on rank 1" "" "--sequence-parallel"
disagree "--effort: estimate on rank 0, measure on rank 1" "--effort estimate" ""
disagree "--reduction: f32 on rank 0, native on rank 1" "--reduction f32" ""

# one rank's own usage error ends both
checks=$((checks + 1))
# shellcheck disable=SC2086
timeout 10 "$mpiexec" -np 1 "$perf" $small -m 5 : -np 1 "$perf" $small -m x >"$work/out" 2>"$work/err"
rc=$?
if [ $rc -ne 2 ] || ! grep -q "rank 1: -m: 'x' is not a whole number" "$work/err"; then
    echo "FAILED: bad -m on rank 1: exit code $rc" >&2
    cat "$work/err" >&2
    failures=$((failures + 1))
fi

echo "$checks checks, $failures failed"
[ $failures -eq 0 ]
