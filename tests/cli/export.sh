#!/bin/sh
# Tests `espalier export`, which writes iterations of a recording as files for other programs. A file must be written
# completely or not at all.
. tests/shell.sh
recording=tests/cli/three.esp.jsonl
export="$ESPALIER export $recording"

$export --iteration 1 --format txt >"$work/one.txt"
check "--format txt draws a tree as in the tree pane of the interface" grep -q '^├─ " .* ✓$' "$work/one.txt"
check "with --format txt, the first line describes the iteration" grep -q '^iteration 1, dynatree, greedy: ' "$work/one.txt"
$export --iteration 1 --format txt --ascii >"$work/ascii.txt"
check "--ascii prints only ASCII" [ -z "$(tr -d '\000-\177' <"$work/ascii.txt")" ]
$export --iteration 2 --format json >"$work/two.json"
check "--format json prints an iteration as it was recorded" sh -c "sed -n 5p $recording | cmp -s - '$work/two.json'"
check "--format txt can print several iterations" [ "$($export --iteration 0-2 --format txt |
    grep -c '^iteration ')" = 3 ]

check "without --iteration, export asks for an iteration" fails 1 "say which iteration" $export
check "an iteration that does not exist is refused" fails 1 "has 0 to 2" $export --iteration 3
check "an invalid range of iterations is refused" fails 1 "takes a number" $export --iteration 2-1
check "an unknown format is refused" fails 1 "gif" $export --iteration 1 --format gif
check "a file name with an unknown extension is refused" fails 1 "tree.gif" $export --iteration 1 -o "$work/tree.gif"
check "an unknown theme of a picture is refused" fails 1 "light and dark" $export --iteration 1 --theme mono
check "several pictures cannot be written to standard output" fails 1 "several pictures" $export --iteration 0-1
check "a file that is not a recording is refused" fails 1 "tests/shell.sh" $ESPALIER export tests/shell.sh --iteration 0
echo precious >"$work/there.txt"
check "an existing file is not overwritten" fails 1 "already exists" $export --iteration 1 -o "$work/there.txt"
check "a refused export leaves the existing file unchanged" [ "$(cat "$work/there.txt")" = precious ]
check "--force overwrites an existing file" $export --iteration 1 -o "$work/there.txt" --force
check "the file overwritten with --force has the new text" cmp -s "$work/one.txt" "$work/there.txt"
check "a folder that does not exist is refused" fails 1 "none/tree.txt" $export --iteration 1 -o "$work/none/tree.txt"
mkdir "$work/no"
check "if espalier-dot is missing, export fails and says so" fails 1 "cannot be run" \
    env ESPALIER_DOT="$work/none" $export --iteration 1 -o "$work/no/tree.svg"
printf '#!/bin/sh\necho half\nexit 1\n' >"$work/bad" && chmod +x "$work/bad"
check "a failure of espalier-dot is reported" fails 1 "ended early" \
    env ESPALIER_DOT="$work/bad" $export --iteration 1 -o "$work/no/tree.svg"
check "if espalier-dot fails, no file is left" [ -z "$(ls "$work/no")" ]

# Control characters in a recording must not reach the terminal through the JSON output.
sed '5s/"verifier":"greedy"/\x1b"verifier":"\x1b[31m\\u0007\x9f"/' $recording >"$work/colours.esp.jsonl"
$ESPALIER export "$work/colours.esp.jsonl" --iteration 2 --format json >"$work/colours.json" 2>"$work/err"
check "--format json prints no control characters of the recording" [ -z "$(LC_ALL=C tr -d '\n\040-\176\200-\377' <"$work/colours.json")" ]

$export --asciicast "$work/replay.cast" --size 100x30 --speed 2 --theme light
check "an asciicast has its header" sh -c "head -n 1 '$work/replay.cast' |
    grep -q '^{\"version\":2,\"width\":100,\"height\":30,'"
