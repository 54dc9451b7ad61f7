#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The tool stands outside of the library: no header of its insides is included, and a copy of tools/ builds
# against an installed library and runs.
# Usage: tool_outside.sh BUILD_DIRECTORY CMAKE C_COMPILER USE_MPI
set -euo pipefail

build=$1 cmake=$2 compiler=$3 mpi=$4
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    printf 'tool_outside: %s\n' "$*" >&2
    exit 1
}

# quoted includes are the tool's own files; names with a double underscore are the library's insides
cd "$source/tools"
while IFS=: read -r file header; do
    [ -e "perf/$header" ] || [ -e "trace/$header" ] || fail "$file includes \"$header\", which is not the tool's"
done < <(grep -rEo '^ *# *include *"[^"]+"' . | sed -E 's/:[^"]*"([^"]+)"/:\1/')
if found=$(grep -rnE 'starlin__|STARLIN__|\.\./\.\./(src|codelets)' . --include='*.[ch]' --include='*.cu' --include=CMakeLists.txt); then
    fail "something of the library's insides is named: $found"
fi

cp -r "$source/tools" "$work/tools"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
rm -f "$work/prefix/bin/starlin-perf"
"$cmake" -S "$work/tools" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DSTARLIN_USE_MPI="$mpi" -DSTARLIN_WERROR=ON >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "does not configure"; }
"$cmake" --build "$work/build" >>"$work/cmake.log" 2>&1 || { tail -40 "$work/cmake.log"; fail "does not build"; }
perf=$work/build/bin/starlin-perf
library=$(find "$work/prefix" -name 'libstarlin.so' | grep .) || fail "no library is installed"
ldd "$perf" >"$work/libraries"
grep -q "libstarlin.so.* => ${library%/*}/" "$work/libraries" || { cat "$work/libraries"; fail "it does not use the installed library"; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
timeout 60 "$perf" -m 37 -n 19 -k 23 -c '3;1' -i 2 -w 1 >"$work/out" 2>&1 || { cat "$work/out"; fail "it does not run"; }
grep -q '^# 2 cases, 0 wrong elements$' "$work/out" || { cat "$work/out"; fail "it does not check"; }
echo "the tool stands outside"
