#!/bin/sh
# Tests engine/MEASURED.md. Its tables must equal the committed tables, and a new measurement of two
# rows must give the same counts. Each claim about the papers must have a command that reproduces it.
. tests/shell.sh
page=engine/MEASURED.md results=sessions/suites/results
suites=$(sed -n 's/^<!-- suite \(.*\) -->$/\1/p' "$page")
check "engine/MEASURED.md has tables between begin marks and end marks" test "$(echo "$suites" | wc -l)" -ge 1
check "every begin mark has an end mark" test "$(echo "$suites" | wc -l)" = "$(grep -cx '<!-- end -->' "$page")"
check "every committed table is on the page" test "$(ls $results | sed 's/[.]json$//' | sort)" = "$(echo "$suites" | sort)"
for suite in $suites; do
    sed -n "/^<!-- suite $suite -->\$/,/^<!-- end -->\$/p" "$page" | tr '|' '\n' | tr -d ' ' >"$work/shown"
    # Every number in the committed file must be on the page, to two decimal places.
    sed -n 's/.*"tokens_per_iteration":[^0-9]*\([0-9.]*\).*/\1/p' "$results/$suite.json" | while read -r number; do
        grep -qx "$(printf %.2f "$number")" "$work/shown" || echo "$number"
    done >"$work/missing"
    check "the page has all committed numbers of suite $suite" test -s "$work/shown" -a ! -s "$work/missing"
    # Conversely, every number on the page must be in the committed file.
    sed -n 's/.*":[^0-9-]*\(-\{0,1\}[0-9][0-9.e-]*\)"\{0,1\},\{0,1\}$/\1/p' "$results/$suite.json" |
        awk 'NR == FNR { for (digits = 0; digits < 4; digits++) have[sprintf("%." digits "f", $1)]; have[$1]; next }
            /^-?[0-9.]+$/ && !($1 in have)' - "$work/shown" >"$work/invented"
    check "the page has no other numbers for suite $suite" test ! -s "$work/invented"
    check "the results of suite $suite have the hashes of its models" grep -q '"hash":	"[0-9a-f]' "$results/$suite.json"
done
# Every line of the table of claims must name a command that exists.
sed -n '/^## Which claims of the papers are confirmed here/,/^No table on this page was measured/p' "$page" | grep '^|' | sed 1,2d >"$work/claims"
check "the page has a table of claims" test "$(wc -l <"$work/claims")" -ge 20
while read -r line; do
    claim=$(echo "$line" | cut -d'|' -f2)
    echo "$line" | tr '`' '\n' | grep '^espalier [a-z]\|^make [a-z]' >"$work/commands"
    check "the page has a command for the claim:$claim" test -s "$work/commands"
    while read -r program command option suite_name rest; do
        case "$program $command $option" in
        "espalier bench --suite") check "$suite_name is a suite" test -f "sessions/suites/$suite_name.suite" ;;
        espalier*) check "espalier $command is a command" sh -c "$ESPALIER $command --help </dev/null >/dev/null" ;;
        *) check "make $command is a target" grep -q "^$command:" Makefile ;;
        esac
    done <"$work/commands"
done <"$work/claims"

$ESPALIER bench --suite dynatree-ablation --threads 1 --check "with dynamic breadth and depth" "with history, by price" >"$work/said"
check "bench reproduces the counts of two rows of the tables" test $? -eq 0
grep -v ' 0 differ' "$work/said"
check "the counts with and without the learned temperature were compared" grep -q '^16 counts compared' "$work/said"
finish
