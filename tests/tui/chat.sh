#!/bin/sh
# Conversations in the interface: turns, :regenerate, :edit, :system, a context that fills, recordings.
. tests/shell.sh
. tests/script.sh
. tests/chat_pair.sh
chat_pair "$work/chat"
models="--target $work/chat/target --draft $work/chat/draft --drafter fixed:D=3,B=2 --no-config"

shown() { # FILE PATTERN
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
check "the format is named" dumped '^┌ text .* chatml '
check "a user's turn is told from the model's" dumped '^│ > Who was the king?'
check "and so is the second" dumped '^│ > And the queen?'
check "no mark of the format is shown" sh -c "! grep -q 'im_start\|im_end\|assistant' '$work/screen'"
answers() { sed -n '/> And the queen/,/^├/p' "$1" | sed 's/^│\([^│]*\).*/\1/'; }
answers "$work/screen" >"$work/one"
answers "$work/again" >"$work/other"
check "an answer can be written again" sh -c "! cmp -s '$work/one' '$work/other' && test -s '$work/other'"
check "a turn can be taken back" sh -c "! grep -q '^│ > And the queen' '$work/edited'"
check "to be changed" shown "$work/edited" '^> And the queen?'
check "and sent again" shown "$work/fox" '^│ > And the fox?'
check "the turn before it stays" shown "$work/fox" '^│ > Who was the king?'
check "a system text is for the next conversation" shown "$work/system" ':clear starts another'

$ESPALIER replay "$work/chat.esp.jsonl" --plain >"$work/plain" 2>&1
tail -30 "$work/plain" >"$work/last"
check "a replay shows the turns" shown "$work/last" '^│ > And the fox?'
check "as they were" sh -c "! grep -q '^│ > And the queen' '$work/last'"
check "and no marks" sh -c "! grep -q 'im_start\|im_end' '$work/plain'"

# The first screen says that this is a conversation. After an answer that stopped at the token limit, it says how to go on.
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
check "a chat is greeted as one" shown "$work/greeting" 'Ask something and press Enter'
check "and not as a text" sh -c "! grep -q 'beginning of a text\|^│ prompt' '$work/greeting'"
check "an answer that stopped at n says how it goes on" shown "$work/stopped" \
    'the answer stopped after 6 tokens (:n); Enter continues it'
tokens_of() { sed -n 's/^┌ text   \([0-9]*\) tokens.*/\1/p' "$1"; }
check "and so it does" test "$(tokens_of "$work/screen")" -eq $(($(tokens_of "$work/stopped") + 6))
check "in the same turn" test "$(grep -c '^│ > ' "$work/screen")" -eq 1

# Several questions fill the context.
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
check "the last turn is there" shown "$work/turn-six" '^│ > and what of six?'
check "the first ones are not" sh -c "! grep -q '^│ > and what of one' '$work/turn-six'"
check "it was said before" grep -q 'the next prompt drops the oldest' "$work"/turn-*
check "and when it was done" grep -q '"type":"drop"' "$work/full.esp.jsonl"
check "what is left can be taken back" sh -c "! grep -q 'im_end' '$work'/turn-*"
check "an answer may go on" sh -c "! grep -q 'context is full' '$work/on'"
$ESPALIER replay "$work/full.esp.jsonl" --plain >"$work/plain" 2>&1
tail -40 "$work/plain" >"$work/last"
check "its replay ends with the same turns" shown "$work/last" '^│ > and what of six?'
check "and without the first" sh -c "! grep -q '^│ > and what of one' '$work/last'"

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
check "a recording that begins late has the turns before" shown "$work/plain" '^│ > Who was the king?'
check "and no marks" sh -c "! grep -q 'im_start\|im_end' '$work/plain'"

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
check "there is nothing to write again" shown "$work/nothing" 'no answer to regenerate'
check "text can be raw" dumped '^│ Once upon a time'
check "a format that there is not is refused" shown "$work/wrong" 'chat takes auto, none, chatml'
finish
