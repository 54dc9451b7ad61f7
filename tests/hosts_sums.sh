#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Right sums over TCP between two hosts: all dtypes, a shape that nothing divides, one and two ranks a host, chunks
# chosen by the library and given, layers back to back.
# usage: hosts_sums.sh HOSTS_SCRIPT STARLIN_PERF
# shellcheck source=tests/hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh"

hosts_up 2 1gbit
for ranks in 2 4; do
    timeout 70 "$hosts" run "$ranks" "$perf" -m 37 -n 19 -k 23 -t f32,f64,f16,bf16 -c '5;1;auto' -i 2 -w 1 \
        --baselines none >"$work/out" 2>&1 || fail "$ranks ranks: exit code $?"
    grep -q '^# 12 cases, 0 wrong elements' "$work/out" || fail "$ranks ranks: not all sums were checked"
    grep -q "comm mpi ($ranks ranks summed)" "$work/out" || fail "$ranks ranks: not over MPI"
done
timeout 70 "$hosts" run 2 "$perf" -m 256 -n 512 -k 512 -t f32,bf16 -c '4;auto' --layers 4 -i 2 -w 1 \
    >"$work/out" 2>&1 || fail "layers: exit code $?"
grep -q '^# 4 cases, 0 wrong elements' "$work/out" || fail "layers: not all sums were checked"
echo "sums over two hosts are right"
