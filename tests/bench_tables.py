#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks make of starlin-perf's rows: ratios, targets, and a chart that is sound XML."""
import os
import sys
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
sys.dont_write_bytecode = True
import bench_chart  # noqa: E402
import bench_common  # noqa: E402
import bench_hosts  # noqa: E402
import bench_nccl  # noqa: E402
import bench_overlap  # noqa: E402


def perf_row(median_us, chunks, **more):
    return {"m": sum(chunks), "n": 8, "k": 8, "dtype": "f32", "layers": 1, "chunks": chunks, "fallback": None,
            "wrong": 0, "time_us": {"median": median_us}, "serial_us": 140.0, "ideal_us": 100.0, "gemm_us": 100.0,
            "comm_us": 40.0, "loop_us": 110.0, "loop_chunks": 4, "loops_us": {"2": 120.0, "4": 110.0},
            "hidden_pct": 100 * (140 - median_us) / 40, **more}


def row(group, gbps, auto_us, **more):
    fixed = [perf_row(140.0, [16]), perf_row(104.0, [8, 8])]
    return bench_overlap.judge(bench_overlap.row_of(group, gbps, perf_row(auto_us, [12, 4], **more), fixed))


def check(what, value, expected):
    if value != expected:
        sys.exit(f"bench_tables: {what} is {value!r}, expected {expected!r}")


good = row("b", 60, 105.0, plan={"predicted_us": 94.5})
check("best list", good["best_chunks"], [8, 8])
check("auto/best", round(good["auto_best"], 4), 1.0096)
check("prediction error", round(good["prediction_error_pct"], 6), -10.0)
check("pass", good["pass"], True)
check("missed", row("b", 60, 142.0)["missed"], ["best<=1.02", "serial<=1.01"])
check("step", row("a", 223, 102.0)["pass"], True)
check("step against two chunks", row("a", 223, 109.0)["missed"], ["ideal<=1.03", "loop2<=0.9"])
check("step without loops", row("a", 223, 109.0, loops_us=None)["missed"], ["ideal<=1.03"])
check("layers", row("c", 60, 106.0)["pass"], True)
check("hidden", row("d", 1, 105.0)["missed"], ["hidden>=90"])
check("a collective that cannot be hidden", row("d", 1, 105.0, comm_us=120.0)["pass"], None)
check("wrong elements", row("c", 60, 100.0, wrong=3)["missed"], ["exact"])
check("without a plan", row("c", 60, 100.0, plan=None)["prediction_error_pct"], None)
for group in "ad":  # nothing measured beside it
    bench_overlap.table_row(row(group, 223, 100.0, loop_us=None, loops_us=None, loop_chunks=None))
for words, expected in (([], ("random", False, False, True)), (["--data", "integers"], ("integers", True, False, True)),
                        (["--check"], ("integers", True, True, True))):
    options = bench_overlap.parse(["--perf", "none", "--cpu", *words])
    check(f"data {words}", (options.data, *(bench_overlap.data_of(group, options)[1] for group in "cbd")), expected)
    check(f"data of the CPU {words}", bench_overlap.data_of("d", options)[0], "integers")
    check(f"data of the sweep {words}", bench_overlap.data_of("b", options)[0], expected[0])
check("chunk list", bench_common.run_lengths([512, 512, 256]), "512x2,256")

torch = {"rows": [{"data": data, "chunks": chunks, "median_ms": ms} for data, chunks, ms in
                  (("random", 1, 0.2), ("random", 8, 0.4), ("integers", 1, 0.125))]}
ratios = bench_nccl.compare({"rows": [perf_row(150.0, [16]), perf_row(100.0, [12, 4])]}, torch)
keys = "auto_torch_best_random", "auto_torch8_random", "auto_torch_best_integers", "auto_torch8_integers"
check("auto/torch", [ratios[key] for key in keys], [0.5, 0.25, 0.8, None])
check("auto without torch", bench_nccl.compare({"rows": [perf_row(150.0, [16])] * 2}, None)["auto_torch8_random"], None)

case = {"link": "400mbit", "hosts": 2, "shape": "tall", "dtype": "f32", "layers": 1}
counts = [perf_row(us, [16]) for us in (200.0, 150.0, 104.0, 120.0, 130.0)]
line = bench_hosts.row_of(case, [*counts, perf_row(108.0, [8, 8])])
check("best count", (line["best_count"], line["missed"], line["pass"]), (8, [], True))
check("link", (line["link_us"], line["limited_by"]), (16 * 8 * 4 * 8 / 400, "gemm"))
check("3 hosts", round(bench_hosts.link_us(3, 1000, "bf16", 3, "1.6gbit"), 6), 40.0)
check("slow auto", bench_hosts.row_of(case, [*counts, perf_row(117.0, [16])])["missed"], ["best", "loop"])
check("slow chain", bench_hosts.row_of({**case, "layers": 4}, [*counts, perf_row(105.0, [16], loop_us=104.0)])["missed"],
      ["loop"])
check("wrong sums", bench_hosts.row_of(case, [*counts[1:], perf_row(99.0, [16]), perf_row(99.0, [16], wrong=1)])["pass"],
      False)
check("columns", len(bench_hosts.table_row(line)), len(bench_hosts.NAMES))
repeated = bench_hosts.parse(["--perf", "none", *bench_hosts.command_of(case).split()[2:]])
check("one command a line", [cases for _, _, cases in bench_hosts.cases_of(repeated)], [[case]])

about = {"gpus": [], "cpu": "A & B <C>", "cores": 2}
for speeds in ([1], [30, 60, 450]):
    rows = [row("b", gbps, auto_us, loop_us=900.0 if gbps == 60 else None) for gbps in speeds for auto_us in (101.0,)]
    svg = xml.dom.minidom.parseString(bench_chart.draw(rows, about))
    lines = [path for path in svg.getElementsByTagName("path") if path.hasAttribute("clip-path")]
    check("lines", len(lines), 3 if 60 in speeds else 2)
print("tables and charts are sound")
