#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that was written against the last release runs with today's library: it is compiled with the headers
# that tests/abi/freeze kept, and every function of theirs is still exported.
# Usage: run.sh LIBRARY C_COMPILER
set -euo pipefail
library=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -e "$here/include/starlin/starlin.h" ]; then
    echo "skipped: no release has been frozen yet (tests/abi/freeze)"
    exit 77
fi
"$here/symbols.sh" "$library" "$here/include/starlin"
"$compiler" -std=c11 -I"$here/include" "$here/program.c" -L"$(dirname "$library")" -lstarlin \
    -Wl,-rpath,"$(dirname "$library")" -lm -o "$work/program"
timeout 60 "$work/program"
