#!/bin/sh
# Tests `espalier bench`. Every configuration must run on every prompt. The printed numbers must be consistent, and
# error messages must be clear.
. tests/shell.sh
printf 'Once upon a time\n\nThere was a king\nA fox said' >"$work/prompts"
bench="$ESPALIER bench -n 24 --threads 1 -f $work/prompts"

# number KEY N: prints the N-th value of a key in the JSON output.
number() {
    grep -o "\"$1\":[^,}]*" "$work/json" | sed -n "$2s/.*:[^0-9n-]*//p"
}

$bench ar linear:K=3 dynatree --json >"$work/json" 2>"$work/err"
check "bench succeeds and prints nothing on stderr" test $? -eq 0 -a ! -s "$work/err"
check "empty lines of the file are not counted as prompts" test "$(number prompts 1)" = 3
check "--prompts 2 uses the first two prompts" sh -c "$bench ar --prompts 2 --json | grep -q '\"prompts\":[^0-9]*2,'"
check "JSON has the three configurations" test "$(grep -c '"drafter"' "$work/json")" = 3
check "the first configuration is the baseline, with a speedup of 1" test "$(number speedup 1)" = 1
check "the lowest speedup of the first configuration is 1" test "$(number least_speedup 1)" = 1
check "the lowest speedup of the second configuration is not above its mean speedup" sh -c "echo '$(number speedup 2) $(number least_speedup 2)' |
    awk '{ exit !(\$2 > 0 && \$2 <= 1.001 * \$1) }'"
check "plain decoding has one token per iteration" test "$(number block_efficiency 1)" = 1
check "the configurations with drafts have more than one token per iteration" sh -c "echo '$(number block_efficiency 2) $(number block_efficiency 3)' |
    awk '{ exit !(\$1 > 1 && \$2 > 1) }'"
for key in tokens_per_second first_token_ms token_ms iterations acceptance path_lengths; do
    check "JSON has $key for each configuration" test "$(grep -c "\"$key\"" "$work/json")" = 3
done
check "plain decoding has as many iterations as tokens" grep -q '"mean":	24,' "$work/json"
$ESPALIER generate -p "Once upon a time" -n 24 --drafter linear:K=3 --json >"$work/one"
printf 'Once upon a time' >"$work/prompts"
$bench linear:K=3 --warmup 3 --json >"$work/json"
check "warm-up runs are not included in the results" test "$(number block_efficiency 1)" = \
    "$(sed -n 's/.*"block_efficiency":[^0-9]*\([0-9.]*\).*/\1/p' "$work/one")"

printf 'Once upon a time there was a king who had three sons' >"$work/prompts"
$bench linear:K=3 --prompt-tokens 4 --json >"$work/json"
check "--prompt-tokens truncates a prompt" test "$(number block_efficiency 1)" = \
    "$(sed -n 's/.*"block_efficiency":[^0-9]*\([0-9.]*\).*/\1/p' "$work/one")"

printf 'Once upon a time\nThere was a king\n' >"$work/prompts"
$bench ar fixed:D=2,B=2 >"$work/table"
check "the table has a line for each configuration" test "$(grep -c '+-.*+-' "$work/table")" = 2
check "above temperature 0, a configuration can name a verifier" sh -c "$bench --temp 0.8 iid+nss iid+traversal linear+bv |
    grep -q '^iid+traversal  '"
check "without arguments, bench measures all drafters" test \
    "$($bench -n 4 --warmup 0 | grep -c '+-.*+-')" = "$(grep -c '^X(' engine/drafters/drafters.def)"
check "bench takes the argument - as a drafter, not as standard input" sh -c "printf Once | $ESPALIER bench -n 4 ar - 2>&1 | grep -q 'no drafter'"
check "a prompt is read from a pipe" sh -c "printf Once | $ESPALIER bench -n 4 ar | grep -q '^ar '"
check "an unknown drafter is refused" fails 1 "nonsense" $bench nonsense
check "a verifier that would change the output distribution is refused" fails 1 "the output distribution would change" $bench --temp 1 dynatree+bv
check "more than 64 configurations are refused" fails 2 "at most 64 arguments" $bench $(seq -f 'linear:K=%g' 1 65)
check "a parameter out of range is refused" fails 1 "K takes" $bench linear:K=0
check "a file that does not exist is refused" fails 1 "none" $ESPALIER bench -f "$work/none" ar
printf '{"prompt": "Once upon a time\\nthere was", "category": "tales"}\n\n{"prompt": "A fox"}\n' >"$work/prompts"
$bench linear:K=3 --json >"$work/json"
check "each line of a JSON Lines file is a prompt, which can contain newlines" test "$(number prompts 1)" = 2
printf '{"prompt": 3}\n' >"$work/prompts"
check "a prompt that is not a string is refused" fails 1 "line 1" $bench ar
printf '{"prompt": "A fox"}\nA king\n' >"$work/prompts"
check "a line that is not JSON is refused" fails 1 "line 2.*not a JSON object" $bench ar
printf '\n\n' >"$work/prompts"
check "a file with only empty lines is refused" fails 1 "no prompt" $bench ar
finish
