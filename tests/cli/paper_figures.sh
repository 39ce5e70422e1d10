#!/bin/sh
# Tests `espalier export --figure`, which writes figures for papers in every format. A plain LaTeX document must accept the
# figures, whatever characters the tokens contain.
. tests/shell.sh
adapting=sessions/samples/dynatree-adapting.esp.jsonl
xpath() { xmllint --xpath "$2" "$1" 2>/dev/null; }

# These token texts contain TeX commands, XML markup, control characters, and characters that fonts do not have.
cat >"$work/hostile.sed" <<'END'
s/"text":" a"/"text":"\\\\a{%#_}~^\&$\\"'`<>|--"/g
s/"text":","/"text":"\\u202e\\u0007\\u001b[31m"/g
s/"text":" had"/"text":" 中文 é ł\\ud83d\\ude00 e\\u0301"/g
s/"text":" was"/"text":"\\\\input{\/etc\/passwd}\\\\end{document}"/g
s/"text":" king"/"text":"  a  b "/g
s/"text":" who"/"text":"<\/text>]]>\&amp;?`!`"/g
END
sed -f "$work/hostile.sed" tests/cli/three.esp.jsonl >"$work/hostile.esp.jsonl"
check "the hostile recording is valid" sh -c "$ESPALIER stats '$work/hostile.esp.jsonl' >/dev/null"

for figure in mask timeline iteration tree; do
    for format in svg tikz; do
        $ESPALIER export $adapting --iteration 3 --figure $figure -o "$work/$figure.$format"
        check "figure $figure can be exported as $format" test $? -eq 0
        $ESPALIER export "$work/hostile.esp.jsonl" --iteration 1 --figure $figure --caption none \
            -o "$work/hostile-$figure.$format"
        check "figure $figure with hostile tokens can be exported as $format" test $? -eq 0
    done
    check "the SVG of figure $figure is well-formed" xmllint --noout "$work/$figure.svg" "$work/hostile-$figure.svg"
    check "the TikZ of figure $figure with hostile tokens is plain ASCII" [ -z "$(LC_ALL=C tr -d '\n\040-\176' <"$work/hostile-$figure.tikz")" ]
    check "figure $figure looks different in the dark theme" sh -c "! $ESPALIER export $adapting --iteration 3 --figure $figure --theme dark |
        cmp -s - '$work/$figure.svg'"
done
check "figure mask shows the number of its non-empty blocks" grep -q '>block of 32 x 32 that is not empty: 1 of 1<' "$work/mask.svg"
check "figure mask names the order of the rows" grep -q '>16 rows in bfs order<' "$work/mask.svg"
check "figure mask shows the number of tokens before the tree" grep -q '>17 tokens<' "$work/mask.svg"
sed 's/{"t":0.01\(.*"index":0,\)/{"t":0.0111,"type":"setting","key":"order","value":"hpd"}\n&/' \
    tests/cli/three.esp.jsonl >"$work/order.esp.jsonl"
check "figure mask uses the order of rows that was set in the recording" sh -c "$ESPALIER export '$work/order.esp.jsonl' --iteration 0 --figure mask |
    grep -q 'in hpd order'"
