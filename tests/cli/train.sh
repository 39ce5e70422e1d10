#!/bin/sh
# Tests `espalier train`: progress without a terminal, the folder that is written, Ctrl-C, --resume, and error messages.
# Does not test speed or quality, because other tools measure them.
. tests/shell.sh
yes 'Once upon a time there was a king who had three sons, and the youngest of them had a golden bird.' |
    head -60 >"$work/text"
train="$ESPALIER train head --text $work/text -n 600 --length 24 --batch 2 --seed 3"

$train --loss talf:every=6 --epochs 2 -o "$work/head" >"$work/out" 2>"$work/err"
check "training a head succeeds" test $? -eq 0
check "the progress output contains no escape codes" sh -c "! grep -q '$(printf '\033')' '$work/err' && ! grep -q '$(printf '\r')' '$work/err'"
check "the progress output shows the step, the loss and the time left" grep -q \
    '^training, epoch 1 of 2, step [0-9]* of 24, loss [0-9.]*, .* left$' "$work/err"
check "each epoch is evaluated" grep -q '^epoch 2, on the held-out pieces, by depth: overlap 0\.' "$work/err"
check "the result is evaluated at every depth" test "$(grep -c '^ *[0-2]  *[0-9.]*  *[0-9.]*  *[0-9.]*$' "$work/out")" = 3
check "training leaves only the two files of the head in the folder" test "$(ls "$work/head" | tr '\n' ' ')" = "config.json model.safetensors "

# Training is interrupted or, on a fast machine, ends before the signal. In both cases the head
# must equal the head of training without an interruption.
again="$train --loss eagle --epochs 8 --force"
$again -o "$work/whole" >/dev/null 2>&1
rm "$work/err"
$again -o "$work/parts" >/dev/null 2>"$work/err" &
pid=$!
while kill -0 $pid 2>/dev/null && ! grep -qs '^training' "$work/err"; do sleep 0.05; done
kill -TERM $pid 2>/dev/null
wait $pid
code=$?
if [ -e "$work/parts/checkpoint" ]; then
    check "SIGTERM ends training with exit code 143" test $code -eq 143
    check "a message says how to continue the training" grep -q 'the same command with --resume continues' "$work/err"
    check "interrupted training writes no model" test ! -e "$work/parts/model.safetensors"
    $again --resume -o "$work/parts" >/dev/null 2>&1
    check "--resume completes the training" test $? -eq 0
else
    check "training succeeds if it ends before the signal" test $code -eq 0
fi
check "the head is bit-identical to the head of uninterrupted training" cmp "$work/whole/model.safetensors" "$work/parts/model.safetensors"

$ESPALIER train draft --text "$work/text" -n 500 --length 24 --batch 4 --loss ce -o "$work/draft" --json \
    >"$work/json" 2>/dev/null
check "a draft model can be trained further" grep -q '"overlap"' "$work/json"
check "a draft model that was trained further can draft" test -n "$($ESPALIER generate -p 'Once' -n 4 --target engine/models/fairytale-target \
    --draft "$work/draft")"

$ESPALIER train text --text "$work/text" -n 40 --length 48 --seed 2 -o "$work/own" >"$work/out"
check "train text writes a text to the file" test "$(wc -c <"$work/own")" -gt 100
check "train text prints the length of its text" grep -q ': 4[0-9] tokens\|: [5-9][0-9] tokens' "$work/out"
$ESPALIER train text --text "$work/text" -n 40 --length 48 --seed 2 -o "$work/again" >/dev/null
check "the same seed gives the same text" cmp "$work/own" "$work/again"
check "an existing text is not overwritten" fails 1 "add --force" $ESPALIER train text --text "$work/text" -o "$work/own"
check "train text refuses a text file that does not exist" fails 1 "cannot read" $ESPALIER train text --text "$work/none" -o "$work/x"

# If training is interrupted before the first step, it must leave no files.
$ESPALIER train head --text README.md -o "$work/none" >"$work/out" 2>"$work/err" &
pid=$!
while kill -0 $pid 2>/dev/null && [ ! -e "$(echo "$work/none/features.bin.part"*)" ]; do :; done
kill -INT $pid
wait $pid
check "an interruption before the first step exits with 130" test $? -eq 130
check "a message says that training was interrupted before the first step" grep -q "interrupted before the first step: " "$work/err"
check "training that is interrupted before the first step leaves no file" test -z "$(ls "$work/none")"
$ESPALIER train text --text "$work/text" -n 100000 --length 48 -o "$work/cut" >"$work/out" 2>"$work/err" &
pid=$!
while kill -0 $pid 2>/dev/null && [ -z "$(find "$work" -name 'cut.part*' -size +0)" ]; do sleep 0.05; done
kill -HUP $pid
wait $pid
check "SIGHUP ends train text with exit code 129" test $? -eq 129
check "the text that was written before the interruption is kept" test -s "$work/cut"
check "the length of the interrupted text is printed" grep -q '/cut: [1-9][0-9]* tokens that the target wrote before it was interrupted' "$work/out"
check "an interrupted 'train text' leaves no temporary file" test "$(echo "$work"/cut*)" = "$work/cut"
full() { (ulimit -f 1; exec $ESPALIER train text --text "$work/text" -n 4000 --length 48 -o "$work/full"); }
check "train text reports a full disk, with the reason" fails 1 "/full cannot be written: File too large" full
check "after a full disk, train text leaves no file" test "$(echo "$work"/full*)" = "$work/full*"
full() { (ulimit -f 4; exec $train -o "$work/small"); }
check "after a full disk, the folder of the head is empty" sh -c "! (ulimit -f 4; exec $train -o '$work/small') >/dev/null 2>'$work/err' &&
    grep -q '/small/features.bin cannot be written: File too large' '$work/err' && test -z \"\$(ls '$work/small')\""

check "training without a text is refused" fails 1 "no text to learn from" $ESPALIER train head -o "$work/x"
check "a second --text is refused" fails 1 "list all files after a single --text" \
    $ESPALIER train head --text "$work/text" --text "$work/text" -o "$work/x"
check "training without -o is refused" fails 1 "folder to make: -o DIR" $ESPALIER train head --text "$work/text"
check "train head refuses a text file that does not exist" fails 1 "none" $ESPALIER train head --text "$work/none" -o "$work/x"
check "an unknown loss is refused" fails 1 "no loss mse for a draft head; choose eagle" $train --loss mse -o "$work/x"
check "a parameter that belongs to another loss is refused" fails 1 "eagle" $train --loss eagle:k=4 -o "$work/x"
check "a folder that contains a model is refused" fails 1 "add --force" $train -o "$work/head"
check "--resume without a checkpoint is refused" fails 1 "train without --resume" $train --resume -o "$work/y"
check "an unknown kind of training is refused" fails 2 "nothing called 'tail'" $ESPALIER train tail
check "train without arguments is refused" fails 2 "an argument is missing" $ESPALIER train
finish
