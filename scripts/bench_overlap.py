# SPDX-License-Identifier: BSD-3-Clause
"""Runs starlin-perf over shapes and link speeds, and compares `auto` with ideal, serial, fixed lists and loops.

Groups of cases: a - one step at the reference shape; b - sweep over M and link speed; c - eight layers back to
back; d - the CPU. Everything that a row compares was interleaved in one process.
"""
import argparse
import json
import os
import sys

import bench_chart
from bench_common import cell, gpus, log, machine, print_table, ratio, run_lengths, run_perf

EQUAL = ["1", "2", "4", "8", "16"]
# Shrinking chunks: little is left exposed at the end. By rows; none below 2048, where chunks would be too small.
SHRINKING = {
    2048: ["1024,512,512"],
    4096: ["1536,1536,512,512", "2048,1024,512,512"],
    8192: ["3072,3072,1536,512", "2048,2048,2048,1024,512,512", ",".join(["512"] * 14 + ["256"] * 4)],
    16384: ["6144,6144,3072,1024", "4096,4096,4096,2048,1024,1024", "8192,4096,2048,1024,512,512"],
}
STEP_TARGET = {223: 1.03, 120: 1.05, 60: 1.08}  # x ideal, by link speed
LAYERS_TARGET = {223: 1.02, 120: 1.03, 60: 1.06}


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="bench overlap")
    parser.add_argument("--perf", required=True)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", choices=["random", "integers"])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ctas", type=int)
    parser.add_argument("--only", default="a,b,c,d")
    parser.add_argument("--out", default="bench-results")
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("-i", dest="iterations", type=int)
    options = parser.parse_args(arguments)
    if options.check and options.data == "random":
        parser.error("--check: not with --data random, which has no exact result")
    options.data = options.data or ("integers" if options.check else "random")
    options.groups = options.only.split(",")
    if not set(options.groups) <= set("abcd"):
        parser.error("--only: a, b, c and d, separated by commas")
    if not options.gpu and not options.cpu:
        options.gpu, options.cpu = bool(gpus()), True
    elif options.gpu and not gpus():
        log("bench: no GPU is visible here")
        sys.exit(77)
    options.iterations = options.iterations or (5 if options.quick else 20)
    options.warmups = 2 if options.quick else 3
    return options


def data_of(group, options):
    """(what a group multiplies, whether its results are checked): random numbers have no exact result."""
    data = options.data if group != "d" else "integers"
    return data, data == "integers" and (options.check or group != "b")


def row_of(group, gbps, perf_row, fixed):
    """One line of results: the auto row of starlin-perf beside the rows of the fixed lists of the same process."""
    auto, ideal, serial = perf_row["time_us"]["median"], perf_row["ideal_us"], perf_row["serial_us"]
    best = min(fixed, key=lambda row: row["time_us"]["median"], default=None)
    best_us = best["time_us"]["median"] if best else None
    plan = perf_row.get("plan") or {}
    predicted = plan.get("predicted_us")
    loops = perf_row.get("loops_us") or {}
    return {
        "group": group, "gbps": gbps, "m": perf_row["m"], "n": perf_row["n"], "k": perf_row["k"],
        "dtype": perf_row["dtype"], "layers": perf_row["layers"],
        "auto_us": auto, "auto_chunks": perf_row["chunks"], "fallback": perf_row["fallback"],
        "gemm_us": perf_row["gemm_us"], "comm_us": perf_row["comm_us"], "ideal_us": ideal, "serial_us": serial,
        "loop_us": perf_row["loop_us"], "loop_chunks": perf_row["loop_chunks"], "loop2_us": loops.get("2"),
        "best_us": best_us, "best_chunks": best["chunks"] if best else None,
        "hidden_pct": perf_row["hidden_pct"], "wrong": perf_row["wrong"],
        "auto_ideal": ratio(auto, ideal), "auto_serial": ratio(auto, serial),
        "auto_best": ratio(auto, best_us), "auto_loop": ratio(auto, perf_row["loop_us"]),
        "auto_loop2": ratio(auto, loops.get("2")),
        "predicted_us": predicted, "simulated_us": plan.get("simulated_us"), "auto_ctas": plan.get("ctas"),
        "prediction_error_pct": 100 * (predicted / auto - 1) if predicted else None,
        "simulation_error_pct": 100 * (plan["simulated_us"] / auto - 1) if plan.get("simulated_us") else None,
    }


