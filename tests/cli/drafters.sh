#!/bin/sh
# The manual page of the drafters: the program accepts the papers' settings in the form in which the page gives them.
. tests/shell.sh
sed -n '/^\.Sh SETTINGS/,$p' man/espalier-drafters.7 |
    sed -n 's/^\.Ql \([a-z0-9:,.=A-Z-]*\).*/\1/p' | grep -v -e '^-' -e '^root=' -e '^espalier' | sort -u >"$work/settings"
check "there are settings to try" test "$(wc -l <"$work/settings")" -gt 20
while read -r setting; do
    check "$setting" sh -c "$ESPALIER generate -p Once -n 4 --max-nodes 768 --drafter '$setting' </dev/null |
        grep -q ."
done <"$work/settings"
for drafter in fixed dynatree; do
    check "$drafter, as printed" sh -c "$ESPALIER generate -p Once -n 4 --drafter \
        $drafter:root=draft,cache=rebuild </dev/null | grep -q ."
done
for rule in nss naivetree spectr specinfer khisti traversal; do
    check "$rule goes with the trees of tables 2 to 7" sh -c "$ESPALIER generate -p Once -n 4 --temp 1 \
        --drafter iid:K=4,L=8 --verifier $rule </dev/null | grep -q ."
done
for rule in naive bv; do
    check "$rule with its single path" sh -c "$ESPALIER generate -p Once -n 4 --temp 1 \
        --drafter iid:K=1,L=8 --verifier $rule </dev/null | grep -q ."
done
$ESPALIER list drafters --json >"$work/json"
check "what differs from a paper is in the list too" grep -q '"differs":	"[a-z].*fixed' "$work/json"
thresholds=$(grep -c 'draft_temp' "$work/json")
check "and that the draft is tempered, for each that asks the draft model" test "$thresholds" -ge 15
check "a choice shows its default" sh -c "$ESPALIER list drafters | grep -q 'retrieval *off|on, default on ' &&
    ! $ESPALIER list drafters | grep '^    ' | grep -v default"
check "also as JSON" grep -q '"default":	"keep"' "$work/json"
check "TALF's paths that are left out are told" sh -c "$ESPALIER list losses --json | grep -q '\"differs\":.*every 4th token'"
check "what is here is not called missing" sh -c \
    "sed -n '/^Not here/,/^\.Sh/p' man/espalier-drafters.7 | grep -q 'tree verification' &&
    ! sed -n '/^Not here/,/^\.Sh/p' man/espalier-drafters.7 | grep -iq 'selector\|talf\|StreamingLLM'"
tests/drafters_page "$ESPALIER" >"$work/page"
check "the page is what the program prints" cmp "$work/page" man/espalier-drafters.7
finish
