#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the library promises its host program, as far as its source can show it: one file reads and changes the
# environment, one prints, and nothing ends the process.
set -uo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" || exit 1

failures=0
# only PATTERN FILE WHAT: words that match the pattern stand in this file alone, where they must stand
only() {
    local hits
    hits=$(grep -rnE "$1" src codelets --include='*.[ch]' --include='*.cu' --include='*.in' | grep -v "^$2:")
    if [ -n "$hits" ]; then
        printf '%s:\n%s\n' "$3" "$hits"
        failures=$((failures + 1))
    fi
    if [ "$2" != none ] && ! grep -qE "$1" "$2"; then
        printf 'the pattern "%s" no longer finds anything in %s\n' "$1" "$2"
        failures=$((failures + 1))
    fi
}

only '\b((secure_)?getenv|(un)?setenv|putenv|clearenv|environ)\b *[(;]' src/base/config.c \
    'the environment is the business of src/base/config.c'
only '[(,] *(stdout|stderr) *[,)]|\b(printf|vprintf|puts|putchar|perror|psignal) *\(' src/base/status.c \
    'src/base/status.c prints, where STARLIN_LOG asks for it'
only '(^|[^>.a-zA-Z_])(abort|exit|_exit|_Exit|quick_exit|raise|kill|STARPU_(ASSERT|ABORT)[A-Z_]*) *\(' none \
    'the library never ends its host program'

# the table of the library's variables is what the README tells
while IFS= read -r variable; do
    grep -qF "\`$variable\`" README.md || { echo "README.md does not explain $variable"; failures=$((failures + 1)); }
done < <(grep -oE '"STARLIN_[A-Z_0-9]+"' src/base/config.h | tr -d '"')

[ "$failures" = 0 ] || exit 1
echo "the sources keep the promises"
