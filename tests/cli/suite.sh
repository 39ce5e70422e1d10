#!/bin/sh
# Tests `espalier bench --suite`: the rows of a grid, tables and plots, interruption and resumption, and error messages.
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
check "a suite runs without error messages" test $? -eq 0 -a ! -s "$work/err"
check "the printed table equals the written table" cmp "$work/table" "$work/dir/s.md"
# The table must have these rows for each of two temperatures: plain decoding, the best chain, a tree for each B, the best tree.
check "every configuration has a row" test "$(wc -l <"$work/dir/s.csv")" = 11
check "a configuration that occurs twice is run only once" test "$(wc -l <"$work/dir/s.runs.jsonl")" = $((1 + 2 * 2 * (1 + 8 + 2 + 2)))
check "plain decoding has one token per iteration" grep -q '^plain decoding,,0,1,,1.00,1.00' "$work/dir/s.csv"
check "the row 'best chain' is one of the chains linear:K=1 to linear:K=8" grep -q '^best chain,linear:K=[1-8],' "$work/dir/s.csv"
check "the row 'best tree' has the parameters of the tree that was best" grep -q '^best tree,"fixed:D=[23],B=[12]",' "$work/dir/s.csv"
check "a configuration runs with each value of a varied parameter" sh -c "awk -F, '/^tree,,0,1,/ { nodes[\$5] = \$9 }
    END { exit !(nodes[1] > 0 && nodes[2] > nodes[1]) }' '$work/dir/s.csv'"
check "the JSON file of a suite has all rows" test "$(grep -c '"tokens_per_iteration"' "$work/dir/s.json")" = 10
check "a pivot has a column for each temperature" grep -q '| temp 0 | temp 0.8 |' "$work/table"
check "the plot is well-formed XML" xmllint --noout "$work/dir/s.svg"
# Plain decoding has the same value for every B, so the plot shows it as one line for each temperature.
# The legend names these lines.
check "a plot shows plain decoding as a reference line" sh -c \
    "grep -q '>plain decoding, temp 0, top_p 1<' '$work/dir/s.svg' && test \$(grep -c 'class=\"reference\"' '$work/dir/s.svg') = 4"
# Plain decoding has one token per iteration with every prompt. With trees, the number differs
# between prompts.
check "if values differ between prompts, a plot has error bars" sh -c \
    "grep -q '>deviation over the prompts<' '$work/dir/s.svg' && grep -q 'class=\"error\"' '$work/dir/s.svg'"
$suite "$work/s.suite" -o "$work/dir" --resume --format tikz >/dev/null
check "plots can be written for LaTeX" grep -q 'begin{tikzpicture}' "$work/dir/s.tikz"
if [ -x "$BUILD/espalier-dot" ]; then
    $suite "$work/s.suite" -o "$work/dir" --resume --format png >/dev/null
    check "plots can be written as PNG" [ "$(head -c 8 "$work/dir/s.png" | od -An -tx1)" = " 89 50 4e 47 0d 0a 1a 0a" ]
fi
check "an unknown format of plots is refused" fails 1 "svg, png, pdf and tikz, not 'txt'" $suite "$work/s.suite" --format txt
check "markup in the title of a plot is escaped" grep -q 'A title &lt;with&gt; &amp; marks' "$work/dir/s.svg"

# Resumes a suite from a journal that has half of the runs and an incomplete last line.
lines=$(wc -l <"$work/dir/s.runs.jsonl")
head -n 20 "$work/dir/s.runs.jsonl" >"$work/some"
head -c 40 "$work/dir/s.runs.jsonl" >>"$work/some"
cp "$work/some" "$work/dir/s.runs.jsonl"
check "without --resume, an existing journal is not overwritten" fails 1 "resume continues" $suite "$work/s.suite" -o "$work/dir"
$suite "$work/s.suite" -o "$work/dir" --resume >"$work/again"
check "--resume completes the journal" test "$(wc -l <"$work/dir/s.runs.jsonl")" = "$lines"
head -n 20 "$work/dir/s.runs.jsonl" >"$work/first"
head -n 20 "$work/some" | cmp -s - "$work/first"
check "--resume keeps the finished runs" test $? -eq 0
check "a journal of runs with other prompts is refused" fails 1 "other models or prompts" $suite "$work/s.suite" -o "$work/dir" --resume --prompts 1
printf 'x\n' >>"$work/dir/s.runs.jsonl"
check "--resume refuses a damaged journal" fails 1 "this is not a run" $suite "$work/s.suite" -o "$work/dir" --resume
printf '{"runs_' >"$work/dir/s.runs.jsonl"
$suite "$work/s.suite" -o "$work/dir" --resume >/dev/null
check "a journal that ends within its first line is started again" fails 1 "other models or prompts" $suite "$work/s.suite" -o "$work/dir" --resume --prompts 1
$suite "$work/s.suite" -o "$work/dir" --force -n 2 --prompts 1 --temp 0.5 >"$work/table"
check "flags override the settings of the suite" sh -c "grep -q '| 0.5 |' '$work/table' && ! grep -q '| 0.8 |' '$work/table'"

