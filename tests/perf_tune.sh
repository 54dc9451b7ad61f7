#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# --tune stores curves that plans of the same run and of a later one start from; --explain says so.
# usage: perf_tune.sh STARLIN_PERF
perf=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
STARLIN_TUNE_DIR=$work/curves
export STARLIN_TUNE_DIR

# run FILE arguments...
run()
{
    file=$work/$1
    shift
    timeout 60 "$perf" --comm model:gbps=1 -m 64,128 -n 32 -k 48 -i 2 -w 1 "$@" >"$file" 2>&1 || {
        cat "$file"
        echo "FAILED: $*" >&2
        failures=$((failures + 1))
    }
}

# counts FILE TEXT NUMBER: so many lines hold the text
counts()
{
    count=$(grep -cF -e "$2" "$work/$1")
    [ "$count" -eq "$3" ] && return
    echo "FAILED: $count lines with '$2' in $1 instead of $3:" >&2
    cat "$work/$1" >&2
    failures=$((failures + 1))
}

run before --explain
run tuning --explain --tune
run after --explain
run fixed --explain -c "2;1"
run other --explain -n 33
counts before "costs: measured now" 2
counts tuning "# tuned n 32, k 48, f32: gemm at" 1
counts tuning "$work/curves/curves-1.txt" 1
counts tuning "costs: from the tune file" 2
counts after "costs: from the tune file" 2
counts after "median of this run" 2
counts after "planning took" 2
counts fixed "planning took" 0
counts other "costs: measured now" 2
[ "$failures" -eq 0 ] && echo "tuned curves are used"
exit $((failures > 0))
