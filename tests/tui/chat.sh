#!/bin/sh
# Tests conversations in the interface: turns, :regenerate, :edit, :system, a full context, and recordings.
. tests/shell.sh
. tests/script.sh
. tests/chat_pair.sh
chat_pair "$work/chat"
models="--target $work/chat/target --draft $work/chat/draft --drafter fixed:D=3,B=2 --no-config"

shown() { # FILE PATTERN: succeeds if the screen stored in FILE shows PATTERN
    grep -q -e "$2" "$1" && return
    echo "    no '$2' in:"
    sed 's/^/    |/' "$1"
    return 1
}

play "size 100x30
wait
type :record $work/chat.esp.jsonl
key Enter
wait
type Who was the king?
key Enter
wait
type And the queen?
key Enter
wait
$dump
type :regenerate!
key Enter
wait
dump $work/again
type :edit!
key Enter
wait
dump $work/edited
key C-u
type And the fox?
key Enter
wait
dump $work/fox
type :system Be brief.
key Enter
wait
dump $work/system" $models -n 16 --temp 0.7 --seed 3
check "the text pane names the chat format" dumped '^┌ text .* chatml '
check "the user's first turn has a mark" dumped '^│ > Who was the king?'
check "the user's second turn has a mark" dumped '^│ > And the queen?'
check "no control token is shown" sh -c "! grep -q 'im_start\|im_end\|assistant' '$work/screen'"
answers() { sed -n '/> And the queen/,/^├/p' "$1" | sed 's/^│\([^│]*\).*/\1/'; }
answers "$work/screen" >"$work/one"
answers "$work/again" >"$work/other"
check ":regenerate writes another answer" sh -c "! cmp -s '$work/one' '$work/other' && test -s '$work/other'"
check ":edit removes the last turn from the text" sh -c "! grep -q '^│ > And the queen' '$work/edited'"
check ":edit puts the last turn into the input line" shown "$work/edited" '^> And the queen?'
check "a changed prompt can be sent" shown "$work/fox" '^│ > And the fox?'
check "the turn before the edited turn is unchanged" shown "$work/fox" '^│ > Who was the king?'
check ":system takes effect in the next conversation" shown "$work/system" ':clear starts another'

$ESPALIER replay "$work/chat.esp.jsonl" --plain >"$work/plain" 2>&1
tail -30 "$work/plain" >"$work/last"
check "a replay shows the turns" shown "$work/last" '^│ > And the fox?'
check "a replay does not show the turn that was taken back" sh -c "! grep -q '^│ > And the queen' '$work/last'"
check "a replay as text shows no control tokens" sh -c "! grep -q 'im_start\|im_end' '$work/plain'"

# The first screen says that this is a conversation. After an answer that stopped at the token
# limit, the screen says how to continue.
play "size 100x30
wait
dump $work/greeting
type Who was the king?
key Enter
wait
dump $work/stopped
key Enter
wait
$dump" $models -n 6 --seed 3
check "the first screen asks for a question" shown "$work/greeting" 'Ask something and press Enter'
check "the first screen does not ask for the beginning of a text" sh -c "! grep -q 'beginning of a text\|^│ prompt' '$work/greeting'"
check "after an answer that stopped at the token limit, the screen says how to continue" shown "$work/stopped" \
    'the answer stopped after 6 tokens (:n); Enter continues it'
tokens_of() { sed -n 's/^┌ text   \([0-9]*\) tokens.*/\1/p' "$1"; }
check "Enter continues an answer that stopped at the token limit" test "$(tokens_of "$work/screen")" -eq $(($(tokens_of "$work/stopped") + 6))
check "a continued answer stays in the same turn" test "$(grep -c '^│ > ' "$work/screen")" -eq 1

# Asks questions until the context is full.
said=
for number in one two three four five six; do
    said="$said
type and what of $number?
key Enter
wait
dump $work/turn-$number"
done
play "size 100x40
wait
type :record $work/full.esp.jsonl
key Enter
wait$said
key Enter
wait
dump $work/on" $models -n 60 --context 400
check "the last turn is shown when the context is full" shown "$work/turn-six" '^│ > and what of six?'
check "the first turn is dropped when the context is full" sh -c "! grep -q '^│ > and what of one' '$work/turn-six'"
check "a message warns before turns are dropped" grep -q 'the next prompt drops the oldest' "$work"/turn-*
check "the recording has an event for the dropped turns" grep -q '"type":"drop"' "$work/full.esp.jsonl"
check "screens show no control tokens after turns were dropped" sh -c "! grep -q 'im_end' '$work'/turn-*"
check "an answer in a full context can be continued" sh -c "! grep -q 'context is full' '$work/on'"
$ESPALIER replay "$work/full.esp.jsonl" --plain >"$work/plain" 2>&1
tail -40 "$work/plain" >"$work/last"
check "the replay ends with the turns that were shown" shown "$work/last" '^│ > and what of six?'
check "the replay does not end with the first turn" sh -c "! grep -q '^│ > and what of one' '$work/last'"

play "size 100x30
wait
type Who was the king?
key Enter
wait
type :record $work/late.esp.jsonl
key Enter
wait
type And the queen?
key Enter
wait" $models -n 8
$ESPALIER replay "$work/late.esp.jsonl" --plain >"$work/plain" 2>&1
check "a recording that begins after a turn also shows that turn" shown "$work/plain" '^│ > Who was the king?'
check "a recording that begins after a turn shows no control tokens" sh -c "! grep -q 'im_start\|im_end' '$work/plain'"

play "size 100x24
wait
type :regenerate!
key Enter
wait
dump $work/nothing
type :chat none
key Enter
wait
type Once upon a time
key Enter
wait
$dump
type :chat nonsense
key Enter
wait
dump $work/wrong" $models -n 8
check ":regenerate without an answer is refused" shown "$work/nothing" 'no answer to regenerate'
check "with the setting chat none, the prompt has no turn mark" dumped '^│ Once upon a time'
check "an unknown format is refused" shown "$work/wrong" 'chat takes auto, none, chatml'
finish
