#!/bin/sh
# Tests the manual page of the drafters: the program must accept the papers' settings as they are written on the page.
. tests/shell.sh
sed -n '/^\.Sh SETTINGS/,$p' man/espalier-drafters.7 |
    sed -n 's/^\.Ql \([a-z0-9:,.=A-Z-]*\).*/\1/p' | grep -v -e '^-' -e '^root=' -e '^espalier' | sort -u >"$work/settings"
check "the manual page of the drafters has settings to try" test "$(wc -l <"$work/settings")" -gt 20
while read -r setting; do
    check "generate accepts --drafter $setting" sh -c "$ESPALIER generate -p Once -n 4 --max-nodes 768 --drafter '$setting' </dev/null |
        grep -q ."
done <"$work/settings"
for drafter in fixed dynatree; do
    check "$drafter accepts the settings of its paper" sh -c "$ESPALIER generate -p Once -n 4 --drafter \
        $drafter:root=draft,cache=rebuild </dev/null | grep -q ."
done
for rule in nss naivetree spectr specinfer khisti traversal; do
    check "verifier $rule works with four paths of eight tokens" sh -c "$ESPALIER generate -p Once -n 4 --temp 1 \
        --drafter iid:K=4,L=8 --verifier $rule </dev/null | grep -q ."
done
for rule in naive bv; do
    check "verifier $rule works with a single path" sh -c "$ESPALIER generate -p Once -n 4 --temp 1 \
        --drafter iid:K=1,L=8 --verifier $rule </dev/null | grep -q ."
done
$ESPALIER list drafters --json >"$work/json"
check "list drafters --json names the differences from the papers" grep -q '"differs":	"[a-z].*fixed' "$work/json"
thresholds=$(grep -c 'draft_temp' "$work/json")
check "list drafters has draft_temp for every drafter that uses a draft model" test "$thresholds" -ge 15
check "list drafters shows the default of every parameter" sh -c "$ESPALIER list drafters | grep -q 'retrieval *off|on, default on ' &&
    ! $ESPALIER list drafters | grep '^    ' | grep -v default"
check "list drafters --json has the default of a parameter that takes a word" grep -q '"default":	"keep"' "$work/json"
check "list losses says which paths the loss TALF leaves out" sh -c "$ESPALIER list losses --json | grep -q '\"differs\":.*every 4th token'"
check "the manual page does not list an existing feature as missing" sh -c \
    "sed -n '/ is missing: /,/^\.Sh/p' man/espalier-drafters.7 | grep -q 'Tree verification' &&
    ! sed -n '/ is missing: /,/^\.Sh/p' man/espalier-drafters.7 | grep -iq 'selector\|talf\|StreamingLLM'"
tests/drafters_page "$ESPALIER" >"$work/page"
check "the manual page of the drafters is up to date" cmp "$work/page" man/espalier-drafters.7
finish
