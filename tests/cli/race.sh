#!/bin/sh
# Tests `espalier race`: both sides write a text, the two texts are compared, and the result is shown.
. tests/shell.sh
. tests/script.sh
samples=sessions/samples
race="$ESPALIER race --pass 0 -n 24 --seed 0"

# Without a terminal, the race must print only its results.
$race --with linear:K=4 >"$work/out" 2>"$work/err"
check "race succeeds without a terminal" test $? -eq 0
check "by default, the left side of a race is plain decoding" grep -q '^left   ar  *24  *24 ' "$work/out"
check "the drafter named by --with is the right side of a race" grep -q '^right  linear  *24 ' "$work/out"
check "the result says that the texts are identical, and how much faster the right side was" grep -q '^identical, [0-9.]* times as fast' "$work/out"
check "race prints nothing on stderr" test ! -s "$work/err"
$race --drafter dynatree:N=8 --with dyspec -p "Once more" >"$work/out"
check "--drafter chooses the left side of a race" grep -q '^left   dynatree' "$work/out"
$race --with iid --temp 1 >"$work/out"
check "the result does not call sampled texts identical" sh -c \
    "! grep -q '^identical' '$work/out' && grep -q 'the texts differ' '$work/out'"
$ESPALIER race --pass 12 --with linear:K=2 -n 4 >"$work/out"
check "with --pass, race enlarges the built-in target" grep -q '^fairytale-target x.*, .* ms per pass <- fairytale-draft;' "$work/out"

# Without a prompt, the race chooses one. The text must end with a complete sentence and must not repeat itself.
for seed in 0 1 2; do
    $ESPALIER race --pass 0 --seed $seed --with linear:K=4 --json >"$work/json"
    prompt=$(sed -n '/"left"/,$s/^		"prompt":	"\(.*\)",$/\1/p' "$work/json" | head -n 1)
    printf '%s\t%s\n' "$(sed -n 's/^		"generated_tokens":	\(.*\),/\1/p' "$work/json" | head -n 1)" "$prompt" >"$work/want"
    echo "$prompt" | tests/race_prompts $ESPALIER - >"$work/found"
    check "seed $seed races on a text that does not repeat itself and ends with a complete sentence" cmp "$work/want" "$work/found"
    check "seed $seed races on a text of at least a hundred tokens" test "$(cut -f 1 "$work/found")" -ge 100
    cat "$work/found" >>"$work/tales"
done
check "races with three seeds use three different texts" test "$(sort -u "$work/tales" | wc -l)" -eq 3
check "tests/race_prompts recognises a text that repeats itself" test -z "$(echo 'There was once upon a time a fisherman who lived with his wife in a little hut close by the sea.' |
    tests/race_prompts $ESPALIER -)"
$ESPALIER race --pass 0 --with linear:K=4 --json >"$work/json"
seed=$(sed -n 's/^	"seed":	\(.*\),$/\1/p' "$work/json")
drawn=$(grep '"prompt":' "$work/json")
$ESPALIER race --pass 0 --with linear:K=4 --json --seed "$seed" >"$work/json"
check "without --seed, a random seed is used, and --seed repeats the race" test "$(grep '"prompt":' "$work/json")" = "$drawn"
check "the result of a race names the seed" sh -c "$ESPALIER race --pass 0 --seed 7 --with linear:K=4 | grep -q '; seed 7$'"

# --json must print one JSON object.
$race --with linear:K=4 --json >"$work/json" 2>"$work/err"
check "race --json succeeds" test $? -eq 0
check "race --json prints nothing on standard error" test ! -s "$work/err"
# lines PATTERN COUNT: succeeds if exactly COUNT lines match.
lines() { test "$(grep -c -e "$1" "$work/json")" -eq "$2"; }
check "race --json says that the texts are identical" lines '^	"identical":	true,$' 1
check "race --json has the speedup" lines '^	"times_as_fast":	[0-9.e+-]*,$' 1
check "race --json has the drafters and iterations of both sides" sh -c "tr -d '\t\n' <'$work/json' | grep -q \
    '\"left\":{.*\"drafter\":\"ar\",.*\"iterations\":24,.*\"right\":{.*\"drafter\":\"linear:K=4\",'"
for key in text tokens seconds tokens_per_second tokens_per_iteration verifier target; do
    check "both sides have $key in JSON" lines "^		\"$key\":	" 2
