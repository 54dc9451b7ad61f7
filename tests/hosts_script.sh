#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/hosts itself: what it refuses, sets side by side, that the links have their rate, and that nothing is left.
# usage: hosts_script.sh HOSTS_SCRIPT STARLIN_PERF
# shellcheck source=tests/hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh"

# expect CODE COMMAND...
expect() {
    local expected=$1 status=0
    shift
    timeout 60 "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ "$status" = "$expected" ] || fail "exit code $status instead of $expected: $*"
}

expect 2 "$hosts"
expect 2 "$hosts" up
expect 2 "$hosts" up many 1gbit
expect 2 "$hosts" up 0 1gbit
expect 2 env STARLIN_HOSTS='a b' "$hosts" down
expect 0 "$hosts" --help
expect 0 "$hosts" down # none is up
expect 1 "$hosts" run 2 true
mkdir "$work/bin" # where the tools are missing, it says which
for tool in bash readlink; do ln -s "$(command -v "$tool")" "$work/bin"; done
expect 77 env PATH="$work/bin" "$hosts" up 2 1gbit
grep -q "^skipped: no 'ip' here" "$work/out" || fail "no reason for skipping"

hosts_up 2 80mbit
expect 1 "$hosts" up 2 80mbit
expect 2 "$hosts" cut 2
expect 0 env STARLIN_HOSTS="${STARLIN_HOSTS}b" "$hosts" up 1 1gbit
expect 2 env STARLIN_HOSTS="${STARLIN_HOSTS}c" "$hosts" up 1 fast
expect 0 "$hosts" run 4 hostname
[ "$(sort "$work/out" | tr '\n' ' ')" = "host0 host0 host1 host1 " ] || fail "ranks are not on both hosts"
expect 3 "$hosts" run 2 sh -c 'exit 3'
expect 124 env STARLIN_HOSTS_TIMEOUT_S=2 "$hosts" run 2 sleep 50

# a sum over 1 MB takes 100 ms at 80 Mbit/s, and the time of nothing where the link has no rate
expect 0 "$hosts" run 2 "$perf" -m 256 -n 1024 -k 2 -c 1 -i 3 -w 1 --baselines none --json "$work/json"
median=$(tr -d '\n ' <"$work/json" | sed -n 's/.*"median":\([0-9]*\).*/\1/p')
if [ "$median" -lt 80000 ] || [ "$median" -gt 2000000 ]; then fail "1 MB took $median us over 80 Mbit/s"; fi

expect 0 env STARLIN_HOSTS="${STARLIN_HOSTS}b" "$hosts" down
expect 0 "$hosts" run 2 true # the other set still stands
expect 0 "$hosts" down
! ip netns list | grep "starlin-$STARLIN_HOSTS" || fail "namespaces are left"
! ls -d /tmp/starlin-hosts-"$STARLIN_HOSTS"* /sys/fs/cgroup/{,cpuset/}starlin-"$STARLIN_HOSTS"* 2>/dev/null ||
    fail "files are left"
echo "hosts come and go"
