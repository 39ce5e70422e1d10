#!/bin/sh
# Tests the commands `espalier generate`, `espalier list` and `espalier inspect`.
. tests/shell.sh
prompt="Once upon a time"
gen="$ESPALIER generate -n 48"

$gen -p "$prompt" --drafter ar >"$work/ar"
$gen -p "$prompt" >"$work/tree"
printf %s "$prompt" | $gen - >"$work/stdin"
printf %s "$prompt" | $gen >"$work/pipe"
printf %s "$prompt" >"$work/prompt"
$gen -f "$work/prompt" >"$work/file"
check "plain decoding writes text" test -s "$work/ar"
for way in tree stdin pipe file; do
    check "the text does not depend on the drafter or the source of the prompt ($way)" \
        cmp -s "$work/ar" "$work/$way"
done
check "with a different instruction set, generate writes the same text" sh -c \
    "ESPALIER_ISA=generic $gen -p '$prompt' >'$work/generic' && cmp -s '$work/ar' '$work/generic'"
check "list backends names the instruction set that is used" sh -c \
    "ESPALIER_ISA=generic $ESPALIER list backends | grep -q 'portable C'"
check "an unknown instruction set is refused, and the error names the available sets" \
    fails 1 "lacks the instruction set 'z80'.*generic" env ESPALIER_ISA=z80 $gen -p "$prompt"
check "generate writes no escape codes to a pipe" sh -c "! grep -q '$(printf '\033')' $work/tree"

for way in "generate -p a -n 4 --stats" "generate -p a -n 4 --json" "list drafters" "list themes" inspect \
    "check --trials 2 --drafter ar --verifier greedy" --help "list --help" "nonsense" "--theme"; do
    $ESPALIER $way >"$work/piped" 2>&1 </dev/null
    check "espalier $way writes no escape codes to a pipe" \
        sh -c "[ -s '$work/piped' ] && ! grep -q '$(printf '\033')' '$work/piped'"
done

$gen -p "$prompt" --json --baseline >"$work/json" 2>"$work/err"
for key in text tokens prompt_tokens generated_tokens target draft drafter verifier backend seed \
    iterations drafted_nodes accepted_nodes acceptance_rate tokens_per_iteration mean_path_length \
    tokens_per_second baseline_tokens_per_second speedup seconds load prefill draft flatten verify select \
    commit adapt decode peak_bytes streamed first_token acceptance block_efficiency expected_tokens path_share \
    nodes_per_tree most_nodes mask_blocks calibration_error path_lengths depths ranks probabilities; do
    check "JSON has $key" grep -q "\"$key\":" "$work/json"
done
check "--json prints nothing on stderr" test ! -s "$work/err"
check "-n 48 generates 48 tokens" grep -q '"generated_tokens":	48' "$work/json"
check "without --baseline, JSON has no baseline" sh -c \
    "$gen -p '$prompt' --json | grep -q '\"baseline_tokens_per_second\":	null'"
check "without --baseline, the speedup in JSON is null, too" sh -c "$gen -p '$prompt' --json | grep -q '\"speedup\":	null'"
# Without --seed, a random seed must be used, shown and recorded. A run with --seed and this seed must
# give the same text again.
drawn() { sed -n 's/^	"seed":	\(.*\),$/\1/p' "$1"; }
text_of() { grep '^	"tokens":' "$1"; }
draws="$ESPALIER generate -n 32 --temp 1 --drafter iid:K=2,L=3 --json"
for run in 1 2; do
    XDG_STATE_HOME="$work/nothing-learned-$run" $draws -p "$prompt" --record "$work/drawn-$run.esp.jsonl" >"$work/drawn-$run"
done
check "two runs without --seed use different seeds" test "$(drawn "$work/drawn-1")" != "$(drawn "$work/drawn-2")"
check "two runs without --seed write different texts" test "$(text_of "$work/drawn-1")" != "$(text_of "$work/drawn-2")"
check "a recording has the seed that was chosen at random" sh -c "head -n 1 '$work/drawn-1.esp.jsonl' | grep -q '\"seed\":\"$(drawn "$work/drawn-1")\"'"
$draws -p "$prompt" --seed "$(drawn "$work/drawn-1")" >"$work/again"
check "--seed with the seed of an earlier run gives the same text again" test "$(text_of "$work/again")" = "$(text_of "$work/drawn-1")"
check "--stats names the seed" sh -c "$gen -p '$prompt' --stats --seed 7 2>&1 >/dev/null | grep -q '^seed  *7$'"

check "a 64-bit seed is printed unchanged" sh -c \
    "$gen -p '$prompt' --json --seed 18446744073709551615 | grep -q 18446744073709551615"

$gen -p "$prompt" --drafter dynatree --stats >"$work/out" 2>"$work/stats"
check "statistics go to stderr" grep -q "tokens/s" "$work/stats"
check "statistics have the lengths of accepted paths" grep -q "^path lengths  *[0-9]*: [0-9]*, [0-9]*: " "$work/stats"
check "statistics do not change standard output" cmp -s "$work/ar" "$work/out"

# If Ctrl-C arrives after the first byte of the text, the text so far must stay, and the exit code must be 130.
mkfifo "$work/fifo"
$ESPALIER generate -p "$prompt" -n 700 --drafter ar --threads 1 --stats >"$work/fifo" 2>"$work/stats" &
pid=$!
exec 3<"$work/fifo"
head -c 1 <&3 >"$work/first"
kill -INT $pid
cat <&3 >"$work/rest"
wait $pid
code=$?
exec 3<&-
check "Ctrl-C ends generate with exit code 130" test $code -eq 130
check "Ctrl-C keeps the text so far" test -s "$work/first"
check "Ctrl-C still prints statistics" grep -q "tokens/s" "$work/stats"

for list in drafters verifiers backends models; do
    check "list $list prints a list" sh -c "$ESPALIER list $list | grep -q ."
    check "list $list --json prints an array" sh -c "$ESPALIER list $list --json | grep -q '^\['"
done
check "inspect without arguments describes the default pair" sh -c "$ESPALIER inspect | grep -q 'pair fits'"
check "inspect describes a single model" sh -c \
    "$ESPALIER inspect engine/models/fairytale-draft | grep -q 'parameters'"
check "inspect --json has the size of the vocabulary" sh -c "$ESPALIER inspect --json | grep -q '\"vocabulary\":	4096'"
check "--version prints the version" sh -c "$ESPALIER --version | grep -q '^espalier [0-9]'"
check "--help names the commands" sh -c "$ESPALIER --help | grep -q 'espalier generate'"
for command in generate list inspect; do
    check "$command --help prints the usage" sh -c "$ESPALIER $command --help | grep -q usage"
done
check "generate --json says why the text ended, and has the sampling settings" sh -c "$ESPALIER generate -p Once -n 3 --temp 0.5 \
    --seed 18446744073709551615 --json | tr -d '\t\n' | grep -q \
    '\"end\":\"length\".*\"temperature\":0.5,\"top_p\":1,\"top_k\":0,\"seed\":18446744073709551615,'"
finish
