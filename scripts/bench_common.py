# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks share: running starlin-perf, describing the machine, printing tables."""
import datetime
import json
import os
import subprocess
import sys
import time


def log(text):
    print(text, file=sys.stderr, flush=True)


def output_of(*command):
    """Standard output of a command, or '' where it is missing or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def gpus():
    """Names and driver versions of the GPUs, one line each; empty where there are none."""
    text = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    return [line.strip() for line in text.splitlines() if line.strip()]


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def machine():
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gpus": gpus(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }


def run_perf(perf, arguments, json_path, launcher=(), environment=None, limit_s=600):
    """Runs starlin-perf and returns (its JSON or None, seconds it took)."""
    command = [*launcher, perf, *map(str, arguments), "--json", json_path]
    log("$ " + " ".join(command))
    start = time.monotonic()
    if os.path.exists(json_path):
        os.remove(json_path)  # results of an earlier run must not pass for this one's
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_s,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
        text, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        text, code = str(error), 124
    seconds = time.monotonic() - start
    with open(os.path.splitext(json_path)[0] + ".log", "w", encoding="utf-8") as file:
        file.write(" ".join(command) + "\n" + text)
    if code != 0:
        log(f"exit code {code} after {seconds:.0f} s:\n" + "\n".join(text.splitlines()[-15:]))
        return None, seconds
    with open(json_path, encoding="utf-8") as file:
        return json.load(file), seconds


def ratio(a, b):
    return a / b if a and b else None


def cell(value, digits=3):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


def print_table(names, rows):
    """Columns as wide as they need to be; text left, numbers right."""
    if not rows:
        return
    widths = [max(len(name), *(len(row[i]) for row in rows)) for i, name in enumerate(names)]
    left = [not any(row[i][:1].isdigit() for row in rows) for i in range(len(names) - 1)] + [True]
    for line in [names] + rows:
        print("  ".join(text.ljust(width) if flush else text.rjust(width)
                        for text, width, flush in zip(line, widths, left)).rstrip())


def run_lengths(chunks):
    """[512,512,256] as 512x2,256."""
    parts = []
    for rows in chunks:
        if parts and parts[-1][0] == rows:
            parts[-1][1] += 1
        else:
            parts.append([rows, 1])
    return ",".join(f"{rows}x{count}" if count > 1 else str(rows) for rows, count in parts)
