#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tool names the BLAS that is loaded, not the one that was there when it was built, and warns of a reference BLAS.
# usage: blas_loaded.sh STARLIN_PERF FAKE_BLAS
perf=$1 fake=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
export STARPU_SILENT=1

fail()
{
    echo "FAILED: $*" >&2
    sed 's/^/    /' "$work/out" >&2
    failures=$((failures + 1))
}

# run PRELOAD: exact results, whatever computes
run()
{
    rm -f "$work/json"
    LD_PRELOAD=$1 timeout 60 "$perf" -m 17 -n 13 -k 29 -t f32,f64,bf16 -c 2 -i 1 -w 1 --baselines none \
        --json "$work/json" >"$work/out" 2>&1 || fail "exit code $? with '$1'"
}

# names PATTERN, after run
names()
{
    grep -Eq "^# cblas: $1\$" "$work/out" || fail "the header does not name '$1'"
    grep -Eq "\"compute_version\": \"$1\"" "$work/json" || fail "the JSON file does not name '$1'"
}

# warns PATH, or does not warn where there is none
warns()
{
    if [ -n "$1" ]; then
        grep -q "^# warning: a reference BLAS is loaded ($1)" "$work/out" || fail "no warning of $1"
        grep -q "\"compute_warning\": \"a reference BLAS is loaded ($1)" "$work/json" || fail "no warning in JSON"
    else
        ! grep -q '^# warning' "$work/out" || fail "a warning without a reason"
        grep -q '"compute_warning": null' "$work/json" || fail "a warning in JSON without a reason"
    fi
}

work=$(readlink -f "$work")
mkdir "$work/plain" "$work/links" "$work/atlas"
cp "$fake" "$work/plain/libblas.so.3"
run "$work/plain/libblas.so.3"
names 'reference BLAS'
warns "$work/plain/libblas.so.3"

cp "$fake" "$work/plain/libblas.so.3.11.0" # as alternatives do it: the name that is loaded is a link
ln -s ../plain/libblas.so.3.11.0 "$work/links/libfast.so.3"
run "$work/links/libfast.so.3"
names 'reference BLAS 3\.11\.0'
warns "$work/plain/libblas.so.3.11.0"

cp "$fake" "$work/plain/libfancy.so.2.1"
ln -s ../plain/libfancy.so.2.1 "$work/links/libblas.so.3"
run "$work/links/libblas.so.3"
names 'libfancy\.so\.2\.1'
warns ''

cp "$fake" "$work/atlas/libblas.so.3"
run "$work/atlas/libblas.so.3"
names 'ATLAS'
warns ''

run ''
if ldd "$(readlink -f "$perf")" | grep -q openblas; then
    names 'OpenBLAS [0-9]+\.[0-9.a-z]+, [A-Za-z0-9_]+ kernel, [0-9]+ threads?'
    warns ''
else
    echo "not linked with OpenBLAS: its own words were not seen"
fi
[ $failures -eq 0 ] && echo "the BLAS that is loaded is named"
exit $((failures > 0))
