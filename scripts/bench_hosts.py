# SPDX-License-Identifier: BSD-3-Clause
"""Runs starlin-perf between hosts in network namespaces (scripts/hosts): `auto` beside fixed counts, serial, the
hand-written loop, and the limit that the link or the gemm sets.

One process for each line of the table: everything that a line compares was interleaved in it.
"""
import argparse
import json
import os
import subprocess
import sys

from bench_common import cell, log, machine, ratio, run_lengths, run_perf

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = [1, 4, 8, 16, 32]
# M, N, K: each sums 8 MB in f32
SHAPES = {"wide": (512, 4096, 2048), "tall": (4096, 512, 1024), "small-k": (2048, 1024, 256)}
DTYPE_NBYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8}
RATE_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
# auto takes at most so many times what the other takes
STEP_LIMITS = {"auto_best": 1.05, "auto_loop": 1.05}
CHAIN_LIMITS = {"auto_best": 1.05, "auto_loop": 1.0}


def words(allowed=None, convert=str):
    def parse_words(text):
        values = [convert(word) for word in text.split(",")]
        if allowed and not set(values) <= set(allowed):
            raise argparse.ArgumentTypeError(f"'{text}': {', '.join(map(str, allowed))}, separated by commas")
        return values
    return parse_words


def bits_per_second(rate):
    for unit, factor in RATE_UNITS.items():
        if rate.endswith(unit) and rate[:-len(unit)].replace(".", "", 1).isdigit():
            return float(rate[:-len(unit)]) * factor
    raise argparse.ArgumentTypeError(f"'{rate}' is no rate such as 400mbit or 1gbit")


def checked_rate(text):
    bits_per_second(text)
    return text


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="bench hosts")
    parser.add_argument("--perf", required=True)
    parser.add_argument("--links", type=words(convert=checked_rate), default=["1gbit", "400mbit"])
    parser.add_argument("--hosts", type=words(convert=int), default=None)
    parser.add_argument("--shapes", type=words(SHAPES), default=list(SHAPES))
    parser.add_argument("--dtypes", type=words(DTYPE_NBYTES), default=["f32", "bf16"])
    parser.add_argument("--layers", type=words(convert=int), default=[1, 4])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("-i", dest="iterations", type=int)
    parser.add_argument("--out", default="bench-results")
    options = parser.parse_args(arguments)
    if options.hosts is None:  # three only where each has a core
        options.hosts = [2, 3] if len(os.sched_getaffinity(0)) >= 3 else [2]
    if options.quick:
        options.links, options.hosts, options.dtypes = options.links[:1], options.hosts[:1], options.dtypes[:1]
    options.iterations = options.iterations or (3 if options.quick else 5)
    return options


def link_us(m, n, dtype, hosts, rate):
    """What a link needs for the bytes that each host must send to sum up M x N elements, headers not counted."""
    return 2 * (hosts - 1) / hosts * m * n * DTYPE_NBYTES[dtype] * 8 / bits_per_second(rate) * 1e6


def row_of(case, rows):
    """One line: the row of `auto` beside those of the fixed counts, which come before it."""
    *fixed, auto = rows
    auto_us = auto["time_us"]["median"]
    medians = {count: row["time_us"]["median"] for count, row in zip(COUNTS, fixed)}
    best = min(medians, key=medians.get)
    link = link_us(auto["m"], auto["n"], auto["dtype"], case["hosts"], case["link"])
    limit = max(link, auto["gemm_us"] or 0)
    row = {**case, "m": auto["m"], "n": auto["n"], "k": auto["k"], "auto_us": auto_us, "auto_chunks": auto["chunks"],
           "fallback": auto.get("fallback"), "counts_us": medians, "best_us": medians[best], "best_count": best,
           "serial_us": auto["serial_us"], "loop_us": auto["loop_us"], "loop_chunks": auto["loop_chunks"],
           "gemm_us": auto["gemm_us"], "comm_us": auto["comm_us"], "link_us": link, "limit_us": limit,
           "limited_by": "link" if link >= (auto["gemm_us"] or 0) else "gemm", "hidden_pct": auto["hidden_pct"],
           "wrong": sum(row["wrong"] or 0 for row in rows),
           "auto_best": ratio(auto_us, medians[best]), "auto_loop": ratio(auto_us, auto["loop_us"]),
           "auto_serial": ratio(auto_us, auto["serial_us"]), "auto_limit": ratio(auto_us, limit)}
    limits = CHAIN_LIMITS if case["layers"] > 1 else STEP_LIMITS
    row["missed"] = [key.replace("auto_", "") for key, most in limits.items()
                     if row[key] is not None and row[key] > most] + (["exact"] if row["wrong"] else [])
    row["pass"] = not row["missed"]
    return row


def command_of(case):
    return (f"scripts/bench hosts --links {case['link']} --hosts {case['hosts']} --shapes {case['shape']} "
            f"--dtypes {case['dtype']} --layers {case['layers']}")


