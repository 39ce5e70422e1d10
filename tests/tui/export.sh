#!/bin/sh
# Tests exporting the tree on the screen, in a live session and in a replay.
. tests/shell.sh
. tests/script.sh

play "size 120x20
wait
type :export $work/early.svg
key Enter
$dump"
check "an export is refused if there is no tree" dumped 'there is no tree yet'

play "size 120x20
wait
type Once upon a time
key Enter
wait
type :export $work/tree.txt
key Enter
$dump" -n 20
check "the displayed tree is exported" dumped "iteration [0-9]* written to $work/tree.txt"
check "the exported tree looks like the tree in the pane" grep -q '^· ".*" committed$' "$work/tree.txt"

play "size 120x20
wait
type :export $work/tree.txt
key Enter
$dump
type :export $work/tr
key Tab
$dump-2
type :export $work/tree.gif
key Enter" --prompt "Once upon a time" -n 20
check "an existing file is not overwritten" dumped "already exists"
cp "$work/screen-2" "$work/screen" && check "paths are completed" dumped "^> :export $work/tree.txt"

play "size 120x20
wait
type Once upon a time
key Enter
wait
type :export $work/live.html
key Enter
wait
$dump
type :export stages $work/live.svg 16:9
key Enter
$dump-2" -n 20 --drafter fixed
check "a live session is exported as a page" dumped "a page of [0-9]* iterations, 0.1 MB, written to $work/live.html"
check "a live session is exported as a chart" xmllint --noout "$work/live.svg"
check "the exported page has iterations" grep -q '"iterations":\[' "$work/live.html"
echo "size 120x20
key Right
type :export $work/replay.html
key Enter" >"$work/script"
ESPALIER_SCRIPT="$work/script" timeout 60 $ESPALIER replay tests/cli/three.esp.jsonl >/dev/null 2>&1
$ESPALIER export tests/cli/three.esp.jsonl --html 2>/dev/null | cmp -s - "$work/replay.html"
check "a replay writes the same page as 'espalier export'" [ $? -eq 0 ]
play "size 120x20
wait
type Once upon a time
key Enter
wait
type :export $work/left.html
key Enter
type :quit
key Enter" -n 40 --drafter fixed
check "a page is completed even if the user ends the program" grep -q '</html>' "$work/left.html"
play "size 120x20
wait
type :export $work/none.html
key Enter
$dump"
check "a page is refused if there is no tree" dumped "there is no tree yet"

# In each pane, the key e must offer to save what the pane shows.
echo "size 120x40
key G
key Tab Tab Tab e
$dump
type $work/chart.svg dark 4:3 short
key Enter
$dump-2
type :export acceptance $work/depths.svg
key Enter
type :export stages $work/stages.txt
key Enter
$dump-3
type :export stages $work/stages.tikz
key Enter
$dump-4" >"$work/script"
ESPALIER_SCRIPT="$work/script" timeout 60 $ESPALIER replay sessions/samples/dynatree-adapting.esp.jsonl >/dev/null 2>&1
check "e in the controller pane puts the command that exports a chart into the input line" dumped '^> :export thresholds *$'
cp "$work/screen-2" "$work/screen" && check "Enter writes the chart" dumped "chart of the thresholds written to $work/chart.svg"
check "the chart has the given theme" sh -c "grep -q 'fill=\"#10151d\"' '$work/chart.svg' &&
    grep -q 'viewBox=\"0 0 831' '$work/chart.svg' && ! grep -q 'drafter ' '$work/chart.svg'"
$ESPALIER export sessions/samples/dynatree-adapting.esp.jsonl --chart acceptance | cmp -s - "$work/depths.svg"
check "a replay writes the same chart as 'espalier export'" [ $? -eq 0 ]
cp "$work/screen-3" "$work/screen" && check "charts cannot be exported as text" dumped 'the name of a chart must end in .svg, .png, .pdf or .tikz'
check "charts can be written for LaTeX" grep -q 'begin{tikzpicture}' "$work/stages.tikz"

