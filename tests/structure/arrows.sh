#!/bin/sh
# Checks the structure of the sources: a folder uses only folders with a lower level (see the list below), no files depend
# on each other in a cycle, and every name means one thing.
#
# The test reads every include of the sources and every symbol of the built objects. Includes show which declarations a
# file uses. Symbols show which functions a file uses, even if it calls them through a table of functions.
. tests/shell.sh

sources=$(git ls-files '*.c' '*.h' '*.cu' '*.def' 2>/dev/null | grep -v '^tests/')
[ -n "$sources" ] || sources=$(find engine kernels sessions viz tui -name '*.[ch]' -o -name '*.cu' -o -name '*.def')

# Each line of $work/includes has a file and a file that it includes.
grep -Ho '^ *# *include "[^"]*"' $sources | sed 's/: *# *include "/ /; s/"$//' >"$work/includes"
check "the test finds the includes of the sources" test "$(wc -l <"$work/includes")" -gt 500
missing=$(cut -d' ' -f2 "$work/includes" | sort -u | while read -r file; do [ -e "$file" ] || echo "$file"; done |
    grep -v '^tests/emu/')
check "every include names its folder" test -z "$missing"; [ -z "$missing" ] || printf "    %s\n" $missing

# For each line "FILE USED", prints the groups of both files, then the line. The group of a file is its first folder or,
# in tui/, its first two folders.
rooms() {
    awk '{ split($1, a, "/"); split($2, b, "/")
           print (a[1] == "tui" ? a[1] "/" a[2] : a[1]), (b[1] == "tui" ? b[1] "/" b[2] : b[1]), $1, $2 }' "$1"
}
cat >"$work/floors" <<'FLOORS'
kernels 0
engine 1
sessions 2
viz 3
tui/model 4
tui/worker 5
tui/view 5
tui/lessons 6
tui/commands 7
tui/app 8
tui/cli 9
FLOORS
# Prints the forbidden dependencies. A group may use only groups with a lower level in the list above. viz/ must not use
# sessions/, except in espalier-dot, which is a separate program.
back() {
    rooms "$1" | awk -v floors="$work/floors" 'BEGIN { while ((getline line < floors) > 0) { split(line, f, " "); floor[f[1]] = f[2] } }
        $1 == $2 || $2 == "tests" { next }
        !($1 in floor) || !($2 in floor) || floor[$2] >= floor[$1] { print "    " $3 " -> " $4 }
        $1 == "viz" && $2 == "sessions" && $3 !~ /^viz\/dot\// { print "    " $3 " -> " $4 }'
}
back "$work/includes" >"$work/back"
check "no file includes a file of a folder with a higher level" test ! -s "$work/back"; cat "$work/back"

# Other folders may include only the installed headers of engine/ and kernels/, and a few shared headers.
public=$($MAKE -s --no-print-directory print-public-headers)
shared=$($MAKE -s --no-print-directory print-shared-headers)
awk '$1 !~ /^(engine|kernels)\// && $2 ~ /^(engine|kernels)\// { print $2 }' "$work/includes" | sort -u >"$work/known"
private=$(printf '%s\n' $public $shared | sort | comm -13 - "$work/known")
check "other folders include only public and shared headers" test -z "$private"; [ -z "$private" ] || printf "    %s\n" $private
private=$(awk '{ print $1, $2 }' "$work/includes" | while read -r file included; do
    case " $(echo $public) " in *" $file "*) case " $(echo $public) " in *" $included "*) ;; *) echo "$file -> $included" ;; esac ;; esac
done)
check "public headers include only public headers" test -z "$private"; [ -z "$private" ] || printf "    %s\n" $private

# Prints the cycles in a file with lines "FILE USED".
loops() { tsort "$1" 2>&1 >/dev/null | grep -v 'contains a loop' | sed 's/^tsort: /    /'; }
loops "$work/includes" >"$work/loops"
check "includes form no cycle" test ! -s "$work/loops"; cat "$work/loops"

# Writes lines "FILE USED" to $work/calls: FILE uses a symbol that USED defines. The objects of all instruction sets define
# the same names, so only the objects of the portable instruction set are read.
find "$BUILD/obj" -name '*.o' | grep -v -e /tests/ -e no_main -e no_interface -e avx2 -e avx512 | while read -r object; do
    unit=${object#"$BUILD/obj/"}
    unit=${unit%.o}
    if [ -e "$unit.c" ] || [ -e "${unit%.generic}.c" ]; then echo "$object"; fi
done | xargs nm -o | awk -v from="$(echo "$BUILD/obj/" | wc -c)" '
    { unit = substr($1, from, index($1, ".o:") - from) }
    $(NF - 1) ~ /^[TDBRV]$/ { owner[$NF] = unit }
    $(NF - 1) == "U" { used[NR] = $NF; user[NR] = unit }
    END { for (i in used) if (used[i] in owner && owner[used[i]] != user[i]) print user[i], owner[used[i]] }' |
    sort -u >"$work/calls"
check "the test finds the calls in the objects" test "$(wc -l <"$work/calls")" -gt 300
back "$work/calls" >"$work/back"
check "no file calls a function of a folder with a higher level" test ! -s "$work/back"; cat "$work/back"
loops "$work/calls" >"$work/loops"
check "calls between files form no cycle" test ! -s "$work/loops"; cat "$work/loops"

# Every name must mean one thing.
twice=$(for file in $sources; do case $file in *.h | *.def) basename "$file" ;; esac; done | sort | uniq -d)
check "no two headers or lists have the same name" test -z "$twice"; [ -z "$twice" ] || printf "    %s\n" "$twice"
twice=$(grep -hoE '^(struct|union|enum) [a-z_0-9]+ \{' $sources | grep ' esp_' | sort | uniq -d)
check "no two types have the same name" test -z "$twice"; [ -z "$twice" ] || printf "    %s\n" "$twice"
guards=$(grep -hoE '^#ifndef ESP_[A-Z_0-9]*_H$' $sources | sort | uniq -d)
check "no two headers have the same guard" test -z "$guards"; [ -z "$guards" ] || printf "    %s\n" $guards

# Continuous integration compiles CUDA to PTX only once, for the oldest architecture. So code can test whether it is compiled
# for a device, but must not test for which architecture. For the same reason, it must not use __CUDA_ARCH_LIST__ or the
# feature macros. Kernels that begin early are the exception: plugin.cu reads from the compiled code which architecture it
# was made for.
asks=$(grep -n '__CUDA_ARCH' kernels/cuda/*.cu kernels/cuda/*.h kernels/*.h |
    grep -v -e '# *ifdef __CUDA_ARCH__$' -e '# *\(el\)\{0,1\}if defined(__CUDA_ARCH__)$' \
        -e '^kernels/cuda/device.h:.*defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= ESP_EARLY_ARCH$')
check "CUDA code is the same for all architectures" test -z "$asks"; [ -z "$asks" ] || printf '%s\n' "$asks" | sed 's/^/    /'
finish
