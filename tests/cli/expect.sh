#!/bin/sh
# Tests drafting without a draft model. Drafts come from the text that --expect names, or are tokens recycled from earlier runs.
. tests/shell.sh
. tests/script.sh
. tests/chat_pair.sh
XDG_STATE_HOME=$work/state
export XDG_STATE_HOME
prompt="Once upon a time there was a poor woodcutter"
gen="$ESPALIER generate -n 120 --seed 1"
count="import json,sys; print(json.load(sys.stdin)"

$gen -p "$prompt" --drafter ar >"$work/plain"
$gen -p "$prompt" --drafter ar --temp 0.7 >"$work/drawn"
# Makes variants of an earlier answer: with a changed word, an additional line, and Windows line endings.
sed 's/ the / a /2' "$work/plain" >"$work/changed"
{ echo "A line that is not there."; cat "$work/plain"; } >"$work/more"
sed 's/$/\r/' "$work/plain" >"$work/crlf"
printf '\377\000\376 nothing of it' >"$work/other"
for file in plain changed more crlf other; do
    printf %s "$prompt" | $gen - --expect "$work/$file" >"$work/got"
    check "with a prompt from a pipe, the text does not depend on the expected text ($file)" cmp -s "$work/plain" "$work/got"
    printf %s "$prompt" | $gen --temp 0.7 --drafter recycle --expect "$work/$file" >"$work/$file.warm"
    check "a sampled text does not depend on the expected text ($file)" cmp -s "$work/drawn" "$work/$file.warm"
done

$gen -p "$prompt" --drafter suffix --expect "$work/plain" --json >"$work/json"
check "if the answer equals the expected text, nearly all of its tokens are accepted" sh -c \
    "python3 -c \"$count['accepted_prediction_tokens'] > 90)\" <'$work/json' | grep -q True"
check "with --expect, an iteration commits more than 8 tokens on average" sh -c \
    "python3 -c \"$count['tokens_per_iteration'] > 8)\" <'$work/json' | grep -q True"
check "the counts of drafted tokens from all sources add up to the totals" sh -c "python3 -c \"
import json, sys
o = json.load(sys.stdin)
s = o['acceptance']['sources']
print(sum(s[k]['nodes'] for k in s) == o['drafted_nodes'] and
      s['expected']['accepted'] == o['accepted_prediction_tokens'])\" <'$work/json' | grep -q True"
check "without --expect, JSON has no counts of expected tokens" sh -c \
    "! $gen -p '$prompt' --json | grep -q prediction_tokens"
$gen -p "$prompt" --drafter suffix --expect "$work/plain" --stats >/dev/null 2>"$work/stats"
check "statistics have the counts of expected tokens, too" sh -c \
    "grep -q '^expected text .* tokens accepted' '$work/stats' && grep -q '^sources .*expected' '$work/stats'"
check "with --expect, the default drafter is one that uses the expected text" sh -c "
    $gen -p '$prompt' --target fairytale-target --expect '$work/plain' --json | grep -q '\"drafter\":.*\"recycle'"
$gen -p "$prompt" --drafter fixed --expect "$work/plain" >"$work/got" 2>"$work/note"
check "a warning says that drafter fixed does not use the expected text" grep -q "drafter fixed does not use the expected text" "$work/note"

# In a chat, an answer begins after control tokens. Drafting from the expected text must still work.
chat_pair "$work/chat"
chat="$ESPALIER generate -n 80 --seed 1 --ignore-eos --target $work/chat/target -p Hello"
$chat >"$work/answer"
$chat --expect "$work/answer" --drafter suffix --json >"$work/json"
check "an answer in a chat follows the expected text from the first token" sh -c "python3 -c \"
import json, sys
o = json.load(sys.stdin)
print(o['text'] == open('$work/answer').read() and o['iterations'] <= 6 and
      o['rejected_prediction_tokens'] < 10)\" <'$work/json' | grep -q True"

check "a folder as the expected text is refused" fails 1 "not a regular file" $gen -p x --expect "$work"
check "a missing file of expected text is refused" fails 1 "No such file" $gen -p x --expect "$work/none"
mkfifo "$work/fifo"
check "--expect refuses a pipe instead of waiting for it" fails 1 "not a regular file" $gen -p x --expect "$work/fifo"
head -c 1048577 /dev/zero >"$work/large"
check "a file of expected text above 1 MB is refused" fails 1 "larger than 1 MB" $gen -p x --expect "$work/large"

# In the interface, expected text is a setting that applies to one answer only.
cp "$work/plain" "$work/a text"
play "size 110x30
wait
type :expect $work/a\\ te
key Tab
wait
key Enter
wait
dump $work/answer
type $prompt
key Enter
wait
$dump" --drafter suffix -n 40 --no-config --temp 0
check ":expect completes a path that has a space, and reads the file" grep -q "expect = .*a text" "$work/answer"
check "the tree marks expected tokens" dumped " expected"
play "size 110x30
wait
type :expect $work
key Enter
wait
$dump" --no-config
check "a folder as the expected text is refused in the interface" dumped "not a regular file"

# ---------------------------------------------------------------- recycled tokens

recycle="$ESPALIER generate -n 120 --drafter recycle:cost=off,N=8,suffix=off"
iterations() {
    "$@" --json | python3 -c "$count['iterations'])"
}
kept() {
    ls "$XDG_STATE_HOME/espalier" 2>/dev/null | grep -c recycled
}
iterations $recycle -p "$prompt" --seed 1 >"$work/seeded"
iterations $recycle -p "$prompt" --recycle session >"$work/session"
check "with --seed or --recycle session, no recycled tokens are stored" test "$(kept)" = 0
iterations $recycle -p "$prompt" >"$work/first"
check "without --seed or --recycle session, recycled tokens are stored" test "$(kept)" = 1
check "recycled tokens are readable by the owner only" sh -c "ls -l '$XDG_STATE_HOME/espalier' | grep recycled | grep -q '^-rw-------'"
iterations $recycle -p "$prompt" >"$work/second"
check "a run with stored recycled tokens needs fewer iterations" test "$(cat "$work/second")" -lt "$(cat "$work/first")"
iterations $recycle -p "$prompt" --seed 1 >"$work/again"
check "with a seed, stored recycled tokens do not change the number of iterations" cmp -s "$work/seeded" "$work/again"
$recycle -p "$prompt" >"$work/warm"
check "stored recycled tokens do not change the text" cmp -s "$work/plain" "$work/warm"

printf x | dd of="$(ls -d "$XDG_STATE_HOME"/espalier/recycled-*)" bs=1 seek=100 conv=notrunc 2>/dev/null
$recycle -p "$prompt" >"$work/got" 2>"$work/note"
check "a message of one line says that the file of recycled tokens is damaged" sh -c "[ \$(wc -l <'$work/note') = 1 ] && grep -q 'is damaged' '$work/note'"
check "a damaged file of recycled tokens does not change the text" cmp -s "$work/plain" "$work/got"
$recycle -p "$prompt" >"$work/got" 2>"$work/note"
check "a damaged file of recycled tokens is replaced" test ! -s "$work/note"

check "a recording says which tokens were recycled" sh -c "
    $recycle -p '$prompt' --record '$work/r.jsonl' >/dev/null && grep -q '\"source\":\"recycled\"' '$work/r.jsonl' &&
    $ESPALIER stats '$work/r.jsonl' | grep -q '^recycled '"
finish