write <<'SUITE'
prompts two.jsonl
set     tokens 4
vary    D,temp 2,0 3,0.8
chain   off
choice  fixed:D=$D as tree
columns tokens_per_iteration
SUITE
$suite "$work/s.suite" -o "$work/mixed" >/dev/null
check "one 'vary' line can vary a parameter of a configuration and a setting together" test "$(grep -c '^plain decoding' "$work/mixed/s.csv")" = 2

# This suite has settings for a single configuration, limits the number of prompts, shows a part
# of the table, and names drafts.
mkdir "$work/drafts"
ln -s "$PWD/engine/models/fairytale-draft" "$work/drafts/one"
ln -s "$PWD/engine/models/fairytale-draft" "$work/drafts/other"
write <<'SUITE'
prompts two.jsonl 1
max_nodes 300
set     tokens 40
chain   off
vary    draft one other
vary    B 1 2
choice  fixed:D=2,B=$B as tree
choice  dyspec:N=300 as large
choice  linear:K=2 with window=16,tokens=30 as windowed
columns tokens_made most_nodes
pivot   draft tokens_made choice=windowed
pivot   B tokens_made choice=tree draft=one
SUITE
$suite "$work/s.suite" --draft "$work/drafts" -o "$work/own" >"$work/table" 2>"$work/err"
check "a configuration can have its own settings" test $? -eq 0 -a ! -s "$work/err"
check "settings of one configuration do not affect other configurations" sh -c "grep -q '^windowed,one,,30.0,' '$work/own/s.csv' && grep -q '^tree,one,1,40.0,' '$work/own/s.csv'"
check "a suite can limit the number of prompts" grep -q 'Suite s, 1 prompt[.]' "$work/table"
check "a suite can set the largest size of trees" grep -q '^large,one,,40.0,300$' "$work/own/s.csv"
check "a pivot of selected rows leaves out columns that do not vary in these rows" grep -qx '| draft one | draft other |' "$work/table"
check "a pivot of selected rows says which rows it has" grep -q '^tokens made, choice=tree, draft=one:' "$work/table"
check "the JSON file has the hash of every draft" test "$(grep -c '"hash":' "$work/own/s.json")" = 3
check "a missing folder of drafts is reported" fails 1 "use --draft to name the folder that .one. is in" $suite "$work/s.suite"
# If a suite gives the costs, no times are measured: a pass over n rows costs 1 + (n - 1) row_cost.
write <<'SUITE'
prompts two.jsonl
set     tokens 30
set     ignore_eos on
set     draft_cost 0
vary    row_cost 0 1 50
chain   off
choice  linear:K=3
best    fixed:D={1,3},B=2 as tree
choice  goodput:retrieval=off as goodput
best_by speedup_at_cost
columns speedup_at_cost tokens_per_iteration nodes depth breadth
SUITE
$suite "$work/s.suite" -o "$work/cost" >"$work/table" 2>"$work/err"
check "a suite with given costs runs" test $? -eq 0 -a ! -s "$work/err"
# Plain decoding, the chain and two trees must run once; goodput must run once for each cost.
check "only configurations that depend on the costs are run again at other costs" test "$(wc -l <"$work/cost/s.runs.jsonl")" = $((1 + 2 * (4 + 3)))
sed 's/"[^"]*"/tree/g' "$work/cost/s.csv" >"$work/costs"
check "the speed is the number of tokens divided by the cost of the passes" awk -F, 'NR > 1 && $3 <= 1 { rows++
    off = $4 * (1 + $3 * $6) / $5; if (off < 0.97 || off > 1.03) { print; bad = 1 } } END { exit bad || rows != 8 }' "$work/costs"
