#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the build into a prefix, moves the prefix, and builds and runs a consumer from there, once with CMake
# and once with pkg-config.
# Usage: run.sh BUILD_DIRECTORY CMAKE C_COMPILER
set -euo pipefail

build=$1 cmake=$2 compiler=$3
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    printf 'package: %s\n' "$*" >&2
    exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/moved"
prefix=$work/moved

if found=$(grep -rIl -e "$work/first" -e "$build" "$prefix"); then
    fail "these installed files hold a path of the build or of the first prefix: $found"
fi
if found=$(find "$prefix" -name '*starlin_core*' | grep .); then
    fail "the internal archive is installed: $found"
fi
library=$(find "$prefix" -name 'libstarlin.so' | grep .) || fail "no shared library is installed"
"$source/../abi/symbols.sh" "$library" >"$work/symbols.log" || { cat "$work/symbols.log"; fail "wrong symbols"; }

# each public header that needs nothing else stands alone, in C and in C++
printf '#include <starlin/starlin.h>\n' >"$work/alone.c"
"$compiler" -std=c11 -pedantic -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/alone.c"
if command -v g++ >/dev/null; then
    g++ -x c++ -std=c++11 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/alone.c"
fi

"$cmake" -S "$source" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" \
    >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "find_package(starlin) failed"; }
"$cmake" --build "$work/build" >>"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "the consumer does not build"; }
timeout 60 "$work/build/consumer" || fail "the consumer built with CMake failed"

export PKG_CONFIG_PATH=${library%/*}/pkgconfig
read -r -a flags < <(pkg-config --cflags --libs starlin)
"$compiler" -std=c11 "$source/consumer.c" "${flags[@]}" -o "$work/consumer"
LD_LIBRARY_PATH=${library%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 60 "$work/consumer" ||
    fail "the consumer built with pkg-config failed"

if [ -x "$prefix/bin/starlin-perf" ]; then
    timeout 60 "$prefix/bin/starlin-perf" --help >"$work/help.txt" || fail "the installed tool does not start"
    [ -s "$prefix/share/man/man1/starlin-perf.1" ] || fail "no man page is installed"
fi