done
check "both sides have 24 tokens in JSON" lines '"tokens":	\[[0-9]*\(, [0-9]*\)\{23\}\],$' 2
check "both sides have the same number of tokens" test "$(grep '"tokens":' "$work/json" | sort -u | wc -l)" -eq 1
check "in JSON, tokens, iterations and speeds of each side are consistent" awk '
    /"generated_tokens"/ { n = $2 + 0 }
    /"iterations"/ { iterations = $2 + 0 }
    /"tokens_per_iteration"/ { if (($2 * iterations - n) ^ 2 > 1e-6) exit 1 }
    /"seconds"/ { seconds = $2 + 0 }
    /"tokens_per_second"/ { if (n != 24 || ($2 * seconds - n) ^ 2 > 1e-6) exit 1; sides++ }
    END { if (sides != 2) exit 1 }' "$work/json"
$race --with iid --temp 1 --json >"$work/json"
check "sampled texts are not called identical in JSON" lines '"identical":	false,$' 1
$ESPALIER race $samples/same-text-linear.esp.jsonl $samples/dyspec.esp.jsonl --json >"$work/json"
check "with different prompts, JSON does not say whether the texts are identical" lines '"identical":	null,$' 1

# A race of recordings must use the recorded times.
$ESPALIER race $samples/same-text-linear.esp.jsonl $samples/same-text-tree.esp.jsonl >"$work/out"
check "two recordings of one text can race" grep -q '^identical, [0-9.]* times as fast' "$work/out"
check "the result says that recorded times were used" grep -q 'by their recorded times' "$work/out"
$ESPALIER race $samples/same-text-linear.esp.jsonl $samples/dyspec.esp.jsonl >"$work/out"
check "recordings with different prompts are refused" grep -q '^not comparable' "$work/out"
head -c 3000 $samples/dyspec.esp.jsonl | tail -c 2000 >"$work/broken"
check "a race of a damaged recording is refused" fails 1 broken $ESPALIER race "$work/broken" "$work/broken"
check "a race of a single recording is refused" fails 2 'two sides' $ESPALIER race $samples/dyspec.esp.jsonl
check "an unknown drafter is refused" fails 1 "no drafter 'linaer'" $race --with linaer
check "race refuses a verifier that does not fit the drafter" fails 1 naive $race --with dyspec --with-verifier naive --temp 1

# The race must also work on a screen.
for size in 80x24 40x20 120x40; do
    play "size $size
wait
$dump" race --pass 0 -n 24 --seed 0 --with linear:K=4
    check "at $size the seed is shown" dumped '^ espalier race.* seed 0$'
    check "at $size the race ends with the result" dumped 'identical, [0-9.]* times as'
    check "at $size the screen has the results of both sides" test "$(grep -o '24 tokens' "$work/screen" | wc -l)" -eq 2
done
play "size 40x12
wait
$dump" race --pass 0 -n 24 --seed 1 --with linear:K=4
check "at 40x12 the screen has the results of both sides" test "$(grep -c '^ \(ar\|linear\)  24 tokens' "$work/screen")" -eq 2
check "at 40x12 the screen has the text of both sides" test "$(grep -c '^ [^ ].*[a-z]' "$work/screen")" -ge 6
check "at 40x12 there are no empty frames" sh -c "! grep -q '[┌└]' '$work/screen'"
play "size 80x24
wait
$dump" race $samples/same-text-linear.esp.jsonl $samples/same-text-tree.esp.jsonl
check "recordings can race on a screen" dumped 'identical, [0-9.]* times as fast'
play "size 20x5
wait
$dump
key Space
wait
key q" race --pass 0 -n 8 --with linear:K=2
check "on a tiny screen, race runs and q ends it" test $? -eq 0
play "size 100x30
wait
type :race ar linear:K=3
key Enter
wait
$dump
key Esc
type :race a b c
key Enter
$dump" --target engine/models/fairytale-target --draft engine/models/fairytale-draft --seed 0
check "after a race in the interface, Esc returns to the panes" dumped 'write :race'
check "race in the interface does not enlarge models other than the built-in pair" dumped '│ text'
play "size 100x30
wait
type :race ar nothing
key Enter
wait
$dump" --target engine/models/fairytale-target --draft engine/models/fairytale-draft
check "the screen says why a race is impossible" dumped "no drafter 'nothing'"
finish
