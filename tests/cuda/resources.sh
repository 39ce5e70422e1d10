#!/bin/sh
# Prints the compiler's report on each CUDA kernel, as the table of kernels/cuda/RESOURCES.md. It needs nvcc and some
# minutes, but no GPU.
#     tests/cuda/resources.sh [ARCH...]      (80 90 100 by default)
# With CUBINS=FOLDER, the machine code is kept in FOLDER. If tests/cuda/sass.py gets the same CUBINS,
# it uses this machine code instead of compiling again.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- 80 90 100
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cubins=${CUBINS:-$work}
mkdir -p "$cubins"
for arch in "$@"; do
    for source in kernels/cuda/*.cu; do
        cubin=$cubins/$(basename "$source" .cu).$arch
        "$nvcc" -std=c++17 -O3 -I. -cubin -arch="sm_$arch" -Xptxas -v -o "$cubin" "$source" 2>&1 |
            sed -n -e "s/.*entry function '\(.*\)' for.*/name \1/p" -e 's/^ *\([0-9].*spill.*\)/spill \1/p' \
                -e 's/.*: Used \([0-9].*\)/used \1/p' | c++filt | sed "s/^/$arch /"
    done
done >"$work/said"

# Prints a row for each kernel, with the maxima over its variants (types, widths, rows). The number of warps that fit is
# computed from the registers: a multiprocessor has 65536 registers and at most 64 warps, and a warp gets registers in
# units of 256.
awk -v archs="$*" '
    function most(table, key, value) { if (value > table[key] + 0) table[key] = value }
    $2 == "name" {
        name = $0
        sub(/^[^ ]* name (void )?/, "", name)
        gsub(/\(anonymous namespace\)::/, "", name)
        sub(/[<(].*/, "", name)
        variants[name, $1]++
    }
    $2 == "spill" { most(spilled, name, $7 + $11) }
    $2 == "used" {
        most(registers, name SUBSEP $1, $3)
        if (match($0, /[0-9]+ bytes smem/)) most(shared, name, substr($0, RSTART) + 0)
    }
    END {
        count = split(archs, arch, " ")
        head = "| kernel | variants |"; rule = "|---|---:|"
        for (i = 1; i <= count; i++) { head = head " registers, sm_" arch[i] " |"; rule = rule "---:|" }
        print head " warps of 64 that fit | shared memory, bytes | spilled bytes |"
        print rule "---:|---:|---:|"
        fflush()
        for (key in variants) {
            split(key, part, SUBSEP)
            if (part[2] != arch[1]) continue
            name = part[1]; row = "| `" name "` | " variants[key] " |"; worst = 0
            for (i = 1; i <= count; i++) {
                n = registers[name, arch[i]]
                row = row " " n " |"
                if (n > worst) worst = n
            }
            warps = int(65536 / (int((worst + 7) / 8) * 256))
            print row, (warps > 64 ? 64 : warps) " | " shared[name] + 0 " | " spilled[name] + 0 " |" | "sort"
        }
    }' "$work/said"
