#!/bin/sh
# Tests the manual page of the drafters: the program accepts the papers' settings as they are written on the page.
. tests/shell.sh
sed -n '/^\.Sh SETTINGS/,$p' man/espalier-drafters.7 |
    sed -n 's/^\.Ql \([a-z0-9:,.=A-Z-]*\).*/\1/p' | grep -v -e '^-' -e '^root=' -e '^espalier' | sort -u >"$work/settings"
check "there are settings to try" test "$(wc -l <"$work/settings")" -gt 20
while read -r setting; do
    check "the program accepts $setting" sh -c "$ESPALIER generate -p Once -n 4 --max-nodes 768 --drafter '$setting' </dev/null |
        grep -q ."
done <"$work/settings"
for drafter in fixed dynatree; do
    check "$drafter accepts the settings of its paper" sh -c "$ESPALIER generate -p Once -n 4 --drafter \
        $drafter:root=draft,cache=rebuild </dev/null | grep -q ."
done
for rule in nss naivetree spectr specinfer khisti traversal; do
    check "$rule works with the trees of tables 2 to 7" sh -c "$ESPALIER generate -p Once -n 4 --temp 1 \
        --drafter iid:K=4,L=8 --verifier $rule </dev/null | grep -q ."
done
for rule in naive bv; do
    check "$rule works with its single path" sh -c "$ESPALIER generate -p Once -n 4 --temp 1 \
        --drafter iid:K=1,L=8 --verifier $rule </dev/null | grep -q ."
done
$ESPALIER list drafters --json >"$work/json"
check "the list has the differences from the papers" grep -q '"differs":	"[a-z].*fixed' "$work/json"
thresholds=$(grep -c 'draft_temp' "$work/json")
check "the list says that q is tempered, for every drafter with a draft model" test "$thresholds" -ge 15
check "the list shows the default of a choice" sh -c "$ESPALIER list drafters | grep -q 'retrieval *off|on, default on ' &&
    ! $ESPALIER list drafters | grep '^    ' | grep -v default"
check "JSON has the default of a choice" grep -q '"default":	"keep"' "$work/json"
check "the list mentions the paths that TALF leaves out" sh -c "$ESPALIER list losses --json | grep -q '\"differs\":.*every 4th token'"
check "no existing feature is called missing" sh -c \
    "sed -n '/ is missing: /,/^\.Sh/p' man/espalier-drafters.7 | grep -q 'Tree verification' &&
    ! sed -n '/ is missing: /,/^\.Sh/p' man/espalier-drafters.7 | grep -iq 'selector\|talf\|StreamingLLM'"
tests/drafters_page "$ESPALIER" >"$work/page"
check "the man page is up to date" cmp "$work/page" man/espalier-drafters.7
finish
