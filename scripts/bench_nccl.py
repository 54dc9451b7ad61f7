# SPDX-License-Identifier: BSD-3-Clause
"""starlin-perf over NCCL, and the same layer in PyTorch right after it, with the same NCCL."""
import argparse
import json
import os
import socket
import subprocess
import sys

from bench_common import cell, gpus, log, machine, print_table, ratio, run_lengths, run_perf

HERE = os.path.dirname(os.path.abspath(__file__))


def parse():
    parser = argparse.ArgumentParser(prog="bench nccl")
    parser.add_argument("--perf", required=True)
    parser.add_argument("--nccl-lib")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("-m", type=int, default=8192)
    parser.add_argument("-n", type=int, default=8192)
    parser.add_argument("-k", type=int, default=32768)
    parser.add_argument("-i", dest="iterations", type=int, default=20)
    parser.add_argument("--out", default="bench-results")
    return parser.parse_args()


def launcher(options):
    command = ["mpirun", "-np", str(options.ranks)]
    if options.nccl_lib:  # for the ranks only: mpirun itself needs none
        command += ["env", f"LD_PRELOAD={options.nccl_lib}",
                    f"LD_LIBRARY_PATH={os.path.dirname(options.nccl_lib)}:{os.environ.get('LD_LIBRARY_PATH', '')}"]
    return command


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def run_torch(options, json_path):
    command = [*launcher(options), options.python, os.path.join(HERE, "bench_torch.py"), "-m", str(options.m),
               "-n", str(options.n), "-k", str(options.k), "-i", str(options.iterations), "--json", json_path]
    log("$ " + " ".join(command))
    if os.path.exists(json_path):
        os.remove(json_path)
    try:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=400,
                              env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())},
                              check=False).returncode
    except subprocess.TimeoutExpired:
        code = 124
    if code != 0:
        log(f"bench_torch.py: exit code {code}")
        return None
    with open(json_path, encoding="utf-8") as file:
        return json.load(file)


def compare(perf, torch):
    """Ratios of auto to everything measured beside it."""
    auto = perf["rows"][-1]
    auto_ms = auto["time_us"]["median"] / 1000
    ratios = {"auto_ms": auto_ms, "auto_chunks": auto["chunks"], "fallback": auto["fallback"],
              "auto_serial": ratio(auto_ms, (auto["serial_us"] or 0) / 1000),
              "auto_ideal": ratio(auto_ms, (auto["ideal_us"] or 0) / 1000),
              "auto_loop": ratio(auto_ms, (auto["loop_us"] or 0) / 1000),
              "auto_best": ratio(auto_ms, min(row["time_us"]["median"] for row in perf["rows"][:-1]) / 1000)}
    for data in ("random", "integers"):
        medians = {row["chunks"]: row["median_ms"] for row in (torch or {"rows": []})["rows"] if row["data"] == data}
        ratios[f"auto_torch_best_{data}"] = ratio(auto_ms, min(medians.values(), default=0))
        ratios[f"auto_torch8_{data}"] = ratio(auto_ms, medians.get(8))
    return ratios


def print_ratios(ratios, perf, shared):
    auto = perf["rows"][-1]
    serial, ideal, loop = (cell((auto[f"{name}_us"] or 0) / 1000) for name in ("serial", "ideal", "loop"))
    why = f"; {ratios['fallback']}" if ratios["fallback"] else ""
    print(f"\nauto {ratios['auto_ms']:.3f} ms ({run_lengths(ratios['auto_chunks'])}{why}); serial {serial}, "
          f"ideal {ideal}, loop {loop} at {auto['loop_chunks']} chunks")
    # two ranks that share one GPU's SMs have little to hide; with a GPU each there is more to gain
    torch_limit = 0.97 if shared else 0.95
    rows = [("auto/serial", "auto_serial", 1.01), ("auto/ideal", "auto_ideal", None if shared else 1.03),
            ("auto/loop", "auto_loop", None), ("auto/best fixed", "auto_best", None),
            ("auto/torch best (same kind of data)", "auto_torch_best_integers", torch_limit),
            ("auto/torch 8 chunks (same kind of data)", "auto_torch8_integers", 0.75 if shared else None),
            ("auto/torch best (random data)", "auto_torch_best_random", torch_limit),
            ("auto/torch 8 chunks (random data)", "auto_torch8_random", 0.75 if shared else None)]
    print_table(["ratio", "value", "target", "met"],
                [[name, cell(ratios[key]), cell(limit, 2),
                  "-" if limit is None or ratios[key] is None else "pass" if ratios[key] <= limit else "MISS"]
                 for name, key, limit in rows])


def main():
    options = parse()
    if not gpus():
        log("bench: no GPU is visible here")
        return 77
    shared = bool(os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE"))
    if not shared and len(gpus()) < options.ranks:
        log(f"bench: {options.ranks} ranks need as many GPUs (here: {len(gpus())}), or --share-gpu")
        return 77
    os.makedirs(options.out, exist_ok=True)
    about = machine()
    print(f"# {'; '.join(about['gpus'])}; {about['date']}", flush=True)
    perf, _ = run_perf(options.perf,
                       ["-m", options.m, "-n", options.n, "-k", options.k, "-t", "bf16", "--comm", "nccl",
                        "-c", "1;2;4;8;auto", "-i", options.iterations, "-w", 5],
                       os.path.join(options.out, "nccl-starlin.json"), launcher(options), limit_s=300)
    if perf is not None:
        with open(os.path.join(options.out, "nccl-starlin.log"), encoding="utf-8") as file:
            print(file.read(), flush=True)
    torch = run_torch(options, os.path.join(options.out, "nccl-torch.json"))
    if perf is None:
        return 1
    ratios = compare(perf, torch)
    print_ratios(ratios, perf, shared)
    with open(os.path.join(options.out, "nccl.json"), "w", encoding="utf-8") as file:
        json.dump({"schema_version": 1, **about, "shared_gpu": shared, "ratios": ratios, "starlin": perf,
                   "torch": torch}, file, indent=1)
    return 0 if torch is not None else 1


if __name__ == "__main__":
    sys.exit(main())
