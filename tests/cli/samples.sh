#!/bin/sh
# The recordings that ship, with no model in reach: each replays and exports, twice with the same bytes.
. tests/shell.sh
ESPALIER_DATA=$work/nothing
export ESPALIER_DATA
mkdir "$work/nothing"

for sample in sessions/samples/*.esp.jsonl; do
    of=$(basename "$sample" .esp.jsonl)
    iterations=$(grep -c '"type":"iteration"' "$sample")
    $ESPALIER replay "$sample" --plain >"$work/frames"
    check "$of replays" test "$(grep -c '^--- iteration' "$work/frames")" -eq "$iterations"
    $ESPALIER replay "$sample" --plain >"$work/again"
    check "$of replays byte for byte" cmp -s "$work/frames" "$work/again"
    $ESPALIER export "$sample" --iteration 0-$((iterations - 1)) --format json >"$work/json"
    grep '"type":"iteration"' "$sample" | cmp -s - "$work/json"
    check "$of exports the very events" test $? -eq 0
    for format in txt dot svg; do
        [ -x "$BUILD/espalier-dot" ] || [ $format = txt ] || continue
        $ESPALIER export "$sample" --iteration 5 --format $format >"$work/one"
        check "$of exports $format" test -s "$work/one"
        $ESPALIER export "$sample" --iteration 5 --format $format | cmp -s - "$work/one"
        check "$of exports $format byte for byte" test $? -eq 0
    done
done
finish
