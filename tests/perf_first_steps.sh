#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A plan that starlin-perf's warm-ups show to be wrong: table, JSON and explanation tell what really ran. The tune
# file says that a collective's time is proportional to its size, but the link has a latency of 40 ms.
# usage: perf_first_steps.sh STARLIN_PERF
perf=$1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
STARLIN_TUNE_DIR=$work/curves
export STARLIN_TUNE_DIR

# run NAME arguments...
run()
{
    name=$1
    shift
    timeout 150 "$perf" --comm model:gbps=100,latency_us=40000,ranks=2 -m 64 -n 16 -k 16 -i 2 -w 1 --baselines none \
        --json "$work/$name.json" "$@" >"$work/$name" 2>&1 || {
        cat "$work/$name"
        exit 1
    }
}

run tuning --tune
sed -i -e 's/^gemm .*/gemm 2 1 600 64 40000/' -e 's/^collective .*/collective 2 64 600 4096 40000/' \
    "$work/curves/curves-1.txt" || exit 1
run on --explain
STARLIN_TRIAL=off
export STARLIN_TRIAL
run off --explain
python3 - "$work" <<'PYTHON'
import json
import re
import sys

work, = sys.argv[1:]
on, off = (json.load(open("%s/%s.json" % (work, name)))["rows"][0] for name in ("on", "off"))
assert on["plan"]["tuned"] and on["plan"]["lists"] == 0, on
assert off["fallback"] is None and len(off["chunks"]) >= 4 and off["tasks"] == 2 * len(off["chunks"]), off
assert re.fullmatch(r"%d chunks took \d+ us per layer in the first steps, one chunk \d+ us: replaced from operator 23 on"
                    % len(off["chunks"]), on["fallback"]), on
assert on["chunks"] == [64] and on["tasks"] == 2 and on["wrong"] == 0, on
assert on["time_us"]["median"] < off["time_us"]["median"], (on, off)
assert on["plan"]["predicted_us"] == on["plan"]["serial_us"] and on["plan"]["tried_us"] is None, on
text = open(work + "/on").read()
assert "(fallback: " + on["fallback"] in text, text
assert "#   first steps: " + on["fallback"] in text, text
assert "not tried in the first steps: STARLIN_TRIAL is off" in open(work + "/off").read()
print("what ran is what is told")
PYTHON
