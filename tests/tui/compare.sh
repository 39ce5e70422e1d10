#!/bin/sh
# Tests the comparison of two configurations on the same text, in the interface.
. tests/shell.sh
. tests/script.sh

prompt='Once upon a time there was a king who had three sons,'
begin="size 120x36
wait
type :compare linear:K=4
key Enter
wait
type :n 60
key Enter
type $prompt
key Enter
wait"

# If a seed is given, the run does not use what earlier runs have learned.
play "$begin
$dump" --seed 0 --drafter dynatree:N=8
check ":compare opens the compare pane" dumped '^├ compare '
check "the pane names both configurations" dumped '^│ dynatree:.*, greedy *│ linear:K=4, greedy'
check "the trees of both sessions have the same root" sh -c \
    "sed -n 's/.*from token \([0-9]*\):.*from token \([0-9]*\):.*/\1 = \2/p' '$work/screen' |
     grep -q '^\([0-9]*\) = \1$'"
check "the pane says which side needs fewer iterations" dumped 'iterations for the same text'

# The totals must equal the totals that `espalier compare` prints.
counts() { # DRAFTER: prints the tokens per iteration and the iterations in the drafter's line
    sed -n "s/^[│ ]*$1  *\([0-9.]*\)  *\([0-9]*\)  *[0-9.]* %.*/\1 \2/p"
}
$ESPALIER compare -p "$prompt" -n 60 --drafter dynatree:N=8 --with linear:K=4 --seed 0 >"$work/table"
for drafter in dynatree linear; do
    check "the totals of $drafter equal the totals that espalier compare prints" test \
        "$(counts $drafter <"$work/screen")" = "$(counts $drafter <"$work/table")"
    check "the compare pane has totals for $drafter" test -n "$(counts $drafter <"$work/screen")"
done

# A comparison must not change the text.
words() { # prints the words of the zoomed text pane
    sed -e '1,2d' -e '/^└/,$d' -e 's/^│ //' -e 's/ *│$//' "$work/screen" | tr -s ' ' '\n'
}
for temp in 0 1; do
    play "size 120x36
wait
type :n 60
key Enter
type $prompt
key Enter
wait
key Tab F8
$dump" --temp $temp --seed 0
    words >"$work/alone"
    play "$begin
key Tab Tab F8
$dump" --temp $temp --seed 0
    words >"$work/compared"
    check "comparing does not change the text at temperature $temp" \
        cmp "$work/alone" "$work/compared"
    check "the text at temperature $temp is not empty" test "$(wc -w <"$work/alone")" -gt 30
done

# A user must be able to change every setting during a comparison.
play "$begin
type :temp 0.7
key Enter
wait
key Enter
wait
$dump"
check "settings apply to both sides" dumped 'compare   the first writes the text, the second drafts along'
check "the second side gets a verifier that fits its drafter" dumped '│ linear:K=4, [^g]'
play "$begin
type :compare dyspec swor
key Enter
wait
$dump"
check "a verifier that does not fit is refused with a message" dumped 'swor'
check "the comparison continues after a refused verifier" dumped '│ linear:K=4, greedy'
play "$begin
type :compare one two three
key Enter
wait
$dump"
check ":compare refuses extra words after the drafter" dumped 'write :compare DRAFTER'
play "$begin
type :clear!
key Enter
wait
type Once more
key Enter
wait
$dump"
check "a new text starts a new comparison" dumped '^│ text *Once more\|^│ Once more'
check "the new comparison has new totals" dumped 'iterations for the same text'
play "$begin
type :edit!
key Enter
wait
key Enter
wait
$dump"
check "a prompt can be sent again during a comparison" dumped 'iterations for the same text'
play "$begin
type :threads 1
key Enter
wait
key Enter
wait
$dump"
check "a comparison continues with newly loaded models" dumped '│ linear:K=4, greedy'
play "$begin
type :compare off
key Enter
wait
$dump"
check ":compare off shows the other panes again" dumped '├ controller '
check "a message says that the comparison has ended" dumped 'the comparison has ended'

play "$begin
type :compare ar
key Enter
wait
key Enter
wait
$dump"
check "if one side uses plain decoding, that side is the baseline" dumped '^│ ar .* 1\.00x'
# The ratio in the header must equal the ratio in the table. It includes all iterations of the
# comparison, not only the last few.
play "size 200x36
wait
type :compare ar
key Enter
wait
type :n 300
key Enter
type $prompt
key Enter
wait
$dump" --drafter linear:K=2 --width 2 --temp 1
check "the header and the table show the same speed ratio" awk '
    NR == 1 && /times as fast as plain|x plain/ { sub(/( times as fast as|x) plain.*/, ""); said = $NF }
    NR == 1 && /slower than plain decoding by/ { sub(/.*slower than plain decoding by /, ""); said = 1 - $1 / 100; part = 0.005 }
    /^│ linear/ && / [0-9.]*x/ { match($0, / [0-9.]*x/); row = substr($0, RSTART + 1, RLENGTH - 2) }
    END { off = row - said; exit said == "" || row == "" || off > part + 1e-6 || off < -part - 1e-6 }' "$work/screen"
# A comparison must work in step mode, and on the narrowest screens.
play "size 120x36
wait
type :compare linear
key Enter F5
type $prompt
key Enter
wait
key Space Space
wait
$dump"
check "step mode explains the second side's iteration" dumped "runs after the other side's iteration"
play "$begin
size 20x5
$dump
size 60x14
$dump
size 50x16
$dump"
check "narrow screens show the totals" dumped '^linear  *[0-9.]'
finish
