# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034
# What the tests on several hosts share: hosts of their own, which are gone when the test ends, however it ends.
# usage: . hosts_lib.sh HOSTS_SCRIPT STARLIN_PERF
set -euo pipefail

hosts=$1 perf=$2
export STARLIN_HOSTS=t$$ STARLIN_HOSTS_TIMEOUT_S=60
work=$(mktemp -d)

clean_up() {
    "$hosts" down
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "FAILED: $*" >&2
    [ ! -s "$work/out" ] || sed 's/^/    /' "$work/out" >&2
    exit 1
}

# hosts_up COUNT RATE: ends the test as skipped where hosts cannot be made
hosts_up() {
    local status=0
    timeout 30 "$hosts" up "$@" || status=$?
    [ "$status" != 77 ] || exit 77
    [ "$status" = 0 ] || fail "hosts up $*: exit code $status"
}
