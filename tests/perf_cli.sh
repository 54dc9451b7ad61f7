#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Bad input to starlin-perf: exit 2, one line on stderr that names value and allowed range, nothing on stdout.
# usage: perf_cli.sh STARLIN_PERF
perf=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export STARLIN_WISDOM="$work/wisdom"
failures=0 checks=0

fail()
{
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# refused "VALUE" "ALLOWED" arguments...: both texts must be in the message
refused()
{
    value=$1 allowed=$2
    shift 2
    checks=$((checks + 1))
    timeout 20 "$perf" "$@" >"$work/out" 2>"$work/err"
    rc=$?
    [ $rc -eq 2 ] || fail "exit code $rc instead of 2: $*"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line on stderr: $*: $(cat "$work/err")"
    [ -s "$work/out" ] && fail "something was started: $*: $(head -1 "$work/out")"
    grep -qF -e "$value" "$work/err" || fail "'$value' is not named: $*: $(cat "$work/err")"
    grep -qF -e "$allowed" "$work/err" || fail "'$allowed' is not shown: $*: $(cat "$work/err")"
}

# safetensors FILE HEADER NBYTES [LENGTH]: length as 8 little-endian bytes, header, zeros
safetensors()
{
    length=${4:-${#2}}
    for shift in 0 8 16 24 32 40 48 56; do
        # shellcheck disable=SC2059
        printf "\\$(printf '%03o' $((length >> shift & 255)))"
    done >"$work/$1"
    printf '%s' "$2" >>"$work/$1"
    head -c "$3" /dev/zero >>"$work/$1"
}

refused "'abc'" "1 to 2147483647" -m abc
refused "0" "1 to 2147483647" -n 0
refused "-3" "1 to 2147483647" -k -3
refused "99999999999" "1 to 2147483647" -m 99999999999
refused "99999999999999999999999" "1 to" -m 99999999999999999999999
refused "''" "whole number" -m ""
refused "sum to 9" "-m 10" -m 10 -c 6,3
refused "'0'" "1 to 256" -c 0
refused "'f8'" "f32, f64, f16, bf16" -t f8
refused "carrier" "self" --comm carrier
refused "abacus" "cblas" --compute abacus
refused "gbps" "model" --comm model:gbps=fast
refused "colour" "gbps" --comm model:gbps=1,colour=3
refused "ranks" "2" --comm model:gbps=1,ranks=1
refused "'matmul'" "row_linear, column_linear" --op matmul
refused "'llama'" "llama3-8b" --model llama
refused "14336" "3 ranks" --model llama3-8b:tp=3
refused "'guess'" "measure, estimate" --effort guess
refused "'maybe'" "off, on" --check maybe
refused "'zeros'" "integers, random" --data zeros
refused "--check on" "--data integers" --data random --check on
refused "'f64'" "native, f32" --reduction f64
refused "'fast'" "serial, loop, gemm, comm" --baselines fast
refused "0" "1 to 1000000" -i 0
refused "hasty" "starlin" --policies eager,hasty
refused "''" "policy" --policies ""
refused "out.txt" ".html" --trace "$work/out.txt"
refused "'--speed'" "--help" --speed 9
refused "'more'" "--help" more
refused "/no/such/dir/out.json" "write" --json /no/such/dir/out.json
refused "2147483647" "this machine has" -m 2147483647 -k 2147483647

f32='{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
safetensors good "$f32" 24
safetensors truncated "$f32" 20
safetensors long "$f32" 24 1099511627776
safetensors short "$f32" 0 1000
safetensors past '{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}}' 24
safetensors overlap '{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}}' 32
safetensors vector '{"w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}' 24
safetensors integers '{"w":{"dtype":"I32","shape":[2,3],"data_offsets":[0,24]}}' 24
: >"$work/empty"
refused "missing" "No such file" --weights "$work/missing:w"
refused "$work" "not a regular file" --weights "$work:w"
refused "'$work/good'" "FILE:TENSOR" --weights "$work/good"
refused "[0,24]" "20 bytes of data" --weights "$work/truncated:w"
refused "1099511627776" "bytes follow" --weights "$work/long:w"
refused "header length is 1000" "bytes follow" --weights "$work/short:w"
refused "[8,32]" "24 bytes of data" --weights "$work/past:w"
refused "overlap" "[8,32]" --weights "$work/overlap:a"
refused "truncated: 0 bytes" "8" --weights "$work/empty:w"
refused "'W2'" "near names: 'w'" --weights "$work/good:W2"
refused "1 dimensions" "2 (N,K)" --weights "$work/vector:w"
refused "I32" "F32, F64, F16, BF16" --weights "$work/integers:w"
refused "-n: 5" "size is 2" --weights "$work/good:w" -n 5
refused "-k: 5" "size is 3" --weights "$work/good:w" -k 5
if [ "$(id -u)" -ne 0 ]; then
    chmod 000 "$work/good"
    refused "good" "Permission denied" --weights "$work/good:w"
    chmod 600 "$work/good"
fi

# sound calls
checks=$((checks + 4))
timeout 20 "$perf" --help | grep -q -- --weights || fail "--help"
timeout 20 "$perf" --version | grep -q '^starlin-perf [0-9]' || fail "--version"
timeout 60 "$perf" --weights "$work/good:w" -m 7 -i 1 -w 0 >"$work/out" 2>&1 || fail "weights: $(cat "$work/out")"
if ! timeout 60 "$perf" --weights "$work/good:w" --data random -m 7 -i 1 -w 0 >"$work/out" 2>&1 ||
    ! grep -q '^# .*, data random$' "$work/out" || ! grep -q '^# 1 case, results not checked$' "$work/out"; then
    fail "random data: $(cat "$work/out")"
fi

echo "$checks checks, $failures failed"
[ $failures -eq 0 ]
