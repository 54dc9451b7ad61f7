#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The layering rules: a third-party library's header is included only by the file named after it, StarPU only
# where tasks and data are made, public headers stand alone, and no file grows beyond 400 lines.
set -uo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" || exit 1

failures=0
fail() {
    printf '%s\n' "$*"
    failures=$((failures + 1))
}

mapfile -t files < <(find include src codelets tools examples tests \( -name '*.c' -o -name '*.h' -o -name '*.cu' \
    -o -name '*.cuh' \) 2>/dev/null | sort)
[ ${#files[@]} -gt 0 ] || { echo "no sources found"; exit 1; }

# only HEADER_PATTERN FILE_PATTERN: headers that match the first are included by files that match the second
only() {
    local hit
    while IFS= read -r hit; do
        [[ $hit =~ $2 ]] || fail "$hit includes a header that belongs to $2"
    done < <(grep -lE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($1)[>\"]" "${files[@]}")
}

only 'cblas[a-z_0-9]*\.h|openblas[^>"]*' 'cblas[^/]*$'
only 'cublas[^>"]*' 'cublas[^/]*$'
only 'nccl\.h' 'nccl[^/]*$'
only 'cuda[^>"]*' '(_cuda|_cublas|_nccl)[^/]*$|\.cuh?$'
only 'hwloc[^>"]*' '(topology|hwloc)[^/]*$'
only 'cupti[^>"]*' 'cupti[^/]*$'
only 'nvtx3/[^>"]*' 'nvtx[^/]*$'
only 'jansson\.h' '(json|safetensors)[^/]*$|^tests/'
only 'mpi\.h' 'mpi[^/]*$|^tools/|^examples/|^tests/'
only 'starpu[^>"]*' \
    '^src/(context|graph|operators|policy)/|^codelets/|^include/starlin/starlin_starpu\.h|^examples/own_tasks|^tests/|^tools/perf/[^/]*starpu'

# starlin.h includes nothing but three headers of the C library
while IFS= read -r header; do
    case $header in
    '<stddef.h>' | '<stdint.h>' | '<stdbool.h>') ;;
    *) fail "include/starlin/starlin.h includes $header" ;;
    esac
done < <(sed -n 's/^ *# *include *//p' include/starlin/starlin.h)

for file in "${files[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 400 ] || fail "$file has $lines lines; 400 is the limit"
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' || fail "$file has no SPDX line"
done

[ "$failures" = 0 ] || exit 1
echo "${#files[@]} files keep to the layering rules"
