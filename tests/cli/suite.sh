#!/bin/sh
# `espalier bench --suite`: rows of a grid, tables and plots, interrupted and resumed, sentences for what is wrong.
. tests/shell.sh
printf '{"prompt": "Once upon a time", "category": "tales"}\n{"prompt": "A list:\\n1.", "category": "lists"}\n' \
    >"$work/two.jsonl"
suite="$ESPALIER bench --threads 1 --warmup 0 --suite"
write() { cat >"$work/s.suite"; }

write <<'SUITE'
title   A title <with> & marks
prompts two.jsonl
set     tokens 6
vary    temp,top_p 0,1 0.8,0.9
vary    B 1 2
choice  fixed:D=2,B=$B as tree
best    fixed:D={2,3},B={1,2} as best tree
columns tokens_per_iteration speedup chain nodes tree_ms
pivot   temp nodes
plot    B nodes
SUITE
$suite "$work/s.suite" -o "$work/dir" >"$work/table" 2>"$work/err"
check "a suite runs and says nothing else" test $? -eq 0 -a ! -s "$work/err"
check "what is printed is what is written" cmp "$work/table" "$work/dir/s.md"
# At each of two temperatures: plain decoding, the best chain, the tree with each B, the best tree.
check "there is a row for each" test "$(wc -l <"$work/dir/s.csv")" = 11
check "cases that are the same run once" test "$(wc -l <"$work/dir/s.runs.jsonl")" = $((1 + 2 * 2 * (1 + 8 + 2 + 2)))
check "plain decoding has a token per iteration" grep -q '^plain decoding,,0,1,,1.00,1.00' "$work/dir/s.csv"
check "the best chain is a chain" grep -q '^best chain,linear:K=[1-8],' "$work/dir/s.csv"
check "the best of a grid is named" grep -q '^best tree,"fixed:D=[23],B=[12]",' "$work/dir/s.csv"
check "a choice follows what varies" sh -c "awk -F, '/^tree,,0,1,/ { nodes[\$5] = \$9 }
    END { exit !(nodes[1] > 0 && nodes[2] > nodes[1]) }' '$work/dir/s.csv'"
check "JSON has all rows" test "$(grep -c '"tokens_per_iteration"' "$work/dir/s.json")" = 10
check "a pivot has temperatures side by side" grep -q '| temp 0 | temp 0.8 |' "$work/table"
check "the plot is a picture" sh -c "grep -q '^<svg ' '$work/dir/s.svg' && grep -q '</svg>' '$work/dir/s.svg'"
check "with its title as text" grep -q 'A title &lt;with&gt; &amp; marks' "$work/dir/s.svg"

# Resumed: half of the runs are there, and the last line is cut.
lines=$(wc -l <"$work/dir/s.runs.jsonl")
head -n 20 "$work/dir/s.runs.jsonl" >"$work/some"
head -c 40 "$work/dir/s.runs.jsonl" >>"$work/some"
cp "$work/some" "$work/dir/s.runs.jsonl"
check "runs that are there are not overwritten" fails 1 "resume goes on" $suite "$work/s.suite" -o "$work/dir"
$suite "$work/s.suite" -o "$work/dir" --resume >"$work/again"
check "it goes on" test "$(wc -l <"$work/dir/s.runs.jsonl")" = "$lines"
head -n 20 "$work/dir/s.runs.jsonl" >"$work/first"
head -n 20 "$work/some" | cmp -s - "$work/first"
check "and keeps what is done" test $? -eq 0
check "runs of other prompts are told" fails 1 "other models or prompts" $suite "$work/s.suite" -o "$work/dir" --resume --prompts 1
printf 'x\n' >>"$work/dir/s.runs.jsonl"
check "a damaged journal" fails 1 "this is no run" $suite "$work/s.suite" -o "$work/dir" --resume
printf '{"runs_' >"$work/dir/s.runs.jsonl"
$suite "$work/s.suite" -o "$work/dir" --resume >/dev/null
check "a journal that ends in its first line begins anew" fails 1 "other models or prompts" $suite "$work/s.suite" -o "$work/dir" --resume --prompts 1
$suite "$work/s.suite" -o "$work/dir" --force -n 2 --prompts 1 --temp 0.5 >"$work/table"
check "flags win over the file" sh -c "grep -q '| 0.5 |' '$work/table' && ! grep -q '| 0.8 |' '$work/table'"

write <<'SUITE'
prompts two.jsonl
set     tokens 4
vary    D,temp 2,0 3,0.8
chain   off
choice  fixed:D=$D as tree
columns tokens_per_iteration
SUITE
$suite "$work/s.suite" -o "$work/mixed" >/dev/null
check "a name and a setting may vary together" test "$(grep -c '^plain decoding' "$work/mixed/s.csv")" = 2

