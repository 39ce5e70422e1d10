#!/bin/sh
# `espalier export FILE --html` must write one HTML file that plays the recording in a browser and runs only its own script.
. tests/shell.sh
recording=sessions/samples/dynatree-adapting.esp.jsonl
export="$ESPALIER export $recording"

$export --html -o "$work/page.html" 2>"$work/err"
check "a page is written" test -s "$work/page.html"
check "the size of the page is printed" grep -q 'a page of 74 iterations, [0-9.]* MB' "$work/err"
$export -o "$work/named.html" 2>/dev/null
check "if the output file ends in .html, --html is not needed" cmp -s "$work/page.html" "$work/named.html"
$export --format html >"$work/piped.html"
check "a page can be written to standard output" cmp -s "$work/page.html" "$work/piped.html"
$export --html --iteration 3-5 -o "$work/part.html" 2>"$work/err"
check "a page can contain only some of the iterations" grep -q 'a page of 3 iterations' "$work/err"
check "an existing page is not overwritten" fails 1 "already exists" $export --html -o "$work/page.html"
check "--html and --format exclude each other" fails 1 "exclude each other" $export --html --format svg
check "an iteration that does not exist is refused" fails 1 "has 0 to 73" $export --html --iteration 90
sed '/"iteration"/d' "$recording" >"$work/none.esp.jsonl"
check "a recording without iterations is refused" fails 1 "has no iterations\|say which" $ESPALIER export "$work/none.esp.jsonl" --html

# Each "<" takes six bytes in the page, so the page of this recording is larger than the limit.
awk 'NR == 1 || /"type":"iteration"/ { if (NR > 1) { if (!done++) kept = $0 } else print }
    END { for (text = "<"; length(text) < 900000;) text = text text
          for (i = 0; i < 12; i++) printf "{\"t\":0,\"type\":\"prompt\",\"tokens\":[{\"id\":%d,\"text\":\"%d%s\"}]}\n", 3000 + i, i, substr(text, 1, 1000000)
          print kept }' "$recording" >"$work/large.esp.jsonl"
check "a page that is too large is refused" fails 1 "larger than 64 MB; choose fewer" \
    $ESPALIER export "$work/large.esp.jsonl" --html
rm "$work/large.esp.jsonl"

# The digests in the page's security policy must be the digests of the page's script and style.
digest() {
    awk -v from="$1" -v to="$2" 'function rest(s) { return substr(s, index(s, from) + length(from)) }
        !on && index($0, from) { on = 1; print rest($0); next } on && index($0, to) { exit } on' "$work/page.html" |
        sha256sum | cut -c-64
}
named() {
    grep -o "$1-src 'sha256-[^']*'" "$work/page.html" | sed "s/.*sha256-//; s/'//" | base64 -d | od -An -v -tx1 | tr -d ' \n'
}
check "the security policy has the digest of the style" test "$(digest '<style>' '</style>')" = "$(named style)"
check "the security policy has the digest of the script" test "$(digest '<script>' '</script>')" = "$(named script)"
check "the security policy allows only this script and this style" grep -q "Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-[^' ]*'; style-src 'sha256-[^' ]*'; base-uri" "$work/page.html"
check "the page refers to no other file or page" sh -c "! grep -v 'http://www.w3.org/2000/svg' '$work/page.html' | grep -q 'https\\?://\\|src=\\|href=\\|@import\\|url('"

$ESPALIER export tests/vectors/recordings/hostile.esp.jsonl --html -o "$work/hostile.html" 2>/dev/null
if command -v xmllint >/dev/null; then
    for page in page hostile; do
        # libxml2 does not know the elements of HTML 5, so complaints about them are ignored.
        # Any other complaint is an error.
        xmllint --html --noout "$work/$page.html" 2>&1 | grep 'error :' | grep -v 'Tag [a-z]* invalid' >"$work/complaints"
        check "$page.html is valid HTML" test ! -s "$work/complaints"; cat "$work/complaints"
    done
    check "HTML tags in a recorded text create no elements in the page" test \
        "$(xmllint --html --xpath 'count(//script) + 100 * count(//style) + 10000 * count(//b | //a | //img | //iframe)' \
            "$work/hostile.html" 2>/dev/null)" = 102
fi

# The rest of the test needs a browser, which is too large to be installed only for this test.
browser=
for program in chromium chromium-browser google-chrome chrome; do
    [ -n "$browser" ] || browser=$(command -v $program)
done
if [ -z "$browser" ] || ! command -v python3 >/dev/null; then
    echo "  there is no Chromium or no python3 here: the page was not tested in a browser"
    finish
fi
timeout 120 python3 tests/browser/page.py "$browser" "$work/page.html" "$work/hostile.html" >"$work/browser" 2>&1
check "the page plays in a browser" grep -q '^page: [0-9]* passed, 0 failed$' "$work/browser"
grep -v ' 0 failed$' "$work/browser"
finish
