#!/bin/sh
# Tests `espalier stats`, which prints tables about a recording. The tables must agree with each other,
# and with what generate reported for the same session. An invalid file must be refused with one sentence.
. tests/shell.sh
recording=tests/cli/three.esp.jsonl
file="$work/a.esp.jsonl"

# number KEY FILE: prints the first value of a key.
number() {
    sed -n "s/.*\"$1\":[^0-9]*\([0-9.e-]*\).*/\1/p" "$2" | head -n 1
}

$ESPALIER generate -p "Once upon a time" -n 60 --drafter dynatree --record "$file" --json >"$work/live"
$ESPALIER stats "$file" --json >"$work/json"
for key in block_efficiency path_share nodes_per_tree most_nodes mask_blocks calibration_error; do
    check "stats and generate --json report the same $key" test "$(number $key "$work/json")" = "$(number $key "$work/live")" -a \
        -n "$(number $key "$work/live")"
done
check "without --explain, stats has no expected number of tokens" grep -q '"expected_tokens":	null' "$work/json"
sed -n '/"acceptance"/,$p' "$work/live" | tr -d '\t\n}' >"$work/one"
sed -n '/"acceptance"/,$p' "$work/json" | tr -d '\t\n}]' >"$work/two"
tr -d ']' <"$work/one" | cmp -s - "$work/two"
check "stats and generate --json report the same acceptance" test $? -eq 0

$ESPALIER stats "$file" >"$work/tables"
check "stats names the drafter and the verifier" grep -q "^dynatree, greedy: [0-9]* iterations$" "$work/tables"
for table in depth child q; do
    check "stats has a table of acceptance by $table" grep -q "^$table  *tried  accepted" "$work/tables"
done
check "stats and generate --json report the same numbers of nodes" grep -q \
    "^accepted nodes  *$(number accepted_nodes "$work/live") of $(number drafted_nodes "$work/live")," "$work/tables"

$ESPALIER generate -p "Once upon a time" -n 60 --temp 1 --drafter iid --verifier specinfer --explain \
    --record "$work/b.esp.jsonl" >/dev/null
$ESPALIER stats "$work/b.esp.jsonl" >"$work/tables"
check "with --explain, stats has the expected number of tokens" grep -q "^expected tokens  *[1-9]" "$work/tables"
check "with --explain, stats has the expected acceptance at each depth" test "$(grep -c '^ *[1-4]  .*%.* [01]\.[0-9]*  *[01]\.[0-9]*$' "$work/tables")" -ge 4

# Each pair of drafter and verifier must have its own tables.
sed 's/"index":1,\(.*\)"drafter":"[a-z0-9]*"/"index":1,\1"drafter":"other"/' "$recording" >"$work/c.esp.jsonl"
check "a recording with two drafters has two sets of tables" test "$($ESPALIER stats "$work/c.esp.jsonl" |
    grep -c ' iterations$')" = 2
check "stats --json of a recording with two drafters has two sets of tables" test "$($ESPALIER stats "$work/c.esp.jsonl" --json | grep -c '"acceptance"')" = 2
sed 's/"drafter":"[a-z0-9]*"/"drafter":"\\u001b[31m\\u0007x"/' "$recording" >"$work/d.esp.jsonl"
check "stats prints no control characters of the recording" [ -z "$($ESPALIER stats "$work/d.esp.jsonl" |
    LC_ALL=C tr -d '\n\040-\176')" ]

sed 's/"q":[0-9.e-]*,//g' "$recording" >"$work/f.esp.jsonl"
check "stats shows missing probabilities as a dash" sh -c \
    "$ESPALIER stats '$work/f.esp.jsonl' | grep -q '^ *1 .* - ' && ! $ESPALIER stats '$work/f.esp.jsonl' | grep -q nan"
check "in stats --json, missing probabilities are null" sh -c "$ESPALIER stats '$work/f.esp.jsonl' --json | grep -q '\"mean_q\":	null'"

head -n 2 "$recording" >"$work/e.esp.jsonl"
check "stats of a recording without iterations is refused" fails 1 "has no iterations" $ESPALIER stats "$work/e.esp.jsonl"
check "a file that is not a recording is refused" fails 1 "tests/shell.sh" $ESPALIER stats tests/shell.sh
check "a missing file is refused" fails 1 "none" $ESPALIER stats "$work/none"
$ESPALIER stats >/dev/null 2>&1
check "stats without a file is refused" test $? -eq 2
for sample in sessions/samples/*.esp.jsonl; do
    check "stats prints tables for sample $(basename "$sample")" sh -c "$ESPALIER stats '$sample' | grep -q '^path lengths'"
done
finish
