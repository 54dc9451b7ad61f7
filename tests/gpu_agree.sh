#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# On exact inputs the device gives the same bits through nccl as through mpi, and the same numbers as the host.
# usage: gpu_agree.sh BIN_DIR
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/gpu_lib.sh
. "$here/gpu_lib.sh"
program=$1/test_gpu_operators
failures=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# hashes NAME RANKS [VARIABLE=VALUE...]: the last line of a run on small shapes
hashes() {
    name=$1 count=$2
    shift 2
    # shellcheck disable=SC2016
    env STARLIN_SHARE_GPU=1 "$@" /bin/sh -c '. "$1"; ranks "$2" "$3" small' - "$here/gpu_lib.sh" "$count" \
        "$program" >"$scratch/$name" 2>"$scratch/$name.err"
    code=$?
    if [ "$code" = 77 ]; then
        cat "$scratch/$name"
        exit 77
    fi
    if [ "$code" != 0 ] || ! grep -q ' bits ' "$scratch/$name"; then
        echo "$name on $count ranks: exit code $code"
        tail -n 20 "$scratch/$name" "$scratch/$name.err"
        failures=$((failures + 1))
    fi
    grep ' bits ' "$scratch/$name" | tail -n 1
}

# field NAME WORD: what follows the word
field() {
    sed -n "s/.* $2 \([0-9a-f]*\).*/\1/p" "$scratch/$1" | tail -n 1
}

# same NAME NAME WORD
same() {
    if [ -z "$(field "$1" "$3")" ] || [ "$(field "$1" "$3")" != "$(field "$2" "$3")" ]; then
        echo "the $3 of $1 and $2 differ"
        failures=$((failures + 1))
    fi
}

for count in 1 2 4; do
    hashes "nccl-$count" "$count" STARLIN_COMM=nccl
    hashes "mpi-$count" "$count" STARLIN_COMM=mpi
    hashes "cpu-$count" "$count" STARLIN_COMM=mpi STARLIN_COMPUTE=cblas
    same "nccl-$count" "mpi-$count" bits
    same "nccl-$count" "cpu-$count" numbers
done
[ "$failures" = 0 ] || exit 1
echo "nccl, mpi and the host agree"
