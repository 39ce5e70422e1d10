#!/bin/sh
# Tests `espalier tune`: a table that includes plain decoding, a stored preset, and error messages. Does not test speeds.
. tests/shell.sh
tune="$ESPALIER tune -n 16 --threads 1 --seconds 1"
printf 'Once upon a time\n\nThere was a king\n' >"$work/prompts"
cp -r engine/models/fairytale-target "$work/target"
draft=engine/models/fairytale-draft
models="--target $work/target --draft $draft"

# preset KEY: prints the value of the preset that `inspect` shows.
preset() { $ESPALIER inspect "$work/target" "$draft" --json | sed -n "s/.*\"$1\":[^\"]*\"\(.*\)\".*/\1/p"; }

# value KEY: prints all values of a key, in the order in which the JSON output has them.
value() { sed -n "s/.*\"$1\":[[:space:]]*//p" "$work/json" | tr -d '",' | tr '\n' ' ' | sed 's/ $//'; }

# winner N: prints the winner of the N-th contest in the output.
winner() { sed -n 's/ wins: .*//p' "$work/table" | sed -n "$1p"; }

$tune >"$work/table" 2>"$work/err"
check "tune succeeds without messages" test $? -eq 0 -a ! -s "$work/err"
check "both tables list plain decoding with speed 1.00" test \
    "$(grep -c '^ar  .* 1\.00  .* +- .* 1\.00x$' "$work/table")" = 2
check "one table is at temperature 0 and the other above it" test \
    "$(grep -o '^temperature [0-9.]*' "$work/table" | tr '\n' ' ')" = "temperature 0 temperature 0.6 "
check "each table names the winner" test "$(grep -c ' wins: ' "$work/table")" = 2
check "the winner has a row in the table" grep -q "^$(winner 1)  " "$work/table"
check "the drafter of the preset is a candidate" grep -q '^goodput' "$work/table"
check "drafters that need no draft model are candidates" grep -q '^suffix  ' "$work/table"
check "half of the candidates drop out early" test \
    "$(awk '/\+-/ { print $2 }' "$work/table" | sort -u | wc -l)" -gt 2
check "the winner has as many rounds as plain decoding" test \
    "$(awk '/^drafter/ { getline; print $2 }' "$work/table")" = "$(awk '/^ar .*\+-/ { print $2 }' "$work/table")"

before=$(preset sampling_preset)
$tune $models -f "$work/prompts" --temp 0 >"$work/table"
check "without --write the preset is unchanged" cmp -s engine/models/fairytale-target/espalier.json \
    "$work/target/espalier.json"
check "--temp 0 gives one table" test "$(grep -c ' wins: ' "$work/table")" = 1
$tune $models -f "$work/prompts" --temp 0 --write >"$work/table"
check "tune --write succeeds" test $? -eq 0
check "tune --write prints the name of the file" grep -q "$work/target/espalier.json" "$work/table"
check "inspect shows the preset" test "$(preset preset)" = "$(winner 1)"
check "the preset for sampling is unchanged" test -n "$before" -a "$(preset sampling_preset)" = "$before"
check "no temporary file is left" test "$(ls "$work/target" | grep -c espalier)" = 1

rm "$work/target/espalier.json"
$tune $models -p "Once upon a time" --temp 0.8 --write --json >"$work/json" 2>"$work/err"
check "tune --json succeeds" test $? -eq 0 -a ! -s "$work/err"
check "tune --json writes a new file" test -n "$(preset preset)" -a -n "$(preset sampling_preset)"
mkdir "$work/parsed"
cp "$work/json" "$work/parsed/config.json" # inspect reports whether the file is JSON
check "the JSON output can be parsed" sh -c "$ESPALIER inspect '$work/parsed' 2>&1 | grep -q 'config.json' &&
    ! $ESPALIER inspect '$work/parsed' 2>&1 | grep -q 'not valid JSON'"
check "the JSON output has both temperatures" test "$(value temperature)" = "0 0.8"
check "the JSON output has plain decoding at both temperatures" test "$(grep -c '"drafter":	"ar"' "$work/json")" -ge 2
check "in the JSON output, plain decoding has speed 1" test \
    "$(grep -A 8 '"drafter":	"ar",' "$work/json" | grep -c '"speedup":	1$')" = 2
check "the JSON output has the winner that was written to the file" test "$(value best)" = \
    "$(echo "$(preset preset) $(preset sampling_preset)" | tr -d ,)"
check "the JSON output has the name of the file" test "$(value written)" = "$work/target/espalier.json"

mv "$work/target/espalier.json" "$work/kept.json"
ln -s ../kept.json "$work/target/espalier.json"
$tune $models -f "$work/prompts" --temp 0 --write >"$work/table"
check "tune --write does not replace a symbolic link" test -L "$work/target/espalier.json" -a "$(preset preset)" = "$(winner 1)"

$tune --target "$work/target" -f "$work/prompts" --temp 0 >"$work/table" 2>"$work/err"
check "without a draft model the other drafters are measured" grep -q '^ngram  ' "$work/table"
check "drafters that need a draft model are left out" test "$(grep -c '^linear\|^goodput' "$work/table")" = 0
check "without a draft model --write is refused" fails 1 "a preset is for a pair" \
    $tune --target "$work/target" --write

# Ctrl-C in the first contest, after at least one complete round, must end the contest.
cp "$work/target/espalier.json" "$work/before"
$ESPALIER tune $models --threads 1 -n 16 --seconds 600 --write >"$work/table" 2>"$work/err" &
pid=$!
sleep 5
kill -INT $pid
wait $pid
check "Ctrl-C ends tune with exit code 130" test $? -eq 130
check "Ctrl-C prints the measured rows" grep -q '^ar  .* 1\.00x$' "$work/table"
check "a message says that the preset is unchanged after Ctrl-C" grep -q "interrupted; .*espalier.json is unchanged" "$work/err"
check "the preset is unchanged" cmp -s "$work/before" "$work/target/espalier.json"

# The superuser can write to every folder, so the test runs tune as another user.
chmod a-w "$work/target"
if [ "$(id -u)" != 0 ]; then
    check "tune --write refuses a folder that cannot be written" fails 1 "espalier.json cannot be written: Permission" \
        $tune $models --write
elif command -v setpriv >/dev/null && setpriv --reuid 54321 --clear-groups test -x "$ESPALIER"; then
    chmod a+rx "$work"
    check "tune --write refuses a folder that cannot be written" fails 1 "espalier.json cannot be written: Permission" \
        setpriv --reuid 54321 --clear-groups $tune $models --write
fi
chmod u+w "$work/target"

printf '\n\n' >"$work/prompts"
check "a file of prompts that has only empty lines is refused" fails 1 "no prompt" $tune -f "$work/prompts"
check "a file of prompts that does not exist is refused" fails 1 "none" $tune -f "$work/none"
check "--seconds 0 is refused" fails 1 "seconds takes" $ESPALIER tune --seconds 0
check "an unexpected argument is refused" fails 2 "unexpected argument 'linear'" $tune linear
finish
