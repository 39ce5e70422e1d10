#!/bin/sh
# `espalier race`: two sides, the same text, and a sentence that was checked.
. tests/shell.sh
. tests/script.sh
samples=sessions/samples
race="$ESPALIER race --pass 0 -n 24 --seed 0"

# Without a terminal, the figures.
$race --with linear:K=4 >"$work/out" 2>"$work/err"
check "a race comes to its end" test $? -eq 0
check "plain decoding is on the left" grep -q '^left   ar  *24  *24 ' "$work/out"
check "what was named is on the right" grep -q '^right  linear  *24 ' "$work/out"
check "the texts were compared" grep -q '^identical, [0-9.]* times as fast' "$work/out"
check "nothing is complained about" test ! -s "$work/err"
$race --drafter dynatree:N=8 --with dyspec -p "Once more" >"$work/out"
check "any drafter races any other" grep -q '^left   dynatree' "$work/out"
$race --with iid --temp 1 >"$work/out"
check "drawn texts are not called identical" sh -c \
    "! grep -q '^identical' '$work/out' && grep -q 'a text of its own' '$work/out'"
$ESPALIER race --pass 12 --with linear:K=2 -n 4 >"$work/out"
check "the built-in target is made larger" grep -q '^fairytale-target x.*, .* ms a pass <- fairytale-draft;' "$work/out"

# Recordings race by their own times.
$ESPALIER race $samples/same-text-linear.esp.jsonl $samples/same-text-tree.esp.jsonl >"$work/out"
check "two recordings of one text race" grep -q '^identical, [0-9.]* times as fast' "$work/out"
check "and it is said by which times" grep -q 'times that they recorded' "$work/out"
$ESPALIER race $samples/same-text-linear.esp.jsonl $samples/dyspec.esp.jsonl >"$work/out"
check "other prompts cannot be compared" grep -q '^not comparable' "$work/out"
head -c 3000 $samples/dyspec.esp.jsonl | tail -c 2000 >"$work/broken"
check "a broken recording is refused" fails 1 broken $ESPALIER race "$work/broken" "$work/broken"
check "one recording is too few" fails 2 'two sides' $ESPALIER race $samples/dyspec.esp.jsonl
check "a drafter that is not there is named" fails 1 "no drafter 'linaer'" $race --with linaer
check "so is a verifier that does not fit" fails 1 naive $race --with dyspec --with-verifier naive --temp 1

# On a screen.
for size in 80x24 40x20 120x40; do
    play "size $size
wait
$dump" race --pass 0 -n 24 --seed 0 --with linear:K=4
    check "at $size the race ends with its sentence" dumped 'identical, [0-9.]* times as'
    check "at $size both sides have their figures" test "$(grep -o '24 tokens' "$work/screen" | wc -l)" -eq 2
done
play "size 80x24
wait
$dump" race $samples/same-text-linear.esp.jsonl $samples/same-text-tree.esp.jsonl
check "recordings race on it, too" dumped 'identical, [0-9.]* times as fast'
play "size 20x5
wait
$dump
key Space
wait
key q" race --pass 0 -n 8 --with linear:K=2
check "a tiny screen is no harm, and q leaves" test $? -eq 0
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
check "Esc gives the panes back" dumped 'write :race'
check "models of one's own race as they are" dumped '│ text'
play "size 100x30
wait
type :race ar nothing
key Enter
wait
$dump" --target engine/models/fairytale-target --draft engine/models/fairytale-draft
check "what cannot race is said on the page" dumped "no drafter 'nothing'"
finish