check "an asciicast has frames" [ "$(grep -c '^\[[0-9.]*, "o", ".*"\]$' "$work/replay.cast")" -ge 4 ]
check "an asciicast has no control characters" [ -z "$(LC_ALL=C tr -d '\n\040-\176\200-\377' <"$work/replay.cast")" ]
check "an existing asciicast is not overwritten" fails 1 "already exists" $export --asciicast "$work/replay.cast"
check "an invalid --size is refused" fails 1 "WxH" $export --asciicast "$work/x.cast" --size 10x2
check "an invalid --speed is refused" fails 1 "speed" $export --asciicast "$work/x.cast" --speed 100
check "--asciicast refuses an unknown theme" fails 1 "no theme 'pink'" $export --asciicast "$work/x.cast" --theme pink
check "--asciicast and --iteration exclude each other" fails 1 "the whole replay" $export --asciicast "$work/x.cast" --iteration 1

# It must be possible to export charts without Graphviz.
adapting=sessions/samples/dynatree-adapting.esp.jsonl
chart="$ESPALIER export $adapting --chart"
for kind in thresholds acceptance stages; do
    $chart $kind -o "$work/$kind.svg"
    check "the chart of $kind is well-formed" xmllint --noout "$work/$kind.svg"
done
xpath() { xmllint --xpath "$2" "$1" 2>/dev/null; }
check "the chart of thresholds has a panel for each adapted threshold" test \
    "$(xpath "$work/thresholds.svg" "count(//*[local-name()='text'][starts-with(., 'at the end')])")" = 4
check "the chart of thresholds names the thresholds" grep -q '>upper confidence (tauh)<' "$work/thresholds.svg"
check "a chart of thresholds shows the goal as a line" grep -q 'stroke-dasharray' "$work/thresholds.svg"
check "the chart of acceptance has a bar for each depth" test "$(xpath "$work/acceptance.svg" "count(//*[local-name()='circle'])")" = 6
check "the chart of acceptance shows the counts that espalier stats prints" grep -q '>26 tried<' "$work/acceptance.svg"
check "the chart of stages has a column for each iteration" test \
    "$(xpath "$work/stages.svg" "count(//*[local-name()='path'][@stroke-width=2])")" -ge 60
check "a chart of stages shows the mean time of each stage" grep -q '>verify [0-9.]* ms<' "$work/stages.svg"
check "a chart can be limited to some iterations" sh -c "$chart stages --iteration 3-9 | grep -q '>7 iterations; line'"
$chart acceptance --aspect 4:3 --caption none --theme dark >"$work/bare.svg"
check "a chart that is drawn with --aspect 4:3 has this aspect ratio" grep -q 'viewBox="0 0 831.38 623.54"' "$work/bare.svg"
check "--caption none leaves out the title of a chart" sh -c "! grep -q 'Acceptance by depth' '$work/bare.svg'"
check "a chart of thresholds is refused if the recording has no thresholds" fails 1 "thresholds" $ESPALIER export sessions/samples/traversal-sampling.esp.jsonl --chart thresholds
check "a chart that does not exist is refused" fails 1 "thresholds, acceptance or stages" $chart ring
check "charts have no text format" fails 1 "svg, png, pdf or tikz" $chart stages --format txt

if ! [ -x "$BUILD/espalier-dot" ]; then
    echo "  $BUILD/espalier-dot was not built, so pictures are not tested"
    finish
fi
$export --iteration 0-2 -o "$work/tree.svg"
check "the files of several pictures are numbered" [ "$(cd "$work" && ls tree-*.svg | tr '\n' ' ')" = \
    "tree-0000.svg tree-0001.svg tree-0002.svg " ]
check "the numbered pictures are well-formed" xmllint --noout "$work/tree-0000.svg" "$work/tree-0002.svg"
$export --iteration 0-2 -o "$work/x%d.dot"
check "%d in a file name is replaced by the number of the iteration" [ "$(cd "$work" && ls x*.dot | tr '\n' ' ')" = "x0.dot x1.dot x2.dot " ]
check "the program dot accepts the written DOT files" sh -c "cat '$work'/x*.dot | dot -Tplain | grep -c '^stop' | grep -q '^3$'"
$export --iteration 1 >"$work/stdout.svg"
check "without -o, a picture is written to standard output" cmp -s "$work/stdout.svg" "$work/tree-0001.svg"
$export --iteration 1 --format json | "$BUILD/espalier-dot" --models 'fairytale-target ← fairytale-draft' |
    cmp -s - "$work/stdout.svg"
check "espalier-dot draws what export --format json prints" [ $? -eq 0 ]
# Some programs drop a space at the beginning of a text element of an SVG, so these texts must not begin with a space.
check "no text in an SVG begins with a space" sh -c "! LC_ALL=C.UTF-8 grep -q '<text[^>]*>[ Â ][^< Â ]' '$work/tree-0001.svg'"
check "a short caption leaves out the settings" sh -c "$export --iteration 1 --caption short |
    tee '$work/short.svg' | grep -q 'Iteration 1: ' && ! grep -q 'drafter' '$work/short.svg'"
check "a full caption has the settings" grep -q '>drafter ' "$work/tree-0001.svg"
check "the legend explains the marks in the tree" grep -q '>accepted' "$work/tree-0001.svg"
$export --iteration 1 --caption none >"$work/none.svg"
check "--caption none leaves out all words around a tree" sh -c "! grep -q 'Iteration 1\|>accepted\|shade:' '$work/none.svg'"
tale=sessions/samples/traversal-sampling.esp.jsonl
$ESPALIER export $tale --iteration 5 >"$work/kinds.svg"
check "the legend explains only marks that are in the tree" sh -c "grep -q '>not visited' '$work/kinds.svg' &&
    ! grep -q '>rejected\|>cut before' '$work/kinds.svg'"
# shaped FILE W H: succeeds if the picture's proportions are W:H, with an error of at most one percent.
shaped() {
    sed -n 's/.*viewBox="[-0-9.]* [-0-9.]* \([0-9.]*\) \([0-9.]*\)".*/\1 \2/p' "$1" |
        awk -v w="$2" -v h="$3" '{ d = $1 / $2 / (w / h) - 1; good = d < 0.01 && d > -0.01 } END { exit !good }'
}
for shape in 16:9 4:3 1:2; do
    for of in "$recording --iteration 1" "$tale --iteration 5"; do
        $ESPALIER export $of --aspect $shape >"$work/shaped.svg"
        check "a picture that is drawn with --aspect $shape has this aspect ratio" shaped "$work/shaped.svg" ${shape%:*} ${shape#*:}
    done
done
check "an invalid aspect ratio is refused" fails 1 "such as 16:9" $export --iteration 1 --aspect wide
check "an aspect ratio that is too wide is refused" fails 1 "such as 16:9" $export --iteration 1 --aspect 100:1
check "an unknown caption is refused" fails 1 "full, short or none" $export --iteration 1 --caption some
check "--aspect is refused for a tree that is written as text" fails 1 "are for pictures" $export --iteration 1 --format txt --aspect 16:9
for option in --aspect --caption; do
    check "espalier-dot refuses $option x" fails 1 "$option takes" "$BUILD/espalier-dot" $option x
done
for nodes in many 12x -1 99999999999 ''; do
    check "espalier-dot refuses --nodes '$nodes'" fails 1 "whole number" "$BUILD/espalier-dot" --nodes "$nodes"
done
check "a picture in the dark theme differs from one in the light theme" sh -c "! $export --iteration 1 --theme dark | cmp -s - '$work/stdout.svg'"
$export --iteration 1 -o "$work/tree.png"
check "a file that ends in .png is a PNG" [ "$(head -c 8 "$work/tree.png" | od -An -tx1)" = " 89 50 4e 47 0d 0a 1a 0a" ]
check "export reports an error if standard output is a full disk" sh -c "$export --iteration 1 2>&1 >/dev/full | grep -q 'standard output'"
if command -v script >/dev/null; then
    script -qec "$export --iteration 1 --format png" /dev/null >"$work/terminal" </dev/null
    check "no PNG is written to a terminal" grep -q "not for a terminal" "$work/terminal"
fi
finish
