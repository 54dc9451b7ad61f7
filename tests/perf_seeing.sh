#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# starlin-perf shows: the report under the table, several policies in one table and one page, and progress on a
# terminal only.
# usage: perf_seeing.sh STARLIN_PERF
perf=$1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export STARLIN_WISDOM="$work/wisdom"

STARPU_SILENT=1 timeout 100 "$perf" --comm model:gbps=1,latency_us=50,ranks=4 -m 128 -n 64 -k 64 -c "4;1" -i 3 -w 1 \
    --policies eager,prio,starlin --report --json "$work/out.json" --trace "$work/out.html" >"$work/out" 2>"$work/err" ||
    { cat "$work/out" "$work/err"; exit 1; }
python3 - "$work" "$perf" <<'PYTHON'
import json
import os
import pty
import re
import subprocess
import sys

work, perf = sys.argv[1:]
out = open(work + "/out").read()
assert open(work + "/err").read() == "", "something on stderr"
rows = [line.split() for line in out.splitlines() if re.match(r" +(eager|prio|starlin) ", line)]
# the table, then the comparison of the reports
assert [row[0] for row in rows[:6]] == ["eager", "eager", "prio", "prio", "starlin", "starlin"], rows
assert all(row[7] in ("8", "2") and float(row[8]) > 0 and row[12] == "0" for row in rows[:6]), rows
assert len(re.findall(r"^configuration .* policy (\w+)", out, re.M)) == 6, out
assert len(re.findall(r"^exposed .* us beyond the ideal", out, re.M)) == 6, out
assert re.findall(r"^configuration .* policy (\w+),", out, re.M) == [row[0] for row in rows[:6]], out
comparison = re.findall(r"^ *(\w+): M 128, .* [14] chunks? +[\d.]+ +([\d.]+) ", out, re.M)
assert len(comparison) == 6 and min(float(ratio) for _, ratio in comparison) == 1, comparison
results = json.load(open(work + "/out.json"))["rows"]
assert [row["policy"] for row in results] == [row[0] for row in rows[:6]], results
page = open(work + "/out.html").read()
for policy in "eager", "prio", "starlin":
    assert page.count('"%s: M 128' % policy) >= 2, policy


def run(seconds, terminal):
    """stderr of a run of about so many seconds"""
    arguments = [perf, "--comm", "model:gbps=1,latency_us=20000,ranks=2", "-m", "8", "-n", "8", "-k", "8", "-c", "1",
                 "--baselines", "none", "-w", "0", "-i", str(int(seconds / 0.02))]
    reader, writer = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    text = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:  # how a terminal ends
            break
        if not piece:
            break
        text += piece
    os.close(reader)
    assert process.wait() == 0, text
    return text.decode()


assert run(3, False) == ""
shown = run(4, True)
assert re.search(r"\r\x1b\[Kstarlin: M 8, N 8, K 8, f32: round \d+ of 200, \d+ s", shown), repr(shown)
assert "\n" not in shown and shown.endswith("\r\x1b[K"), repr(shown)
print("all is shown")
PYTHON
