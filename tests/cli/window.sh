#!/bin/sh
# Tests --window, which limits attention to the last tokens of a text. Tests the messages about the
# window, texts that are longer than the context, and what the screen shows about the window.
. tests/shell.sh
. tests/script.sh

$ESPALIER generate -p "Once upon a time" -n 900 --window 50 --drafter suffix --stats --json >"$work/json" 2>"$work/err"
check "with a window, a text can become longer than the context" grep -q '"generated_tokens":	900' "$work/json"
$ESPALIER generate -p "Once upon a time" -n 60 --window 20 --sinks 2 --drafter linear --stats --record "$work/w.esp.jsonl" >"$work/text" 2>"$work/stats"
check "the statistics show the window" grep -q "^window  *the first 2 tokens and the last 20, which changes what the model says" "$work/stats"
$ESPALIER generate -p "Once upon a time" -n 60 --window 20 --sinks 2 --drafter ar >"$work/plain"
check "plain decoding with the window gives the same text" cmp "$work/text" "$work/plain"
$ESPALIER generate -p "Once upon a time" -n 60 --drafter ar >"$work/whole"
check "plain decoding without a window gives a different text" sh -c "! cmp -s '$work/text' '$work/whole'"
check "a recording stores the size of the window" \
    sh -c "head -n 1 '$work/w.esp.jsonl' | grep -q '\"lossy\":true.*\"window\":\"20\"'"
$ESPALIER check --temp 0 --trials 2 --drafter linear --window 9 >"$work/check"
check "espalier check compares with plain decoding in the same window" grep -q "the same window of 9 tokens and 4 sinks" "$work/check"
check "espalier check passes with a window" grep -q "linear.* ok$" "$work/check"
check "a window that does not fit into the context is refused" \
    sh -c "$ESPALIER generate -p x --window 800 2>&1 | grep -q 'context of 768: the window can have at most 764'"
play "size 110x30
type :drafter ar
key Enter
type :window 12
key Enter
type :tokens 40
key Enter
type Once upon a time
key Enter
wait
$dump"
check "the header shows LOSSY" dumped LOSSY
check "the title of the text pane shows the size of the window" dumped "tokens, window 4 + 12"
play "size 110x30
wait
key End
$dump" replay "$work/w.esp.jsonl"
check "a replay shows the window" dumped "tokens, window 2 + 20"
finish
