#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The library exports what its public headers declare, under the version STARLIN_0, and nothing else.
# Usage: symbols.sh LIBRARY [HEADER_DIRECTORY]
set -uo pipefail
library=$1
headers=${2:-$(dirname "${BASH_SOURCE[0]}")/../../include/starlin}

failures=0
fail() {
    printf '%s\n' "$*"
    failures=$((failures + 1))
}

exported=$(nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" {print $3}' | sort)
[ -n "$exported" ] || fail "$library exports nothing"
if foreign=$(grep -vE '^starlin_[a-z][a-z0-9_]*@@STARLIN_0$' <<<"$exported"); then
    fail "exported, but not as a public function of version STARLIN_0:" "$foreign"
fi

declared=$(cat "$headers"/*.h | tr '\n' ' ' | grep -oE 'STARLIN_API [^;(]*\(' | grep -oE 'starlin_[a-z0-9_]+ *\($' |
    tr -d ' (' | sort -u)
[ -n "$declared" ] || fail "$headers declares nothing"
names=$(awk -F@ '{print $1}' <<<"$exported" | sort -u)
if [ $# -lt 2 ] && undeclared=$(comm -13 <(echo "$declared") <(echo "$names") | grep .); then
    fail "exported, but in no public header:" "$undeclared"
fi
if missing=$(comm -23 <(echo "$declared") <(echo "$names") | grep .); then
    fail "declared, but not exported:" "$missing"
fi

soname=$(objdump -p "$library" | awk '$1 == "SONAME" {print $2}')
[[ $soname =~ ^libstarlin\.so\.[0-9]+$ ]] || fail "SONAME is $soname, not libstarlin.so and the major version"

[ "$failures" = 0 ] || exit 1
wc -l <<<"$exported" | sed 's/$/ symbols of version STARLIN_0/'