# Ctrl-C keeps what is done.
write <<'SUITE'
prompts two.jsonl
set     tokens 400
set     ignore_eos on
choice  fixed:D=4
SUITE
sh -c "$suite '$work/s.suite' -o '$work/cut' >'$work/table' 2>'$work/err'; echo \$? >'$work/code'" &
wait_for() { for i in $(seq 600); do "$@" 2>/dev/null && return; sleep 0.1; done; return 1; }
some() { [ "$(wc -l <"$work/cut/s.runs.jsonl")" -ge 2 ]; }
wait_for some
pkill -INT -P $! -f "$work/s.suite" || kill -INT $!
wait
check "it ends as interrupted" grep -qx 130 "$work/code"
check "and says how to go on" grep -q "interrupted after .* --resume goes on" "$work/err"
check "with a table of what is done" grep -q "it was interrupted" "$work/cut/s.md"

for measure in ranks rules guesses memory; do
    write <<SUITE
prompts two.jsonl
measure $measure
set     tokens 8
set     temp 1
choice  iid:K=3,L=3+nss as tree
SUITE
    $suite "$work/s.suite" -o "$work/$measure" >/dev/null 2>"$work/err"
    check "measure $measure" test $? -eq 0 -a ! -s "$work/err"
    cp "$work/$measure/s.csv" "$work/before"
    $suite "$work/s.suite" -o "$work/$measure" --resume >/dev/null
    check "runs that are read back give the same table" cmp "$work/before" "$work/$measure/s.csv"
done
check "nodes by rank are all nodes" sh -c "awk -F, 'NR > 1 { n += \$3 } END { exit !(n > 99 && n < 101) }' '$work/ranks/s.csv'"
# distance, then nss, naivetree, spectr, specinfer, khisti, ceiling.
check "no rule is above the ceiling" sh -c "awk -F, 'NR > 1 { for (i = 5; i < NF; i++) if (\$i > \$NF + 1e-3) bad = 1 }
    END { exit bad || NR < 3 }' '$work/rules/s.csv'"
check "a distance is one" sh -c "awk -F, 'NR > 1 { bad = bad || \$4 < 0 || \$4 > 2 } END { exit bad }' '$work/rules/s.csv'"
check "guesses are right at times" sh -c "awk -F, 'NR > 1 { bad = bad || \$4 < 0 || \$4 > 1 || \$5 < 0 || \$5 > 1 }
    { wrong += 1 - \$4 } END { exit bad || NR < 2 || wrong == 0 }' '$work/guesses/s.csv'"
check "memory is more than nothing" sh -c "awk -F, 'NR > 1 { exit !(\$NF >= 0) }' '$work/memory/s.csv'"

check "the list" sh -c "$ESPALIER bench --suite list | grep -q '^dynatree-main .*dynatree, tables 1'"
check "a suite that is not there" fails 1 "there is no suite 'nope'" $suite nope
wrong() { # WHAT LINE SENTENCE
    printf 'prompts two.jsonl\nchoice ar\n%s\n' "$2" >"$work/s.suite"
    check "$1" fails 1 "$3" $suite "$work/s.suite"
}
wrong "a line that is none" "nonsense 3" "line 3: a suite has no line 'nonsense'"
wrong "a column that is none" "columns speed fast" "line 3: there is no such column"
wrong "a measure that is none" "measure luck" "measure takes one of runs memory"
wrong "values that do not fit their keys" "vary temp,top_p 1" "a value for every key"
wrong "a setting that is none" "set luck 3" "no setting 'luck'"
wrong "a value that is none" "set temp hot" "temp takes a number"
wrong "a grid that is no best" "choice fixed:D={2,3}" "write best"
wrong "a name that nothing varies" 'choice fixed:D=$D' "nothing that varies"
wrong "a drafter that is none" "choice nonsense" "nonsense"
wrong "a brace that is open" "best fixed:D={2 as x" "has no }"
wrong "a choice that is too long" "vary a $(printf '%090d' 1)
choice \$a\$a\$a" "a choice is too long"
values=$(seq 0 31 | tr '\n' ' ')
wrong "too many combinations of what varies" "$(printf "vary %s $values\n" a b c d e)" "more than 4096 combinations"
wrong "too large a grid" "best fixed:D={1..64},B={1..64},N={1..64} as x" "more than 4096"
printf 'prompts none.jsonl\nchoice ar\n' >"$work/s.suite"
check "prompts that are not there" fails 1 "none.jsonl" $suite "$work/s.suite"
printf 'choice ar\nchain off\n' >"$work/s.suite"
check "a prompt of the command line goes before a file" sh -c \
    "$suite '$work/s.suite' -p 'Once upon a time' -n 4 | grep -q 'Suite s, 1 prompt\.'"
printf 'prompts two.jsonl\n' >"$work/s.suite"
check "no choice at all" fails 1 "no line: choice" $suite "$work/s.suite"
finish
