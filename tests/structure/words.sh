#!/bin/sh
# Checks that some phrases are not used, because readers stumble over them. CONTRIBUTING.md describes the style.
. tests/shell.sh

# Each line has a pattern, a tab, and what to write instead.
cat >"$work/words" <<'WORDS'
\bof late\b	recently
\bas they (are|is)\b	(leave it out, or name the form)
\bin the place of that\b	instead
\bas a whole or not at all\b	whole, or the old one stays
\bcomes to the end\b	ends
\bhas not of its own\b	lacks
\bsees to it\b	ensures
\bso long as\b	while
\bto and fro\b	back and forth
\bwhereof\b|\bthereof\b	of which
\bthe law of the text\b|\bkeeps its law\b	the output distribution does not change
\b[Ww]hat a row more\b	the cost of one more row
\bis asked for nothing\b	is not used
^(<{7}|>{7}) 	(finish the merge)
WORDS
files=$(git ls-files engine kernels viz sessions tui man '*.md' 2>/dev/null | grep '\.[chu]$\|\.cu$\|\.def$\|\.md$\|\.[1-9]$\|\.lesson$\|\.sh$')
[ -n "$files" ] || files=$(find engine kernels viz sessions tui man ./*.md -name '*.[ch]' -o -name '*.cu' -o -name '*.def' -o -name '*.md' -o -name '*.[1-9]' -o -name '*.lesson')
check "the test finds the files to check" test "$(echo "$files" | wc -l)" -gt 500
while IFS="$(printf '\t')" read -r pattern instead; do
    grep -nEH "$pattern" $files >"$work/found"
    check "'$pattern' is not written: $instead" test ! -s "$work/found"
    head -5 "$work/found" | cut -c1-160 | sed 's/^/    /'
done <"$work/words"
finish