NAMES = ["link", "hosts", "shape", "dtype", "layers", "auto", "of", *map(str, COUNTS), "serial", "loop", "of", "gemm",
         "comm", "limit", "auto / best", "/ loop", "/ serial", "/ limit", "met"]


def table_row(row):
    def ms(value):
        return cell(value / 1000 if value is not None else None, 1)

    chunks = run_lengths(row["auto_chunks"])
    return [row["link"], str(row["hosts"]), row["shape"], row["dtype"], str(row["layers"]), ms(row["auto_us"]), chunks,
            *(ms(row["counts_us"][count]) for count in COUNTS), ms(row["serial_us"]), ms(row["loop_us"]),
            cell(row["loop_chunks"]), ms(row["gemm_us"]), ms(row["comm_us"]),
            f"{ms(row['limit_us'])} {row['limited_by']}",
            *(cell(row[key], 2) for key in ("auto_best", "auto_loop", "auto_serial", "auto_limit")),
            "yes" if row["pass"] else "no: " + ", ".join(row["missed"])]


def print_results(rows, headers, about, options):
    """Markdown, as it stands in docs/benchmarks.md."""
    if rows:
        print(f"{about['cpu']}, {about['cores']} cores, load {about['load']:.1f}, {about['date']}; starlin "
              f"{headers.get('version')}, StarPU {headers.get('starpu_version')}, "
              f"{headers.get('compute_version') or headers.get('compute')}. Medians of {options.iterations} "
              "interleaved steps in ms, per layer.\n")
        shapes = [f"{name} {'x'.join(map(str, SHAPES[name]))}" for name in options.shapes]
        print(f"Shapes (M x N x K): {', '.join(shapes)}.\n")
        print("| " + " | ".join(NAMES) + " |")
        print("|" + "---|" * len(NAMES))
        for row in rows:
            print("| " + " | ".join(table_row(row)) + " |")
        print()
        for row in rows:
            print(f"    {command_of(row)} -i {options.iterations}")


class Hosts:
    """Hosts of this run's own, gone when the block ends."""

    def __init__(self, count, rate):
        self.environment = {"STARLIN_HOSTS": f"bench{os.getpid()}", "STARLIN_HOSTS_TIMEOUT_S": "600"}
        self.script, self.count, self.rate = os.path.join(HERE, "hosts"), count, rate

    def call(self, *arguments):
        return subprocess.run([self.script, *arguments], env={**os.environ, **self.environment}, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)

    def __enter__(self):
        done = self.call("up", str(self.count), self.rate)
        if done.stdout:
            log(done.stdout.strip())
        if done.returncode != 0:
            sys.exit(done.returncode)
        return self

    def __exit__(self, *_):
        self.call("down")


def cases_of(options):
    for count in options.hosts:
        for rate in options.links:
            yield count, rate, [{"link": rate, "hosts": count, "shape": shape, "dtype": dtype, "layers": layers}
                                for shape in options.shapes for dtype in options.dtypes for layers in options.layers]


def main():
    options = parse()
    about = machine()
    raw = os.path.join(options.out, "raw")
    os.makedirs(raw, exist_ok=True)
    rows, headers, seconds, failures, left_out = [], {}, 0.0, 0, 0
    for count, rate, cases in cases_of(options):
        with Hosts(count, rate) as hosts:
            for case in cases:
                if options.limit - seconds < 10:
                    left_out += 1
                    continue
                log(command_of(case))
                m, n, k = SHAPES[case["shape"]]
                chunkings = ";".join([*map(str, COUNTS), "auto"])
                name = f"hosts-{rate}-{count}-{case['shape']}-{case['dtype']}-{case['layers']}.json"
                result, took = run_perf(
                    options.perf, ["-m", m, "-n", n, "-k", k, "-t", case["dtype"], "-c", chunkings, "-i",
                                   options.iterations, "-w", 1, "--layers", case["layers"]], os.path.join(raw, name),
                    launcher=[hosts.script, "run", str(count)], environment=hosts.environment,
                    limit_s=min(610, options.limit - seconds))
                seconds += took
                if result is None:
                    failures += 1
                    continue
                headers = {key: value for key, value in result.items() if key != "rows"}
                row = row_of(case, result["rows"])
                rows.append(row)
                log(f"  auto {row['auto_us'] / 1000:.1f} ms, {cell(row['auto_best'])} x best, "
                    f"{cell(row['auto_loop'])} x loop, {cell(row['auto_limit'])} x limit")
    print_results(rows, headers, about, options)
    print(f"\n{sum(row['pass'] for row in rows)} of {len(rows)} cases meet their target; {failures} runs failed, "
          f"{left_out} left out for lack of time; {seconds:.0f} s")
    path = os.path.join(options.out, "hosts.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema_version": 1, **about, "iterations": options.iterations, "program": headers,
                   "seconds": seconds, "failures": failures, "left_out": left_out, "cases": rows}, file, indent=1)
    print("written: " + path)
    return 1 if failures or any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
