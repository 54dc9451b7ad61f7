#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The JSON and the trace of starlin-perf: every field is there, and the figures fit each other.
# usage: perf_json.sh STARLIN_PERF
perf=$1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export STARLIN_WISDOM="$work/wisdom"

timeout 100 "$perf" --comm model:gbps=0.5,latency_us=20,ranks=4 -m 1,256 -n 64 -k 64 -c "4;auto" -t f32,bf16 -i 5 -w 1 \
    --json "$work/all.json" >"$work/out" || { cat "$work/out"; exit 1; }
timeout 100 "$perf" --comm model:gbps=0.5 -m 64 -n 64 -k 64 -i 2 -w 1 --effort estimate --json "$work/estimated.json" >"$work/out" ||
    { cat "$work/out"; exit 1; }
timeout 100 "$perf" -m 10 -n 4 -k 4 -c 6,4 -i 2 -w 0 --layers 3 --baselines none --check off --json "$work/few.json" --trace "$work/trace.json" \
    >"$work/out" || { cat "$work/out"; exit 1; }
timeout 100 "$perf" -m 8 -n 8 -k 8 -t f32,f64,f16,bf16 -c 2 -i 1 -w 0 --layers 3 --baselines loop --data random --json "$work/random.json" \
    >"$work/out" || { cat "$work/out"; exit 1; }
python3 - "$work/all.json" "$work/few.json" "$work/random.json" "$work/trace.json" "$work/estimated.json" <<'PYTHON'
import json
import sys

everything, few, random, trace, estimated = (json.load(open(path)) for path in sys.argv[1:])
top = "schema_version op sequence_parallel model ranks policy comm compute data host devices starpu_version rows".split()
fields = ("m n k dtype layers chunks time_us serial_us loop_us loop_chunks loops_us gemm_us comm_us ideal_us hidden_pct tasks "
          "fallback wrong nonfinite plan").split()
for results in everything, few, random:
    assert all(name in results for name in top), results.keys()
    assert results["schema_version"] == 1 and results["ranks"] == 1 and results["devices"] == ["CPU"], results
    for row in results["rows"]:
        assert sorted(row) == sorted(fields), row.keys()
        time = row["time_us"]
        assert 0 < time["min"] <= time["median"] <= time["p99"] <= time["max"], time
        assert time["min"] <= time["mean"] <= time["max"], time
        assert sum(row["chunks"]) == row["m"], row
assert everything["comm"] == "model" and everything["compute"] == "cblas"
assert everything["data"] == "integers" and few["data"] == "integers" and random["data"] == "random"
assert [row["wrong"] for row in random["rows"]] == [None] * 4, random["rows"]
assert len(everything["rows"]) == 8
for number, row in enumerate(everything["rows"]):
    assert row["wrong"] == 0 and row["layers"] == 1, row
    assert row["tasks"] >= 2 * len(row["chunks"]), row
    assert sorted(row["loops_us"], key=int) == ["1", "2", "4", "8", "16", "32"], row
    assert row["loops_us"][str(row["loop_chunks"])] == row["loop_us"] == min(row["loops_us"].values()), row
    assert abs(row["ideal_us"] - max(row["gemm_us"], row["comm_us"])) < 1e-3, row
    hidden = 100 * (row["serial_us"] - row["time_us"]["median"]) / min(row["gemm_us"], row["comm_us"])
    shorter, longer = sorted((row["gemm_us"], row["comm_us"]))
    means_something = shorter >= 0.01 * longer and shorter >= row["time_us"]["spread"]
    assert (row["hidden_pct"] is not None) == means_something, row
    assert not means_something or abs(row["hidden_pct"] - hidden) < 0.1 + abs(hidden) / 1e4, (row, hidden)
    plan = row["plan"]
    assert (plan is not None) == (number % 2 == 1), row
    if plan is not None:
        assert plan["source"] in ("estimated", "measured", "wisdom") and plan["planning_us"] > 0, plan
        assert plan["predicted_us"] == (plan["tried_us"] or plan["simulated_us"]) > 0, plan
        assert plan["ctas"] is None and plan["gemm_us"] is None and plan["comm_us"] is None, plan
        assert plan["tuned"] == (plan["source"] == "wisdom"), plan
        error = 100 * (plan["predicted_us"] / row["time_us"]["median"] - 1)
        assert abs(plan["error_pct"] - error) < 0.1, (plan, error)
    if row["m"] == 1:
        assert row["chunks"] == [1] and (row["fallback"] is None) == (plan is not None), row
    elif number % 2 == 0:  # "4" comes before "auto"
        assert row["fallback"] is None and row["chunks"] == [64] * 4, row
assert {row["plan"]["source"] for row in everything["rows"] if row["plan"]} <= {"measured"}, everything
row, = estimated["rows"]
assert row["plan"]["source"] == "estimated" and row["plan"]["tried_us"] is None and row["plan"]["lists"] == 0, row
row, = few["rows"]
assert row["chunks"] == [6, 4] and row["layers"] == 3, row
for name in "serial_us loop_us loop_chunks loops_us gemm_us comm_us ideal_us hidden_pct fallback wrong nonfinite plan".split():
    assert row[name] is None, (name, row)
# three steps of three layers in two chunks
events = trace["traceEvents"] if isinstance(trace, dict) else trace
for kind in "gemm", "collective":
    count = sum(event.get("ph") == "X" and event["cat"] == kind for event in events)
    assert count == 3 * 3 * 2, (kind, count)
assert {event["args"]["op"] for event in events if event.get("ph") == "X"} == {"row_linear"}
print("results are sound")
PYTHON
