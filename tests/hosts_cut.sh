#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A link that goes away: for good, the ranks give up after STARLIN_TIMEOUT_MS with an error that says so; for a second, TCP
# sends again and the sums are right.
# usage: hosts_cut.sh HOSTS_SCRIPT STARLIN_PERF
# shellcheck source=tests/hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh"

# start COMMAND...: in the background, until its table's header shows that the ranks are at work
start() {
    "$@" >"$work/out" 2>&1 </dev/null &
    job=$!
    within 30 grep -q '^# *m ' "$work/out"
}

# within SECONDS COMMAND...: waits until the command succeeds
within() {
    local seconds=$1 i
    shift
    for ((i = 0; i < seconds * 10; i++)); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "not within $seconds s: $*"
}

ended() {
    ! kill -0 "$job" 2>/dev/null
}

steps=(-m 1024 -n 1024 -k 256 -c 16 -w 1 --baselines none)
hosts_up 2 400mbit

start "$hosts" run 2 "$perf" "${steps[@]}" -i 30
sleep 0.5
! ended || fail "it ended before the link was cut"
"$hosts" cut 1
sleep 1
! ended || fail "it ended without the link"
"$hosts" mend 1
status=0
wait "$job" || status=$?
[ "$status" = 0 ] || fail "after a second without a link: exit code $status"
grep -q '^# 1 case, 0 wrong elements' "$work/out" || fail "after a second without a link: wrong sums"

export STARLIN_TIMEOUT_MS=2000
start "$hosts" run 2 "$perf" "${steps[@]}" -i 1000
"$hosts" cut 1
within 20 grep -q 'did not complete within 2000 ms' "$work/out"
"$hosts" mend 1 # without it mpirun could not end the other host's rank
within 30 ended
status=0
wait "$job" || status=$?
if [ "$status" = 0 ] || [ "$status" = 124 ]; then fail "no link: exit code $status"; fi
echo "a link may go away"