check "drafter goodput drafts if rows cost nothing, but not if rows are expensive" awk -F, '
    $1 == "goodput" { nodes[$3] = $6 } END { exit !(nodes[0] > 3 && nodes[50] < 0.5) }' "$work/costs"
check "the best of several configurations depends on the cost" test \
    "$(grep -o 'fixed:D=[13]' "$work/cost/s.csv" | sort -u | wc -l)" = 2

# Output formats must not treat the text of a label or a category as a formula, markup or a control character.
printf '%s\n' '{"prompt": "Once upon a time", "category": "=cmd|'"' /C calc'"'!A0"}' \
    '{"prompt": "There was", "category": "a|b`c*<script>&lt;"}' \
    '{"prompt": "The king", "category": "x\u001b[31m\u202e\n,\"q"}' \
    '{"prompt": "A", "category": "-1+1"}' '{"prompt": "B", "category": "-0.5"}' \
    '{"prompt": "C", "category": "\t=1"}' '{"prompt": "D", "category": "\uff1d1"}' >"$work/hostile.jsonl"
write <<'SUITE'
title   <b>t</b> [link](http://x)
source  *x*
prompts hostile.jsonl
set     tokens 6
chain   off
by      category
choice  linear:K=6 as =1+cmd|x!A0
choice  fixed:D=6,B=2 as @SUM(1)
choice  ar as <img src=x onerror=alert(1)>|z
vary    temp 0 1
columns tokens_per_iteration
plot    category tokens_per_iteration
pivot   temp tokens_per_iteration
SUITE
$suite "$work/s.suite" -o "$work/hostile" >"$work/table"
csv=$work/hostile/s.csv md=$work/hostile/s.md
has() { grep -qF -e "$2" "$1" || { echo "    no $2 in $1"; return 1; }; }
lacks() { ! grep -q -e "$2" "$1"; }
check "no cell of the CSV file is a formula" lacks "$csv" '^[=+@]\|,[=+@]\|,-[^0-9]\|,-1+1'
check "formulas in the CSV file are quoted as text" has "$csv" "'=1+cmd|x!A0,0,'=cmd|' /C calc'!A0,"
check "formulas that begin with @, + or - are quoted as text" has "$csv" "'@SUM(1),1,'-1+1,"
check "formulas that begin with a full-width sign are quoted as text" has "$csv" ",'＝1,"
check "negative numbers are not quoted" has "$csv" ",-0.5,"
check "a CSV row with control characters stays one line" has "$csv" ',"x^[[31m<U+202E>^J,""q",'
check "a tab is escaped" has "$csv" ",^I=1,"
check "Markdown escapes control characters" has "$md" '| x^\[\[31m&lt;U+202E&gt;^J,"q |'
check "Markdown escapes HTML and its own markup" has "$md" '| &lt;img src=x onerror=alert(1)&gt;\|z | 0 | a\|b\`c\*&lt;script&gt;&amp;lt; |'
check "Markdown escapes markup in a suite's title" has "$md" '# &lt;b&gt;t&lt;/b&gt; \[link\](http://x)'
check "Markdown escapes markup in a suite's source" has "$md" '\*x\*'
check "every row of a Markdown table is one line" lacks "$md" '^|.*[^|]$'
check "JSON escapes control characters" has "$work/hostile/s.json" '"x\u001b[31m\u202e\n,\"q"'
check "a plot escapes control characters" has "$work/hostile/s.svg" '>x^[[31m&lt;U+202E&gt;^J,&quot;q<'
check "no file has escape codes or direction overrides" sh -c "! cat '$work/hostile'/* | grep -q -e '$(printf '\033')' -e '$(printf '\342\200\256')'"
check "the printed table of hostile texts equals the written table" cmp "$work/table" "$md"

# With --counts, a second run of a suite must give the same counts, because a run with --counts
# neither reads nor stores what sessions learn.
write <<'SUITE'
prompts two.jsonl
set     tokens 40
set     temp 0.6
chain   off
choice  dynatree:tau=0.01
choice  sequoia:N=8 as sequoia
choice  goodput
columns speed tokens_per_iteration nodes ttft_ms
SUITE
state=$work/empty
mkdir "$state"
counts() { XDG_STATE_HOME=$state $suite "$work/s.suite" --counts "$@"; }
counts --json >"$work/one.json"
check "a run with --counts stores nothing that it learns" test -z "$(find "$state" -type f)"
XDG_STATE_HOME=$state $ESPALIER bench --threads 1 -p "Once upon a time" -n 200 --temp 0.6 dynatree:tau=0.01 sequoia:N=8 >/dev/null
check "an ordinary run stores what it has learned" test -n "$(find "$state" -type f)"
counts --json >"$work/two.json"
check "learned values do not affect a run with --counts" cmp "$work/one.json" "$work/two.json"
check "a table of counts has no times" sh -c "! grep -q 'speed\|_ms' '$work/one.json' && grep -q tokens_per_iteration '$work/one.json'"
check "the table has the version, the models' hashes and all settings" sh -c "grep -q '\"version\":.*[0-9]' '$work/one.json' &&
    grep -q '\"commit\"' '$work/one.json' && test \$(grep -c '\"hash\":.*\"[0-9a-f]\{16\}\"' '$work/one.json') = 2 &&
    grep -q '\"draft_temp\"' '$work/one.json' && grep -q '\"seed\"' '$work/one.json'"
mkdir "$work/results"
cp "$work/one.json" "$work/results/s.json"
counts --check >"$work/said"
check "--check succeeds if the counts are reproduced" test $? -eq 0
check "--check says how many counts were compared" grep -qx '8 counts compared, 0 differ by more than 10 % and by more than 0.05' "$work/said"
sed '/"choice":.*sequoia/,/}/s/"nodes":.*/"nodes": 9.5/' "$work/one.json" >"$work/results/s.json"
counts --check >"$work/said"
check "--check fails if a count differs" test $? -eq 1
check "--check prints the row and the count that differ" grep -q '^sequoia: nodes [0-8][.0-9]*, committed 9.5$' "$work/said"
check "--check can be limited to a row" sh -c "$suite '$work/s.suite' --check goodput >'$work/said' && grep -q '^2 counts compared' '$work/said'"
check "--check refuses an unknown row" fails 1 "no row 'nope'" counts --check nope
check "--check refuses settings that differ from those of the table" fails 1 "with a different value of tokens" counts --check -n 5
sed 's/"hash":.*/"hash": "0"/' "$work/one.json" >"$work/results/s.json"
check "--check refuses a model that differs from that of the table" fails 1 "with a different value of target" counts --check
printf '{}' >"$work/results/s.json"
check "--check refuses a file that is not a table" fails 1 "is not a suite.s table" counts --check
rm "$work/results/s.json"
check "--check refuses a missing table" fails 1 "results/s.json cannot be opened" counts --check

# After Ctrl-C, the results of the finished runs must be kept.
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
check "an interrupted suite exits with 130" grep -qx 130 "$work/code"
check "an interrupted suite says how to continue" grep -q "interrupted after .* --resume continues" "$work/err"
check "an interrupted suite writes a table of the finished runs" grep -q "it was interrupted" "$work/cut/s.md"

for measure in ranks shares steps rules guesses memory; do
    write <<SUITE
prompts two.jsonl
measure $measure
set     tokens 8
set     temp 1
choice  iid:K=3,L=3+nss as tree
SUITE
    $suite "$work/s.suite" -o "$work/$measure" >/dev/null 2>"$work/err"
    check "measure $measure runs" test $? -eq 0 -a ! -s "$work/err"
    cp "$work/$measure/s.csv" "$work/before"
    $suite "$work/s.suite" -o "$work/$measure" --resume >/dev/null
    check "a resumed run of measure $measure gives the same table" cmp "$work/before" "$work/$measure/s.csv"
done
check "with measure ranks, the percentages of nodes add up to 100" sh -c "awk -F, 'NR > 1 { n += \$3 } END { exit !(n > 99 && n < 101) }' '$work/ranks/s.csv'"
check "with measure shares, mean draft probabilities lie within their bins" sh -c "awk -F, 'NR > 1 && \$3 > 0 { n++; bad = bad || \$4 < \$2 - 1e-3 || \$4 > \$2 + 0.101 }
    END { exit bad || n < 2 }' '$work/shares/s.csv'"
check "with measure steps, no iteration accepts more nodes than its tree has" sh -c "awk -F, 'NR > 1 { n++; bad = bad || \$4 > \$3 } END { exit bad || n < 2 }' '$work/steps/s.csv'"
# The columns are the L1 distance, the rates of verifiers nss, naivetree, spectr, specinfer and khisti, and the ceiling.
check "with measure rules, no verifier's acceptance rate exceeds the upper bound in column ceiling" sh -c "awk -F, 'NR > 1 { for (i = 5; i < NF; i++) if (\$i > \$NF + 1e-3) bad = 1 }
    END { exit bad || NR < 3 }' '$work/rules/s.csv'"
check "with measure rules, the L1 distance is between 0 and 2" sh -c "awk -F, 'NR > 1 { bad = bad || \$4 < 0 || \$4 > 2 } END { exit bad }' '$work/rules/s.csv'"
check "with measure guesses, rates are between 0 and 1" sh -c "awk -F, 'NR > 1 { bad = bad || \$4 < 0 || \$4 > 1 || \$5 < 0 || \$5 > 1 }
    { wrong += 1 - \$4 } END { exit bad || NR < 2 || wrong == 0 }' '$work/guesses/s.csv'"
check "with measure memory, no value is negative" sh -c "awk -F, 'NR > 1 { exit !(\$NF >= 0) }' '$work/memory/s.csv'"

check "bench --suite list lists the suites" sh -c "$ESPALIER bench --suite list | grep -q '^dynatree-main .*dynatree, tables 1'"
check "an unknown suite is refused" fails 1 "there is no suite 'nope'" $suite nope
wrong() { # WHAT LINE SENTENCE: a suite with LINE must be refused with SENTENCE
    printf 'prompts two.jsonl\nchoice ar\n%s\n' "$2" >"$work/s.suite"
    check "$1 is refused" fails 1 "$3" $suite "$work/s.suite"
}
wrong "an unknown kind of line" "nonsense 3" "line 3: a suite has no line 'nonsense'"
wrong "an unknown column" "columns speed fast" "line 3: there is no such column"
wrong "an unknown measure" "measure luck" "measure takes one of runs memory"
wrong "a list of values that does not fit its keys" "vary temp,top_p 1" "a value for every key"
wrong "an invalid setting" "set luck 3" "no setting 'luck'"
wrong "an unknown setting of a configuration" "choice ar with luck=3 as x" "no setting 'luck'"
wrong "a setting of a configuration without a value" "choice ar with temp as x" "'with' takes one or more KEY=VALUE"
wrong "an invalid condition" "pivot temp nodes hot" "only KEY=VALUE"
wrong "an invalid number of prompts" "prompts two.jsonl many" "optionally, a number of prompts"
wrong "a tree that is too large" "max_nodes 5000" "max_nodes takes a number up to 2048"
wrong "an invalid value" "set temp hot" "temp takes a number"
wrong "an invalid cost" "set row_cost -1" "row_cost takes a fraction of a pass"
wrong "only one of the two costs" "set row_cost 0.1" "row_cost and draft_cost must be given together"
wrong "a grid in a line that is not 'best'" "choice fixed:D={2,3}" "use a 'best' line"
wrong "a variable that no line varies" 'choice fixed:D=$D' "does not name a key of a vary line"
wrong "an unknown drafter" "choice nonsense" "nonsense"
wrong "a brace that is not closed" "best fixed:D={2 as x" "has no }"
wrong "a configuration that is too long" "vary a $(printf '%090d' 1)
choice \$a\$a\$a" "a choice is too long"
values=$(seq 0 31 | tr '\n' ' ')
wrong "a suite with too many combinations" "$(printf "vary %s $values\n" a b c d e)" "more than 4096 combinations"
wrong "a grid that is too large" "best fixed:D={1..64},B={1..64},N={1..64} as x" "more than 4096"
printf 'prompts none.jsonl\nchoice ar\n' >"$work/s.suite"
check "a missing file of prompts is refused" fails 1 "none.jsonl" $suite "$work/s.suite"
printf 'choice ar\nchain off\n' >"$work/s.suite"
check "a prompt on the command line overrides the file of prompts" sh -c \
    "$suite '$work/s.suite' -p 'Once upon a time' -n 4 | grep -q 'Suite s, 1 prompt\.'"
printf 'prompts two.jsonl\n' >"$work/s.suite"
check "a suite without a configuration is refused" fails 1 "a line .choice SPEC. is missing" $suite "$work/s.suite"
finish
