#!/bin/sh
# Tests drafter nde. Its selectors must also work with a target that was made wider and with
# quantised models. The text must be the same as with plain decoding. Parameter `goal` chooses the selector.
. tests/shell.sh
text() { $ESPALIER generate -p "Once upon a time" -n 24 --temp 0 --drafter "$@"; }
sampled() { $ESPALIER generate -p "Once upon a time" -n 48 --temp 0.8 --seed 3 --drafter "$@"; }
# Prints the number of drafted nodes per hundred iterations.
nodes() {
    sampled "$@" --json 2>/dev/null |
        awk -F'[:,\t]+' '$2 == "\"iterations\"" { n = $3 } $2 == "\"drafted_nodes\"" { print int(100 * $3 / n) }'
}

for width in 2 4; do
    plain=$(text ar --width $width)
    check "at width $width, plain decoding writes text" test -n "$plain"
    for goal in speed tokens; do
        check "at width $width, goal=$goal does not change the text" test "$(text nde:goal=$goal --width $width 2>/dev/null)" = "$plain"
    done
done
sampled nde --width 2 >/dev/null 2>"$work/err"
check "at another width, a note says that the selector was trained for other costs" grep -q 'costs of these models in a different width' "$work/err"
sampled nde:goal=tokens --width 2 >/dev/null 2>"$work/err"
check "with goal=tokens there is no note about the width" test ! -s "$work/err"
sampled nde >/dev/null 2>"$work/err"
check "with the original pair there is no note about the width" test ! -s "$work/err"

$ESPALIER quantize engine/models/fairytale-target "$work/t.gguf" --type q4_k >/dev/null
$ESPALIER quantize engine/models/fairytale-draft "$work/d.gguf" --type q8_0 >/dev/null
models="--target $work/t.gguf --draft $work/d.gguf"
plain=$(text ar $models)
for goal in speed tokens cheap-rows; do
    check "with q4_k, goal=$goal does not change the text" test -n "$plain" -a "$(text nde:goal=$goal $models 2>/dev/null)" = "$plain"
done
sampled nde $models >/dev/null 2>"$work/err"
check "with quantised models, a note says that the selector was trained for other costs" grep -q 'different width or number format' "$work/err"

few=$(nodes nde:goal=speed --verifier spectr) more=$(nodes nde:goal=tokens --verifier spectr)
check "goal=tokens drafts more nodes ($more) than goal=speed ($few)" test "$more" -gt "$few"
fails 1 "goal" $ESPALIER generate -p Once -n 4 --drafter nde:goal=bread
finish
