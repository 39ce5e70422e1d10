#!/bin/sh
# Tests `generate --record`. The text must be the same as without recording, and the recording must be complete. An error in
# writing the file must not end the generation.
. tests/shell.sh
prompt="Once upon a time"
gen="$ESPALIER generate -n 48 --temp 0.7 --seed 5"
file="$work/a.esp.jsonl"

$gen -p "$prompt" --json >"$work/json"
$gen -p "$prompt" >"$work/text"
$gen -p "$prompt" --record "$file" >"$work/out" 2>"$work/err"
code=$?
check "recording succeeds without messages" test $code -eq 0 -a ! -s "$work/err"
check "recording does not change the text" cmp -s "$work/text" "$work/out"
check "the first line of a recording is its header" sh -c \
    "head -n 1 $file | grep -q '^{\"format\":\"espalier-session\",\"version\":\"1.0\",'"
check "a recording has a line for each iteration" test "$(grep -c '"type":"iteration"' "$file")" -eq \
    "$(sed -n 's/.*"iterations":[^0-9]*\([0-9]*\).*/\1/p' "$work/json")"
check "the prompt is recorded" grep -q '"type":"prompt","tokens":.*"text":"Once"' "$file"
check "the end of the generation is recorded" sh -c "tail -n 1 $file | grep -q '\"type\":\"end\",\"text\":\"length\"'"

cp "$file" "$work/copy"
check "an existing file is not overwritten" fails 1 "exists.*--force" $gen -p "$prompt" --record "$file"
check "a recording that was not overwritten stays unchanged" cmp -s "$file" "$work/copy"
$gen -p "Another" --record "$file" --force >/dev/null
check "--force overwrites an existing recording" sh -c "! cmp -s $file $work/copy"
check "if the folder is missing, the error message names the file" fails 1 "nowhere/a.esp.jsonl" \
    $gen -p "$prompt" --record "$work/nowhere/a.esp.jsonl"
check "if the disk is full from the start, --record fails" fails 1 "No space left" $gen -p "$prompt" --record /dev/full

(
    ulimit -f 8
    $gen -p "$prompt" --record "$work/small" >"$work/out" 2>"$work/err"
)
code=$?
check "if the disk fills up during recording, the text is still written" cmp -s "$work/text" "$work/out"
check "if the disk fills up during recording, one message says so" test $code -eq 1 -a "$(grep -c suspended "$work/err")" -eq 1
check "if the disk fills up during recording, the last line in the file is complete" test "$(tail -c 1 "$work/small" | wc -l)" -eq 1

mkfifo "$work/pipe"
head -c 3000 "$work/pipe" >/dev/null &
until $gen -p "$prompt" --record "$work/pipe" >"$work/out" 2>"$work/err" || grep -q suspended "$work/err"; do
    continue # the reader of the pipe has not started yet
done
check "a closed pipe does not end the generation" cmp -s "$work/text" "$work/out"
check "a closed pipe is reported" grep -q "suspended: Broken pipe" "$work/err"
wait

$ESPALIER generate -p "$prompt" -n 700 --threads 1 --record "$work/killed" >"$work/out" &
pid=$!
until [ "$(grep -c iteration "$work/killed" 2>/dev/null)" -gt 3 ] 2>/dev/null; do continue; done
kill -9 $pid
wait $pid 2>/dev/null
sed '$d' "$work/killed" | tail -n +2 >"$work/whole"
check "after kill -9, all lines of the recording except the last are complete" test \
    "$(grep -c '^{"t":[0-9.e-]*,"type":"[a-z]*",.*}$' "$work/whole")" -eq "$(wc -l <"$work/whole")"

# The program is killed at ten moments. After each kill, the recording must be readable, and the next run must be able to
# record to the same file.
good=0
for tenths in 0.02 0.05 0.08 0.1 0.12 0.15 0.2 0.25 0.3 0.4; do
    $ESPALIER generate -p "$prompt" -n 700 --threads 1 --record "$work/again" --force >"$work/out" 2>"$work/err" &
    pid=$!
    sleep $tenths
    kill -9 $pid
    wait $pid 2>/dev/null
    [ ! -s "$work/err" ] || cat "$work/err"
    if [ ! -e "$work/again" ] || [ ! -s "$work/again" ] || $ESPALIER stats "$work/again" >"$work/out" 2>"$work/err" ||
        grep -q "has no iterations" "$work/err"; then
        good=$((good + 1))
    else
        cat "$work/err"
    fi
done
check "after each of ten kills the recording can be read" [ $good -eq 10 ]

# While one program records to a file, a second program must be refused, and the first program must continue.
$ESPALIER generate -p "$prompt" -n 700 --threads 1 --record "$work/two" >"$work/first" 2>"$work/first.err" &
pid=$!
until [ "$(grep -c iteration "$work/two" 2>/dev/null)" -gt 3 ] 2>/dev/null; do continue; done
kill -STOP $pid
check "a second program that records to the same file is refused" fails 1 "$work/two: another session records to it" \
    $gen -p "$prompt" --record "$work/two" --force
kill -CONT $pid
wait $pid
check "the program that recorded first succeeds" [ $? -eq 0 -a ! -s "$work/first.err" ]
check "the recording of the first program is complete" sh -c "$ESPALIER stats '$work/two' >/dev/null &&
    tail -n 1 '$work/two' | grep -q '\"type\":\"end\"'"
$gen -p "$prompt" --record "$work/two" --force >"$work/out" 2>"$work/err"
check "after the first program has ended, a second can record to the same file" [ $? -eq 0 -a ! -s "$work/err" ]
check "a recording is readable by its owner only" [ "$(stat -c %a "$work/two")" = 600 ]
finish
