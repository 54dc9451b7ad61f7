#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What starlin-perf reads and writes: a full disk is no success and spoils no older file; strange tensors and names
# do no harm; numbers of weights that are not finite are counted apart.
# usage: perf_files.sh STARLIN_PERF
perf=$1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export STARLIN_WISDOM="$work/wisdom"
failures=0 checks=0
small="-m 8 -n 4 -k 6 -c 2 -i 1 -w 0 --baselines none"

fail()
{
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# the table
checks=$((checks + 1))
# shellcheck disable=SC2086
timeout 60 "$perf" $small >/dev/full 2>"$work/err"
rc=$?
if [ $rc -ne 1 ] || ! grep -q "stdout" "$work/err"; then fail "a table to /dev/full: exit code $rc: $(cat "$work/err")"; fi

# JSON: a limit on the size of files is as good as a full disk
for format in json trace; do
    checks=$((checks + 1))
    echo "older" >"$work/out.json"
    # shellcheck disable=SC2086
    (trap '' XFSZ; ulimit -f 0; timeout 60 "$perf" $small --$format "$work/out.json" 2>"/dev/null" | cat >/dev/null; exit 0)
    if [ "$(cat "$work/out.json")" != older ] || [ "$(find "$work" -name 'out.json*' | wc -l)" -ne 1 ]; then
        fail "--$format on a full disk: $(ls -l "$work")"
    fi
done
checks=$((checks + 1))
# shellcheck disable=SC2086
timeout 60 "$perf" $small --json /dev/full >"$work/out" 2>"$work/err"
rc=$?
if [ $rc -ne 1 ] || ! grep -q -e "--json: cannot write '/dev/full'" "$work/err"; then fail "--json /dev/full: exit code $rc"; fi

# tensors
python3 - "$work/a:b" <<'PYTHON'
import json
import struct
import sys

tensors = {"strange": ("F8_E8M0", [3], b"abc"), "deep": ("U8", [1] * 9, b"x"),
           "layer:kernel:0": ("F32", [2, 3], struct.pack("<6f", 1, -2, 3, 0.5, 4, 7)),
           "broken": ("F32", [2, 3], struct.pack("<6f", 1, float("nan"), 3, 0.5, 4, 7)),
           "large": ("F64", [2, 3], struct.pack("<6d", 1, 1e300, 3, 0.5, 4, 7))}
header, data = {}, b""
for name, (dtype, shape, raw) in tensors.items():
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
weights="-m 8 -c 2 -i 1 -w 0"
checks=$((checks + 3))
# shellcheck disable=SC2086
timeout 60 "$perf" $weights --weights "$work/a:b:layer:kernel:0" >"$work/out" 2>&1 ||
    fail "a name with colons: $(cat "$work/out")"
grep -q '^# 1 case, 0 wrong elements$' "$work/out" || fail "a name with colons: $(cat "$work/out")"
for tensor in broken large; do
    # shellcheck disable=SC2086
    timeout 60 "$perf" $weights -t f32 --weights "$work/a:b:$tensor" --json "$work/$tensor.json" >"$work/out" 2>&1 ||
        fail "$tensor weights: $(cat "$work/out")"
    grep -Eq '^# 1 case, 0 wrong elements, [0-9]+ not finite because of the weights$' "$work/out" ||
        fail "$tensor weights: $(cat "$work/out")"
done
python3 -c 'import json, sys; row, = json.load(open(sys.argv[1]))["rows"]; assert row["wrong"] == 0 and row["nonfinite"] == 8, row' \
    "$work/broken.json" || fail "JSON of broken weights"

echo "$checks checks, $failures failed"
[ $failures -eq 0 ]