if ! [ -x "$BUILD/espalier-dot" ]; then
    echo "  $BUILD/espalier-dot was not built, so pictures are not tested"
    finish
fi
play "size 120x20
wait
type :export! $work/tree.txt
key Enter
type :export $work/tree.svg
key Enter
type :export $work/dark.svg dark 4:3 short
key Enter
wait
$dump
key M-p
type $work/key.dot
key Enter
wait
type :export $work/tree.gif
key Enter
$dump-2" --prompt "Once upon a time" -n 20
check "a picture is written" xmllint --noout "$work/tree.svg" "$work/dark.svg"
check "the picture has the given theme" sh -c "! cmp -s '$work/tree.svg' '$work/dark.svg'"
check "the picture has the given caption and shape" sh -c "! grep -q 'drafter' '$work/dark.svg' &&
    sed -n 's/.*viewBox=.0.00 0.00 \([0-9.]*\) \([0-9.]*\)\".*/\1 \2/p' '$work/dark.svg' |
    awk '{ d = \$1 / \$2 * 3 / 4 - 1; exit !(d < 0.01 && d > -0.01) }'"
check "a message says where the picture was written" dumped "written to $work/dark.svg"
check "the caption names the models" grep -q 'fairytale&#45;target ← fairytale' "$work/tree.svg"
check "M-p puts the export command into the input line" dot -Tplain -o /dev/null "$work/key.dot"
cp "$work/screen-2" "$work/screen" && check "an unknown ending is refused" dumped 'does not end in .svg'

# The interface must not wait until a picture is written. The program must not end before the picture is written.
printf '#!/bin/sh\nsleep 2\nexec "%s" "$@"\n' "$PWD/$BUILD/espalier-dot" >"$work/slow"
printf '#!/bin/sh\nsleep 1\nexit 1\n' >"$work/bad"
chmod +x "$work/slow" "$work/bad"
export ESPALIER_DOT="$work/slow"
play "size 120x20
wait
type :export $work/slow.svg
key Enter
type more
$dump
wait
$dump-2" --prompt "Once upon a time" -n 20
check "typing works while a picture is drawn" dumped '^> more'
check "no message about the picture appears before it is written" sh -c "! grep -q 'slow.svg' '$work/screen'"
cp "$work/screen-2" "$work/screen" && check "the message about the picture appears when it is written" dumped "written to $work/slow.svg"
play "size 120x20
wait
type :export $work/last.svg
key Enter
type :quit
key Enter" --prompt "Once upon a time" -n 20
check "the program ends after the picture is written" xmllint --noout "$work/last.svg"
ESPALIER_DOT="$work/bad" play "size 120x20
wait
type :export $work/none.svg
key Enter
type :quit
key Enter" --prompt "Once upon a time" -n 20
check "a failure to write the picture is printed after the program ends" grep -q 'ended early' "$work/err"
unset ESPALIER_DOT
program=$(cd "$(dirname "$ESPALIER")" && pwd)/$(basename "$ESPALIER")
printf '%s\n' 'size 120x20' wait 'type :export dark' 'key Enter' wait >"$work/script"
(cd "$work" && ESPALIER_SCRIPT=script "$program" --prompt "Once upon a time" -n 20 >/dev/null)
check ":export with only a theme chooses a file name" sh -c "ls '$work' | grep -q '^iteration-[0-9]*.svg$'"

echo "size 120x20
key Right Right e
type $work/replayed.svg
key Enter" >"$work/script"
ESPALIER_SCRIPT="$work/script" timeout 60 $ESPALIER replay tests/cli/three.esp.jsonl >/dev/null 2>&1
$ESPALIER export tests/cli/three.esp.jsonl --iteration 1 -o "$work/exported.svg"
check "a replay writes the same picture as 'espalier export'" cmp -s "$work/replayed.svg" "$work/exported.svg"
finish
