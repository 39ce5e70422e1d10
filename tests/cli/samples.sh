#!/bin/sh
# Tests the sample recordings without any model. It must be possible to replay and to export each
# recording, and a second replay or export must give the same bytes.
. tests/shell.sh
ESPALIER_DATA=$work/nothing
export ESPALIER_DATA
mkdir "$work/nothing"

for sample in sessions/samples/*.esp.jsonl; do
    of=$(basename "$sample" .esp.jsonl)
    iterations=$(grep -c '"type":"iteration"' "$sample")
    $ESPALIER replay "$sample" --plain >"$work/frames"
    check "sample $of can be replayed" test "$(grep -c '^--- iteration' "$work/frames")" -eq "$iterations"
    $ESPALIER replay "$sample" --plain >"$work/again"
    check "replaying sample $of twice gives the same bytes" cmp -s "$work/frames" "$work/again"
    $ESPALIER export "$sample" --iteration 0-$((iterations - 1)) --format json >"$work/json"
    grep '"type":"iteration"' "$sample" | cmp -s - "$work/json"
    check "exporting sample $of as JSON gives the recorded iterations" test $? -eq 0
    for format in txt dot svg; do
        [ -x "$BUILD/espalier-dot" ] || [ $format = txt ] || continue
        $ESPALIER export "$sample" --iteration 5 --format $format >"$work/one"
        check "sample $of can be exported as $format" test -s "$work/one"
        $ESPALIER export "$sample" --iteration 5 --format $format | cmp -s - "$work/one"
        check "exporting sample $of twice as $format gives the same bytes" test $? -eq 0
    done
done

# Each paper has a page. Every file that a page names must exist, and the commands of the page must make its pictures.
for page in sessions/samples/*.md; do
    of=$(basename "$page" .md)
    for file in $(grep -o 'sessions/[a-z]*/[a-z0-9-]*\.[a-z.]*[a-z]' "$page" | sort -u); do
        check "page $of names $file, which exists" test -e "$file"
    done
    for suite in $(grep -o 'suites/[a-z-]*\.suite\|`[a-z-]*\.suite`' "$page" | tr -d '\140' | sed 's/.*\///'); do
        check "page $of names $suite, which exists" test -e "sessions/suites/$suite"
    done
    [ "$of" = README ] && continue
    check "the README of the samples links to page $of" grep -q "($of.md)" sessions/samples/README.md
    sed -n "s|^    build/espalier \(export sessions.*\) -o \(sessions/.*\)|\1 \2|p" "$page" >"$work/commands"
    check "page $of has a picture" test -s "$work/commands"
    [ -e "sessions/samples/$of.paper" ] &&
        check "page $of compares its paper with espalier" grep -q "^export sessions/samples/$of.paper " "$work/commands"
    while read -r command; do
        picture=${command##* }
        $ESPALIER ${command% *} >"$work/picture"
        check "the command on page $of makes $picture" cmp "$work/picture" "$picture"
        check "page $of shows $picture" grep -q "($(basename "$picture"))" "$page"
    done <"$work/commands"
done

# A figure compares a paper's values with espalier's values. Its bars must show the values of the table.
cat >"$work/table.json" <<'END'
{"suite": "s", "prompts": 2, "tokens": 4, "rows": [{"choice": "a", "T": 0, "n": 2}, {"choice": "a", "T": 0, "n": 3},
 {"choice": "a", "T": 0.6, "n": 7}, {"choice": "b<", "T": 0, "n": null}]}
END
paper() { # LINES: writes a .paper file with the lines that all such files of this test have, followed by LINES
    printf '%s\n' "title <T>" "paper P" "results table.json" "column n" "reference 1 plain" "$@" >"$work/x.paper"
}
draw() { $ESPALIER export "$work/x.paper" --force -o "$work/x.$1"; }
paper "here cold | T 0" "here warm | T 0.6" "row A | 4.25 | choice a"
check "a paper's figure is drawn" draw svg
check "a paper's figure shows the paper's value" grep -q '>4.25<' "$work/x.svg"
check "the bar of the line 'here cold' shows the mean of the two table rows with T 0" grep -q '>2.50<' "$work/x.svg"
check "the bar of the line 'here warm' shows the table row with T 0.6" grep -q '>7.00<' "$work/x.svg"
check "markup in the title of a figure is shown as plain text" grep -q '&lt;T&gt;' "$work/x.svg"
check "a title with markup can be drawn as TikZ" draw tikz
wrong() { # WHAT LINE SENTENCE: a .paper file with LINE must be refused with SENTENCE
    paper "here cold | T 0" "$2"
    check "$1 is refused" fails 1 "$3" draw svg
}
wrong "a row without a value in the table" "row A | 1 | choice c" "has no n for row 'A', cold"
wrong "a row for a configuration that does not exist" "row B | 1 | choice b<" "has no n for row 'B', cold"
wrong "a value of the paper that is not a number" "row A | x | choice a" "line 7: row takes NAME | VALUE"
wrong "a paper without rows" "measure m" "row are required"
wrong "a line of an unknown kind" "rows 3" "line 7: unknown kind of line"
wrong "a table that does not exist" "$(printf 'results none.json\nrow A | 1 | choice a')" "none.json cannot be opened"
paper "here cold | T 0" "row A | - | choice a"
check "--iteration is refused for a paper's figure" fails 1 "figures are one picture" $ESPALIER export "$work/x.paper" --iteration 3
finish
