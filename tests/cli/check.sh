#!/bin/sh
# Tests `espalier check`, and sampling with `espalier generate`.
. tests/shell.sh
ok="$ESPALIER check --trials 25"

$ok --drafter iid:K=2,L=3 --verifier traversal >"$work/out" 2>"$work/err"
check "an exact pair of drafter and verifier passes" test $? -eq 0
check "plain decoding is in the table" grep -q '^ar ' "$work/out"
check "the tested drafter and verifier are in the table" grep -q '^iid:K=2,L=3 *traversal .* ok$' "$work/out"
check "without a terminal, no progress bar is printed" test ! -s "$work/err"

$ok --trials 150 --drafter fixed:tau=0 --verifier naivetree:lossy=allow >"$work/out"
check "a pair that changes the distribution fails" test $? -eq 1
check "a pair that changes the distribution is called lossy" grep -q 'DIFFERS LOSSY$' "$work/out"

check "if a verifier does not fit the drafter, the error names verifiers that do" \
    fails 1 'Use nss' $ok --drafter dynatree:draws=topk --verifier traversal
check "a number of trials below 1 is refused" fails 1 trials $ESPALIER check --trials 0

$ok --drafter dyspec --json >"$work/json"
check "check --json succeeds" test $? -eq 0
for key in temperature top_p trials false_alarms least_p pairs drafter verifier tokens \
    tokens_per_iteration tests ratio rank serial first plain chi_square freedom p \
    total_variation total_variation_below lossy passed; do
    check "JSON has $key" grep -q "\"$key\":" "$work/json"
done
check "every allowed verifier is checked" test "$(grep -c '"verifier"' "$work/json")" -eq 4

$ok --temp 0 --drafter dynatree >"$work/out"
check "espalier check succeeds at temperature 0" test $? -eq 0
check "the table says that the pair passes at temperature 0" grep -q '^dynatree *greedy .* 0  ok$' "$work/out"

gen="$ESPALIER generate -p Once -n 40 --drafter iid"
$gen --temp 0.8 --seed 3 >"$work/one"
$gen --temp 0.8 --seed 3 >"$work/two"
$gen --temp 0.8 --seed 4 >"$work/three"
check "the same seed gives the same text" cmp -s "$work/one" "$work/two"
check "a different seed gives a different text" sh -c "! cmp -s $work/one $work/three"
$gen --temp 0.8 --seed 3 --json >"$work/json"
check "generate --json says that a pair is lossless" grep -q '"lossy":	false' "$work/json"
$gen --temp 0.8 --verifier greedy:lossy=allow --json >"$work/json"
check "generate --json says that a pair is lossy" grep -q '"lossy":	true' "$work/json"
$gen --temp 0.8 --verifier swor:lossy=allow --stats >"$work/out" 2>"$work/err"
check "the statistics name the lossy verifier and say LOSSY" grep -q 'verifier .*swor.*LOSSY' "$work/err"
finish
