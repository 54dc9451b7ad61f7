#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two ranks of starlin-perf: one trace with the spans of both on one clock, in all three formats, and reports.
# usage: perf_ranks.sh STARLIN_PERF MPIEXEC
perf=$1 mpiexec=$2
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export STARLIN_WISDOM="$work/wisdom"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

for op in "row_linear" "column_linear --sequence-parallel"; do
    for format in json html svg; do
        # shellcheck disable=SC2086
        timeout 60 "$mpiexec" -np 2 "$perf" --op $op -m 64 -n 32 -k 32 -c 4 -i 2 -w 1 --report --trace "$work/${op%% *}.$format" \
            >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
        grep -q '^exposed .* us beyond the ideal' "$work/out" || { echo "no report"; cat "$work/out"; exit 1; }
    done
done
python3 - "$work" <<'PYTHON'
import json
import re
import sys
import xml.etree.ElementTree

for op, collective in ("row_linear", "allreduce"), ("column_linear", "allgather"):
    events = json.load(open(f"{sys.argv[1]}/{op}.json"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {1, 2}, op
    for rank in 1, 2:
        for kind in "gemm", "collective":
            mine = [event for event in spans if event["pid"] == rank and event["cat"] == kind]
            assert len(mine) == 3 * 4, (op, rank, kind, len(mine))  # three steps of four chunks
            assert {event["args"]["chunk"] for event in mine} == {0, 1, 2, 3}
        names = {event["name"].split()[0] for event in spans if event["pid"] == rank}
        assert names == {"gemm", collective}, (op, names)
    # one clock: no rank's collective ends before the other has handed in its own
    both = {}
    for event in spans:
        if event["cat"] == "collective":
            both.setdefault((event["args"]["operator"], event["args"]["chunk"]), []).append(event)
    for pair in both.values():
        launched = max(event["ts"] - event["args"]["launch_to_start_us"] for event in pair)
        assert len(pair) == 2 and launched <= min(event["ts"] + event["dur"] for event in pair) + 1, pair
    # an arrow between the two stages of each chunk
    assert sum(event["ph"] == "s" for event in events) == len(spans) / 2
    page = open(f"{sys.argv[1]}/{op}.html").read()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
    assert {op, "gemm", collective} == set(data["names"]), data["names"]
    assert [len(rank["spans"]) for rank in data["groups"][0]["ranks"]] == [24, 24]
    xml.etree.ElementTree.parse(f"{sys.argv[1]}/{op}.svg")
print("two ranks in one trace")
PYTHON
