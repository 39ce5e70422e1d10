#!/bin/sh
# Tests --memory: layers that do not fit into memory are read from the model's file in every pass. The text must be the same
# for every drafter, the program must stay below the limit, and error messages must suggest what to do.
. tests/shell.sh

seed="engine/models/fairytale-target"
draft="engine/models/fairytale-draft"
$ESPALIER inflate $seed "$work/large" --width 2 --layers 12 >"$work/inflated" 2>&1
small="--context 96 --max-nodes 24 --threads 2"
text() { $ESPALIER generate --target "$work/large" --draft $draft $small -p "Once upon a time there" -n 6 "$@"; }
number() { sed -n "s/.*\"$1\":[^0-9]*\([0-9]*\).*/\1/p" "$2" | head -n 1; }

text --memory 1M >"$work/out" 2>"$work/err"
check "with a --memory that is too small, the exit code is 1" test $? = 1
check "the message about a --memory that is too small says how much is needed" grep -q '^espalier: 1M of memory are not enough: [0-9]*M are needed' "$work/err"
limit=$(($(sed -n 's/.* \([0-9]*\)M are needed.*/\1/p' "$work/err") + 2))

text --drafter ar --json >"$work/whole"
check "without --memory, no layer is streamed" grep -q '"streamed":	null' "$work/whole"
text --drafter ar --json --memory ${limit}M >"$work/least"
check "with --memory, some layers are streamed" grep -q '"resident_layers":' "$work/least"
peak=$(number peak_bytes "$work/least")
check "with --memory, the peak memory ($peak bytes) is below the limit (${limit}M)" test "$peak" -le $((limit << 20))
check "without --memory, the run needs more memory than the limit" test "$(number peak_bytes "$work/whole")" -gt $((limit << 20))

text --drafter ar >"$work/plain"
for drafter in $($ESPALIER list drafters | awk '/^[a-z]/ { print $1 }'); do
    case $drafter in iid | nde) continue ;; esac # iid samples, and nde needs a selector for this pair
    text --drafter "$drafter" --memory ${limit}M >"$work/text" 2>"$work/err"
    check "$drafter writes the same text with a memory limit" cmp "$work/plain" "$work/text"
done
text --drafter linear --window 12 >"$work/plain"
text --drafter linear --window 12 --memory ${limit}M --threads 1 >"$work/text"
check "with a memory limit, a window and one thread, the text is the same" cmp "$work/plain" "$work/text"

$ESPALIER inspect "$work/large" $draft $small --memory ${limit}M >"$work/plan" 2>&1
check "inspect says how many layers stay in memory" grep -q '^memory  *of [0-9.]* MB, .* are for the target: [0-9]* of 12 layers' "$work/plan"
check "inspect says how many bytes a pass reads" grep -q '^  every pass  *reads [0-9.]* MB in .* tokens/s of plain decoding at most' "$work/plan"
$ESPALIER inspect "$work/large" $small --memory 4g >"$work/plan" 2>&1
check "inspect says that all layers stay in memory if the limit is large enough" grep -q '^memory  *all layers stay in memory' "$work/plan"
text --drafter linear --memory ${limit}M --stats >"$work/text" 2>"$work/stats"
check "statistics say how many layers were in memory" grep -q '^memory  *[0-9]* of 12 layers; the other layers, .* a pass, were read at' "$work/stats"
check "a recording says how many layers are in memory" sh -c \
    "$ESPALIER generate --target '$work/large' --draft $draft $small -p a -n 2 --memory ${limit}M --record '$work/r' && grep -q ' of 12 layers in memory' '$work/r'"

for size in "" x -1 12X 1.5Gb nan inf 0x10M 1e99 "6 M"; do
    check "'$size' is refused as a size" fails 1 "takes a size such as 600M" text --memory "$size"
done
check "--memory is refused for a target that is enlarged in memory" fails 1 "espalier inflate" \
    $ESPALIER generate $small -p a --width 2 --layers 12 --memory 45M
finish
