#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Folders are layers: a file includes from its own layer or from a lower one. A third-party library's header is
# included only by the files named after it, an operator's name stands in src/operators alone, the tool stands
# outside, starlin.h needs three headers of the C library, and no file grows beyond 700 lines.
# Usage: layering.sh [DIRECTORY]
set -uo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" || exit 1

# lowest first; comm and compute stand side by side
declare -rA layer=([base]=1 [machine]=2 [ranks]=3 [comm]=4 [compute]=4 [record]=5 [progress]=6 [policy]=7
    [graph]=8 [codelets]=9 [operators]=10 [plan]=11 [report]=12 [context]=13)

failures=0
fail() {
    printf '%s\n' "$*"
    failures=$((failures + 1))
}

sources() {
    find "$@" \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort
}

# FILE:HEADER for each line of these files that includes a header, quoted or not
includes() {
    sed -nE "s/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]([^>\"]*)[>\"].*/\1/;T;F;p" "$@" |
        paste -d: - -
}

mapfile -t library < <(sources src codelets)
mapfile -t tools < <(sources tools)
mapfile -t files < <(sources include src codelets tools examples tests)
if [ ${#library[@]} = 0 ] || [ ${#tools[@]} = 0 ]; then
    echo "no sources found"
    exit 1
fi
mapfile -t included < <(includes "${files[@]}")
[ ${#included[@]} -gt ${#library[@]} ] || { echo "no includes found"; exit 1; }

# src/FOLDER/... and codelets/... belong to the layer of that name
folder_of() {
    local path=${1#src/}
    printf '%s' "${path%%/*}"
}

for line in "${included[@]}"; do
    file=${line%%:*} header=${line#*:} from='' to=''
    case $file in
    src/* | codelets/*) from=$(folder_of "$file") ;;
    tools/*) ;;
    *) continue ;;
    esac
    # a header beside the file, one of the library by its folder, or none of the library's
    if [ -e "src/$header" ] || [ -e "$header" ]; then
        to=$(folder_of "$header")
    elif [ -e "${file%/*}/$header" ]; then
        to=$(folder_of "$(realpath --relative-to=. "${file%/*}/$header")")
    fi
    case $file in
    tools/*)
        [ -n "${layer[${to:-none}]:-}" ] && fail "$file includes $header: the tool stands outside the library"
        continue
        ;;
    esac
    [ -n "${layer[$from]:-}" ] || { fail "$file lies in no layer: $from"; continue; }
    case ${to:-none} in
    none | include | starlin) continue ;;
    esac
    if [ -z "${layer[$to]:-}" ]; then
        fail "$file includes $header, which lies in no layer"
    elif [ "${layer[$to]}" -gt "${layer[$from]}" ]; then
        fail "$file includes $header: a step up from $from to $to"
    elif [ "${layer[$to]}" = "${layer[$from]}" ] && [ "$to" != "$from" ]; then
        fail "$file includes $header: $from and $to stand side by side"
    fi
done

# only HEADER_PATTERN FILE_PATTERN: headers that match the first are included by files that match the second
only() {
    local line
    for line in "${included[@]}"; do
        if [[ ${line#*:} =~ ^($1)$ ]] && ! [[ ${line%%:*} =~ $2 ]]; then
            fail "${line%%:*} includes ${line#*:}, which belongs to $2"
        fi
    done
}

only 'cblas[a-z_0-9]*\.h|openblas.*' 'cblas[^/]*$'
only 'cublas.*' 'cublas[^/]*$'
only 'nccl\.h' 'nccl[^/]*$'
only 'cuda.*' '(_cuda|_cublas|_nccl)[^/]*$|\.cuh?$'
only 'hwloc.*' '(topology|hwloc)[^/]*$'
only 'cupti.*' 'cupti[^/]*$'
only 'nvtx3/.*' 'nvtx[^/]*$'
only 'jansson\.h' '^tools/perf/(results_json|weights)\.c$|^tests/'
only 'mpi\.h' 'mpi[^/]*$|^examples/|^tests/'
only 'starpu.*' \
    '^src/(context|graph|policy)/|^codelets/|^include/starlin/starlin_starpu\.h|^examples/own_tasks|^tests/|^tools/perf/[^/]*starpu'

# lines PATTERN FILE...: where the pattern stands, whatever its case
lines() {
    local pattern=$1
    shift
    [ $# -eq 0 ] || grep -niE "$pattern" "$@" /dev/null
}

outside() {
    local file
    for file in "${library[@]}"; do
        [[ $file =~ $1 ]] || printf '%s\n' "$file"
    done
}

mapfile -t others < <(outside '^src/operators/')
while IFS= read -r hit; do
    fail "an operator's name outside src/operators: $hit"
done < <(lines 'row_linear|column_linear|redistribute' "${others[@]}")

mapfile -t others < <(outside '^src/(comm|operators)/')
while IFS= read -r hit; do
    fail "a collective's name outside src/comm and src/operators: $hit"
done < <(lines 'all_?reduce' "${others[@]}")

# starlin.h includes nothing but three headers of the C library
while IFS= read -r header; do
    case $header in
    '<stddef.h>' | '<stdint.h>' | '<stdbool.h>') ;;
    *) fail "include/starlin/starlin.h includes $header" ;;
    esac
done < <(sed -n 's/^ *# *include *//p' include/starlin/starlin.h)

for file in "${files[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 700 ] || fail "$file has $lines lines; 700 is the limit"
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' || fail "$file has no SPDX line"
done

[ "$failures" = 0 ] || exit 1
echo "${#files[@]} files and ${#included[@]} includes keep to the layering rules"
