#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a test program under valgrind: no invalid access, no leak of ours. Exit code 77: valgrind is not here.
# usage: valgrind.sh PROGRAM
here=$(dirname "$0")
if ! command -v valgrind >/dev/null; then
    echo "valgrind is not here"
    exit 77
fi
# one worker: valgrind runs one thread at a time, and idle workers spin
STARPU_NCPU=1 STARPU_SILENT=1 OPENBLAS_NUM_THREADS=1
export STARPU_NCPU STARPU_SILENT OPENBLAS_NUM_THREADS
exec valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite,indirect --error-exitcode=9 \
    --fair-sched=try --suppressions="$here/valgrind.supp" "$1"