def judge(row):
    """(target in words, whether it is met or None): each condition that applies to the row."""
    conditions = []

    def at_most(name, value, limit):
        if value is not None:
            conditions.append((f"{name}<={limit:g}", value <= limit))

    if row["group"] == "a":
        at_most("ideal", row["auto_ideal"], STEP_TARGET[row["gbps"]])
        if row["gbps"] == 223:
            at_most("loop2", row["auto_loop2"], 0.9)
    elif row["group"] == "b":
        at_most("best", row["auto_best"], 1.02)
        at_most("serial", row["auto_serial"], 1.01)
    elif row["group"] == "c":
        at_most("ideal", row["auto_ideal"], LAYERS_TARGET[row["gbps"]])
        at_most("loop", row["auto_loop"], 1)
    elif row["comm_us"] <= row["gemm_us"] and row["hidden_pct"] is not None:
        conditions.append(("hidden>=90", row["hidden_pct"] >= 90))
    if row["wrong"]:
        conditions.append(("exact", False))
    row["target"] = " ".join(text for text, _ in conditions)
    row["missed"] = [text for text, met in conditions if not met]
    row["pass"] = not row["missed"] if conditions else None
    return row


class Sweep:
    def __init__(self, options):
        self.options = options
        self.raw = os.path.join(options.out, "raw")
        self.rows, self.lists, self.headers, self.seconds, self.failures, self.left_out = [], [], {}, 0.0, 0, 0
        os.makedirs(self.raw, exist_ok=True)

    def run(self, group, gbps, shape, chunkings, link, extra=()):
        """One process: all M of `shape` with the same chunkings, the last of which is auto."""
        options = self.options
        ms, n, k, dtype = shape
        left_s = options.limit - self.seconds
        if left_s < 10:
            self.left_out += 1
            return
        name = f"{group}-{gbps:g}-{ms[0]}.json"
        data, check = data_of(group, options)
        result, seconds = run_perf(
            options.perf,
            ["-m", ",".join(map(str, ms)), "-n", n, "-k", k, "-t", dtype, "-c", ";".join(chunkings),
             "--comm", f"model:gbps={gbps:g},ranks=2,{link}", "-i", options.iterations, "-w", options.warmups,
             "--data", data, "--check", "on" if check else "off", *extra], os.path.join(self.raw, name),
            limit_s=min(300, left_s))
        self.seconds += seconds
        if result is None:
            self.failures += 1
            return
        self.headers[group] = {key: result.get(key) for key in
                               ("version", "starpu_version", "policy", "compute", "comm", "data", "devices", "host")}
        per_m = len(chunkings)
        for i, _ in enumerate(ms):
            rows = result["rows"][i * per_m:(i + 1) * per_m]
            row = judge(row_of(group, gbps, rows[-1], rows[:-1]))
            self.rows.append(row)
            self.lists.append({"group": group, "gbps": gbps, "rows": rows})
            log(f"  {group} {gbps:g} GB/s M={row['m']}: auto {row['auto_us'] / 1000:.3f} ms, "
                f"{cell(row['auto_ideal'])} x ideal, {cell(row['auto_serial'])} x serial")

    def gpu(self):
        ctas = f",ctas={self.options.ctas}" if self.options.ctas else ""  # else 8
        quick, link = self.options.quick, "latency_us=10" + ctas
        groups = self.options.groups
        gpu = ["--compute", "cublas"]
        if "a" in groups:
            for gbps in (223, 120, 60):
                self.run("a", gbps, ([8192], 8192, 16384, "bf16"), ["auto"], link, gpu)
        if "c" in groups:
            for gbps in (223, 120, 60):
                self.run("c", gbps, ([8192], 8192, 16384, "bf16"), ["auto"], link, [*gpu, "--layers", 8])
        if "b" in groups:
            for gbps in (60, 223) if quick else (30, 60, 120, 223, 450):
                # the M without lists of their own share a process
                for ms in ([2048], [8192]) if quick else ([512, 1024], [2048], [4096], [8192], [16384]):
                    lists = EQUAL + SHRINKING.get(ms[0], []) + ["auto"]
                    self.run("b", gbps, (ms, 8192, 16384, "bf16"), lists, link, gpu)

    def cpu(self):
        if "d" not in self.options.groups:
            return
        for gbps in (0.5, 2) if self.options.quick else (0.2, 0.5, 1, 2, 5):
            self.run("d", gbps, ([4096], 1024, 1024, "f32"), ["1", "4", "16", "auto"], "latency_us=50",
                     ["--compute", "cblas"])