check "figure iteration underlines the accepted tokens" test \
    "$(xpath "$work/iteration.svg" "count(//*[local-name()='path'][@stroke-width=1.8])")" = 2
check "figure timeline shows the number of draft passes" sh -c "grep -q '>draft, 3 passes<' '$work/timeline.svg'"
check "figure timeline shows the time of plain decoding" grep -q '>plain decoding<' "$work/timeline.svg"
$ESPALIER export $adapting --iteration 3-4 --figure mask -o "$work/m.tex"
check "the files of several figures are numbered" test -s "$work/m-0003.tex" -a -s "$work/m-0004.tex"
$ESPALIER export $adapting --iteration 3 -o "$work/default.tikz"
check "a tree exported for LaTeX equals the figure 'tree'" cmp -s "$work/default.tikz" "$work/tree.tikz"
$ESPALIER export $adapting --chart thresholds -o "$work/chart.tikz"
check "charts can also be written for LaTeX" grep -q 'begin{tikzpicture}' "$work/chart.tikz"

check "an unknown figure is refused" fails 1 "mask, timeline, iteration or tree" \
    $ESPALIER export $adapting --iteration 3 --figure ring
check "a format that figures do not have is refused" fails 1 "svg, png, pdf or tikz" \
    $ESPALIER export $adapting --iteration 3 --figure mask --format txt
check "--figure and --chart are refused together" fails 1 "exclude each other" \
    $ESPALIER export $adapting --iteration 3 --figure mask --chart stages
check "--aspect is refused for a figure" fails 1 "the size of a figure" \
    $ESPALIER export $adapting --iteration 3 --figure mask --aspect 16:9

# Compiles a LaTeX document that loads only the package tikz.
if command -v pdflatex >/dev/null && kpsewhich tikz.sty >/dev/null; then
    {
        printf '%s\n' '\documentclass{article}\usepackage{tikz}\begin{document}'
        for figure in mask timeline iteration tree; do
            printf '\\input{%s.tikz}\\clearpage\n' "$figure" "hostile-$figure"
        done
        printf '%s\n' '\input{chart.tikz}\typeout{espalier: all of them}\end{document}'
    } >"$work/all.tex"
    (cd "$work" && pdflatex -interaction=nonstopmode -halt-on-error all.tex >/dev/null 2>&1)
    check "pdflatex accepts all figures" grep -q '^espalier: all of them' "$work/all.log"
    check "pdflatex finds every character of the figures in its fonts" sh -c "! grep -a 'Missing character' '$work/all.log'"
    # Glyphs of the font encoding TS1 must not be used: they would be bitmaps if only the basic fonts are installed.
    check "pdflatex uses only the basic fonts" sh -c "! grep -a 'tc[a-z]*[0-9]*\(\.600pk\|>\)' '$work/all.log'"
else
    echo "  pdflatex with tikz is not installed, so TikZ is not compiled"
fi

if ! [ -x "$BUILD/espalier-dot" ]; then
    echo "  $BUILD/espalier-dot was not built, so PNG and PDF are not tested"
    finish
fi
# The number after startxref must be the position of the cross references, which are either a
# table or an object.
whole_pdf() {
    head -c 5 "$1" | grep -q '%PDF-' && tail -c 7 "$1" | grep -q '%%EOF' &&
        tail -c "+$(($(tail -n 3 "$1" | grep -a -o '^[0-9]*$' | head -n 1) + 1))" "$1" |
        head -n 1 | grep -a -q '^xref\|^[0-9]* 0 obj'
}
size_of() { # FILE.pdf: prints its size in points
    grep -a -o 'MediaBox \[ *0 0 [0-9.]* [0-9.]*' "$1" | head -n 1 | awk '{ printf "%.0f %.0f", $(NF - 1), $NF }'
}
for figure in mask timeline iteration tree; do
    for from in "$adapting --iteration 3" "$work/hostile.esp.jsonl --iteration 1"; do
        $ESPALIER export $from --figure $figure --force -o "$work/$figure.png"
        check "figure $figure can be exported as PNG" [ "$(head -c 8 "$work/$figure.png" | od -An -tx1)" = " 89 50 4e 47 0d 0a 1a 0a" ]
        $ESPALIER export $from --figure $figure --force -o "$work/$figure.pdf"
        check "figure $figure can be exported as PDF" whole_pdf "$work/$figure.pdf"
    done
    $ESPALIER export $adapting --iteration 3 --figure $figure --force -o "$work/$figure.pdf"
    check "the PDF of figure $figure has the size of the SVG" [ "$(size_of "$work/$figure.pdf")" = \
        "$(sed -n 's/.* width="\([0-9]*\)pt" height="\([0-9]*\)pt".*/\1 \2/p' "$work/$figure.svg")" ]
done
if command -v pdftotext >/dev/null; then
    pdftotext "$work/mask.pdf" "$work/mask.txt"
    check "the text of a PDF can be extracted" grep -q 'Tree attention mask of iteration 3' "$work/mask.txt"
fi
$ESPALIER export $adapting --iteration 3 -o "$work/picture.pdf"
check "a tree can be exported as PDF" whole_pdf "$work/picture.pdf"
$ESPALIER export $adapting --chart stages -o "$work/stages.png"
check "a chart can be exported as PNG" [ "$(head -c 8 "$work/stages.png" | od -An -tx1)" = " 89 50 4e 47 0d 0a 1a 0a" ]
check "espalier-dot --convert refuses a file that is not an SVG" fails 1 "cannot read the SVG" sh -c "echo '<svg' |
    '$BUILD/espalier-dot' --convert 100x100 --format png"
check "espalier-dot --convert refuses an invalid size" fails 1 "as 400x300" "$BUILD/espalier-dot" --convert 100 --format png
check "espalier-dot --convert requires a format" fails 1 "format png or --format pdf" "$BUILD/espalier-dot" --convert 100x100
finish
