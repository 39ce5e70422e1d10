#!/bin/sh
# Tests quantised files of the built-in models. Every drafter must write the same text as plain decoding.
. tests/shell.sh
models="--target $work/t.gguf --draft $work/d.gguf"
text() { $ESPALIER generate -p "Once upon a time" -n 24 --temp 0 --drafter "$@" $models 2>"$work/err"; }

for type in q8_0 q4_k; do
    $ESPALIER quantize engine/models/fairytale-target "$work/t.gguf" --type $type --force >/dev/null
    $ESPALIER quantize engine/models/fairytale-draft "$work/d.gguf" --type $type --force >/dev/null
    plain=$(text ar)
    check "with $type, plain decoding writes text" test -n "$plain"
    check "with $type, the text does not depend on the number of threads" test "$(text ar --threads 1)" = "$plain"
    for drafter in $($ESPALIER list drafters | awk '/^[a-z]/ { print $1 }'); do
        check "with $type, $drafter writes the same text as plain decoding" test "$(text $drafter)" = "$plain"
    done
done
finish
