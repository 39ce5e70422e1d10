#!/bin/sh
# generate --record as its users see it: the text is the same, the file has all of it, and whatever
# happens to the file never ends the generation.
. tests/shell.sh
prompt="Once upon a time"
gen="$ESPALIER generate -n 48 --temp 0.7 --seed 5"
file="$work/a.esp.jsonl"

$gen -p "$prompt" --json >"$work/json"
$gen -p "$prompt" >"$work/text"
$gen -p "$prompt" --record "$file" >"$work/out" 2>"$work/err"
code=$?
check "recording succeeds and says nothing" test $code -eq 0 -a ! -s "$work/err"
check "it does not change the text" cmp -s "$work/text" "$work/out"
check "the first line is a header" sh -c \
    "head -n 1 $file | grep -q '^{\"format\":\"espalier-session\",\"version\":\"1.0\",'"
check "each iteration is a line" test "$(grep -c '"type":"iteration"' "$file")" -eq \
    "$(sed -n 's/.*"iterations":[^0-9]*\([0-9]*\).*/\1/p' "$work/json")"
check "the prompt is there" grep -q '"type":"prompt","tokens":.*"text":"Once"' "$file"
check "and the end" sh -c "tail -n 1 $file | grep -q '\"type\":\"end\",\"text\":\"length\"'"

cp "$file" "$work/copy"
check "a file is not overwritten" fails 1 "exists.*--force" $gen -p "$prompt" --record "$file"
check "and stays as it was" cmp -s "$file" "$work/copy"
$gen -p "Another" --record "$file" --force >/dev/null
check "with --force it is" sh -c "! cmp -s $file $work/copy"
check "a folder that is not there is named" fails 1 "nowhere/a.esp.jsonl" \
    $gen -p "$prompt" --record "$work/nowhere/a.esp.jsonl"
check "a full disk is told at once" fails 1 "No space left" $gen -p "$prompt" --record /dev/full

(
    ulimit -f 8
    $gen -p "$prompt" --record "$work/small" >"$work/out" 2>"$work/err"
)
code=$?
check "where the disk gets full later the text is still written" cmp -s "$work/text" "$work/out"
check "and the user is told, once" test $code -eq 1 -a "$(grep -c suspended "$work/err")" -eq 1
check "what was recorded ends with a line" test "$(tail -c 1 "$work/small" | wc -l)" -eq 1

mkfifo "$work/pipe"
head -c 3000 "$work/pipe" >/dev/null &
until $gen -p "$prompt" --record "$work/pipe" >"$work/out" 2>"$work/err" || grep -q suspended "$work/err"; do
    continue # the reader is not there yet
done
check "a pipe that is closed ends nothing" cmp -s "$work/text" "$work/out"
check "and the user is told" grep -q "suspended: Broken pipe" "$work/err"
wait

$ESPALIER generate -p "$prompt" -n 700 --threads 1 --record "$work/killed" >"$work/out" &
pid=$!
until [ "$(grep -c iteration "$work/killed" 2>/dev/null)" -gt 3 ] 2>/dev/null; do continue; done
kill -9 $pid
wait $pid 2>/dev/null
sed '$d' "$work/killed" | tail -n +2 >"$work/whole"
check "a killed program leaves whole lines, but for the last" test \
    "$(grep -c '^{"t":[0-9.e-]*,"type":"[a-z]*",.*}$' "$work/whole")" -eq "$(wc -l <"$work/whole")"
finish
