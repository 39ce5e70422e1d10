#!/bin/sh
# What the manual page says of the drafters: the settings of the papers are taken as they are spelled there.
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
finish