TITLES = {
    "a": "(a) one waited step, auto alone",
    "b": "(b) sweep over M and link speed, auto beside fixed lists",
    "c": "(c) layers back to back, per layer",
    "d": "(d) CPU, one rank",
}
COLUMNS = ["GB/s", "M", "auto ms", "ideal", "serial", "best", "loop", "of", "auto/ideal", "/serial", "/best", "/loop",
           "hidden %", "pred. %", "target", "met", "auto's rows"]


def table_row(row):
    def ms(key):
        return cell(row[key] / 1000 if row[key] else None)

    verdict = {None: "-", True: "pass", False: "MISS " + " ".join(row["missed"])}[row["pass"]]
    error = row["prediction_error_pct"]
    return [f"{row['gbps']:g}", str(row["m"]), ms("auto_us"), ms("ideal_us"), ms("serial_us"), ms("best_us"),
            ms("loop_us"), cell(row["loop_chunks"]), cell(row["auto_ideal"]), cell(row["auto_serial"]),
            cell(row["auto_best"]), cell(row["auto_loop"]), cell(row["hidden_pct"], 0),
            f"{error:+.1f}" if error is not None else "-", row["target"] or "-", verdict,
            run_lengths(row["auto_chunks"]) + (f" on {row['auto_ctas']}" if row["auto_ctas"] else "") + (f" ({row['fallback']})" if row["fallback"] else "")]


def print_results(sweep, about):
    for gpu in about["gpus"]:
        print(f"# {gpu}")
    print(f"# {about['cpu']}, {about['cores']} cores, load {about['load']:.1f}; {about['date']}")
    print(f"# modelled link of 2 ranks; medians of {sweep.options.iterations} interleaved steps; times in ms")
    for group, title in TITLES.items():
        rows = [row for row in sweep.rows if row["group"] == group]
        if not rows:
            continue
        header = sweep.headers[group]
        print(f"\n{title}: {rows[0]['dtype']}, N={rows[0]['n']}, K={rows[0]['k']}, layers {rows[0]['layers']}, "
              f"data {header['data']}; "
              f"starlin {header['version']}, StarPU {header['starpu_version']}, {header['compute']}, "
              f"policy {header['policy']}")
        print_table(COLUMNS, [table_row(row) for row in rows])
    judged = [row for row in sweep.rows if row["pass"] is not None]
    print(f"\n{sum(row['pass'] for row in judged)} of {len(judged)} cases meet their target", end="")
    for what, key in (("prediction", "prediction_error_pct"), ("simulation alone", "simulation_error_pct")):
        errors = [abs(row[key]) for row in sweep.rows if row[key] is not None]
        if errors:
            within = 100 * sum(error <= 10 for error in errors) / len(errors)
            print(f"; {what} within 10% in {within:.0f}% of {len(errors)} cases (target 90%)", end="")
    print(f"; {sweep.failures} runs failed, {sweep.left_out} left out for lack of time; {sweep.seconds:.0f} s")


def main():
    options = parse()
    about = machine()
    sweep = Sweep(options)
    if options.gpu:
        sweep.gpu()
    if options.cpu:
        sweep.cpu()
    print_results(sweep, about)
    path = os.path.join(options.out, "overlap.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema_version": 1, **about, "iterations": options.iterations, "ctas": options.ctas,
                   "programs": sweep.headers, "seconds": sweep.seconds, "failures": sweep.failures,
                   "left_out": sweep.left_out,
                   "cases": sweep.rows, "measurements": sweep.lists}, file, indent=1)
    written = [path]
    for name, groups in (("overlap", "b"), ("overlap-cpu", "d")):
        rows = [row for row in sweep.rows if row["group"] in groups and row["auto_ideal"]]
        if rows:
            chart = os.path.join(options.out, name + ".svg")
            with open(chart, "w", encoding="utf-8") as file:
                file.write(bench_chart.draw(rows, about))
            written.append(chart)
    print("written: " + ", ".join(written))
    return 1 if sweep.failures or any(row["wrong"] for row in sweep.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
