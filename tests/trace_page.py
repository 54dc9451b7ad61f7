#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Opens pages in headless Chromium: lanes, counts, hover text, themes, keys, and nothing fetched from outside.

usage: trace_page.py TRACE_SAMPLE
Exit code 77 where there is no Chromium.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


def fail(text):
    sys.exit(f"trace_page: {text}")


def check(condition, text):
    if not condition:
        fail(text)


def open_page(browser, path, profile):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800",
               "--virtual-time-budget=5000", f"--user-data-dir={profile}", "--dump-dom", f"file://{path}#selftest"]
    page = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=80).stdout.decode()
    found = re.search(r'<pre id="selftest">(.*?)</pre>', page, re.S)
    check(found, f"{path}: the self-test wrote nothing")
    return json.loads(html.unescape(found.group(1)))


def check_source(path):
    text = open(path, encoding="utf-8").read()
    for pattern in (r"<link\b", r"<script[^>]*\bsrc=", r"<img\b", r"@import", r"url\(\s*['\"]?https?:", r"\bfetch\(",
                    r"XMLHttpRequest", r"\bimport\("):
        check(not re.search(pattern, text), f"{path} could fetch something: {pattern}")


def main():
    sample = sys.argv[1]
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("skipped: no chromium here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        profile = os.path.join(directory, "profile")
        seen = {}
        for kind in ("one", "compare", "big"):
            path = os.path.join(directory, kind + ".html")
            subprocess.run([sample, path, kind], check=True)
            check_source(path)
            seen[kind] = open_page(browser, path, profile)
            check(seen[kind]["resources"] == [], f"{kind} fetched {seen[kind]['resources']}")
            check(seen[kind]["drawn"] > 0, f"{kind} drew nothing")
            check(abs(seen[kind]["zoomed"] - 0.5) < 1e-6, f"{kind} zoomed by {seen[kind]['zoomed']}")
            check(seen[kind]["focus"] and seen[kind]["panned"], f"{kind} does not pan by keyboard")
            check(seen[kind]["theme"] == "dark", f"{kind} has no dark theme")

    one, compare, big = seen["one"], seen["compare"], seen["big"]
    check((one["groups"], one["ranks"], one["lanes"], one["spans"]) == (1, [2], 4, 72), f"one: {one}")
    check("multiply, some_linear 1, chunk 0" in one["gemm"] and "4096 rows" in one["gemm"], f"hover: {one['gemm']!r}")
    for part in ("sum, some_linear 1, chunk 0", "64.0 MiB", "hidden", "exposed", "after its multiply",
                 "waited for SMs or a core"):
        check(part in one["collective"], f"hover lacks {part!r}: {one['allreduce']!r}")
    check("of the communication is hidden" in one["report"], f"report: {one['report']!r}")
    check(one["compare"] == "", "one timeline has a comparison table")
    check((compare["groups"], compare["lanes"]) == (2, 8), f"compare: {compare}")
    check("two equal chunks" in compare["compare"] and "auto" in compare["compare"], f"table: {compare['compare']!r}")
    check(big["spans"] == 10000, f"big has {big['spans']} spans")
    print(f"10,000 spans: {big['draw_ms']:.1f} ms to draw everything")


if __name__ == "__main__":
    main()
