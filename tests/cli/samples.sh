#!/bin/sh
# The sample recordings, with no model available: each replays and exports, twice with the same bytes.
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

# A page for each paper: its commands make its pictures, and it names what is there.
for page in sessions/samples/*.md; do
    of=$(basename "$page" .md)
    for file in $(grep -o 'sessions/[a-z]*/[a-z0-9-]*\.[a-z.]*[a-z]' "$page" | sort -u); do
        check "$of names $file, which is there" test -e "$file"
    done
    for suite in $(grep -o 'suites/[a-z-]*\.suite\|`[a-z-]*\.suite`' "$page" | tr -d '\140' | sed 's/.*\///'); do
        check "$of names $suite, which is there" test -e "sessions/suites/$suite"
    done
    [ "$of" = README ] && continue
    check "README leads to $of" grep -q "($of.md)" sessions/samples/README.md
    sed -n "s|^    build/espalier \(export sessions.*\) -o \(sessions/.*\)|\1 \2|p" "$page" >"$work/commands"
    check "$of has a picture" test -s "$work/commands"
    while read -r command; do
        picture=${command##* }
        $ESPALIER ${command% *} >"$work/picture"
        check "$of makes $picture" cmp "$work/picture" "$picture"
        check "$of shows it" grep -q "($(basename "$picture"))" "$page"
    done <"$work/commands"
done
finish
