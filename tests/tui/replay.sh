#!/bin/sh
# Replays a recorded session as text, with scripts, and with keys in a terminal. Also tests files
# that are not recordings.
. tests/shell.sh
. tests/script.sh
. tests/terminal.sh

recording=$work/king.esp.jsonl
prompt='Once upon a time there was a king who had three sons,'
$ESPALIER generate -p "$prompt" -n 60 --temp 0.7 --seed 3 --baseline --record "$recording" \
    >"$work/text" 2>/dev/null
check "a session is recorded" [ -s "$recording" ]

# ---- a live session and its replay must show the same frames, at every stop of step mode and
# at every marker
body() { # FILE: prints the screen without the header, because only the live header shows that a recording is being made
    sed -e 1d "$1" | head -n 47
}
instructions="size 120x50
wait
type :record $work/live.esp.jsonl
key Enter
wait
type :set n=20
key Enter
wait
key F5
type $prompt
key Enter
wait"
stops=45
for stop in $(seq $stops); do
    instructions="$instructions
dump $work/live-$stop
key Space
wait"
done
instructions="$instructions
key F5
wait"
for mark in $(seq 6); do
    instructions="$instructions
type :mark number $mark
key Enter
wait
dump $work/marked-$mark
key Enter
wait"
    [ $mark = 3 ] && instructions="$instructions
type :drafter linear:K=4
key Enter
wait"
done
play "$instructions
type :record
key Enter
wait" --temp 0.6 --drafter dynatree
check "a live session is recorded" [ -s "$work/live.esp.jsonl" ]
instructions="size 120x50"
for stop in $(seq 60); do
    instructions="$instructions
key .
dump $work/step-$stop"
done
play "$instructions" replay "$work/live.esp.jsonl"
iteration_of() {
    sed -n '1s/.*step mode, iter \([0-9]*\).*/\1/p' "$1"
}
same_steps() { # compares all stops except those in the last iteration, which shows times because F5 ended step mode
    step=0
    last=$(iteration_of "$work/live-$stops")
    for stop in $(seq $stops); do
        step=$((step + 1))
        [ "$(iteration_of "$work/live-$stop")" = "$last" ] && break
        grep -q ', step [0-9]* of ' "$work/step-$step" || step=$((step + 1))
        body "$work/live-$stop" >"$work/want"
        body "$work/step-$step" | diff "$work/want" - || return 1
    done
    [ $step -gt 25 ]
}
check "at every stop of step mode, the replay looks like the live session" same_steps
instructions="size 120x50"
for mark in $(seq 6); do
    instructions="$instructions
key ]
dump $work/again-$mark"
done
play "$instructions
key [ [
dump $work/back-4" replay "$work/live.esp.jsonl"
same_marks() {
    for mark in $(seq 6); do
        body "$work/marked-$mark" >"$work/want"
        body "$work/again-$mark" | cmp "$work/want" - || return 1
    done
}
check "at every marker, the replay looks like the live session" same_marks
check "the text of a marker is shown" sh -c "grep -q 'marker: number 5' '$work/again-5'"
check "going back to a marker gives the same screen" sh -c "body() { sed -e 1d \"\$1\" | head -n 47; }
    body '$work/back-4' >'$work/want'; body '$work/again-4' | cmp -s - '$work/want'"

iterations=$(grep -c '"type":"iteration"' "$recording")
last=$((iterations - 1))
half=$((iterations / 2 - 1))

# ---- a copy of the program without model files must replay a recording
cp "$ESPALIER" "$work/alone"
alone() {
    ESPALIER_DATA=$work/nowhere "$work/alone" "$@"
}
check "a program without models cannot generate" fails 1 'model pair was not found' alone generate -p Once -n 1
check "a program without models replays a recording as text" sh -c "ESPALIER_DATA=$work/nowhere $work/alone replay $recording \
    --plain | grep -q '^--- iteration 3 of'"
printf '%s\n' 'size 100x30' 'key G' "dump $work/screen" >"$work/script"
ESPALIER_SCRIPT=$work/script alone replay "$recording" >/dev/null
check "a program without models replays a recording on the screen" dumped '^end of recording'

# ---- replay as text
escape=$(printf '\033')
plain() {
    $ESPALIER replay "$recording" --plain "$@" >"$work/plain" 2>"$work/err" </dev/null
}
in_plain() {
    grep -q -e "$1" "$work/plain"
}
squeezed() { # prints the text pane of the last iteration, without frame and spaces
    sed -n "/^--- iteration $last of/,\$p" "$1" | sed -e 1,3d -e 's/^│ //' -e 's/ *│.*//' |
        sed -n '1,/^[├└]/p' | sed '$d' | tr -d ' \n'
}
same_text() {
    printf '%s' "$prompt" | cat - "$work/text" | tr -d ' \n' >"$work/want"
    squeezed "$work/plain" >"$work/got"
    grep -qF "$(tail -c 100 "$work/got")" "$work/want"
}
check "plain: replay succeeds" plain
check "plain: there is a frame for the start and for each iteration" \
    [ "$(grep -c '^---' "$work/plain")" = $((iterations + 1)) ]
check "plain: the last frame is printed" in_plain "^--- iteration $last of $last, "
check "plain: there are no escape codes" sh -c "! grep -q '$escape' '$work/plain'"
check "plain: nothing is printed on standard error" [ ! -s "$work/err" ]
check "plain: the tree is shown" in_plain '[├└]─ "'
check "plain: the text is complete" same_text
check "plain: no line is missing" \
    [ "$(wc -l <"$work/plain")" = $((23 * (iterations + 1))) ]
cp "$work/plain" "$work/first"
plain
check "plain: a second run prints the same text" cmp -s "$work/plain" "$work/first"
plain --ascii
check "plain --ascii: there is no byte above 127" [ -z "$(tr -d '\000-\177' <"$work/plain")" ]
check "plain: if the disk is full, an error message is printed" sh -c "$ESPALIER replay '$recording' --plain 2>&1 >/dev/full |
    grep -q 'standard output could not be written'"
check "plain: a closed pipe ends the output" \
    sh -c "$ESPALIER replay '$recording' --plain 2>&1 | head -n 1 | grep -q '^--- start'"

# ---- replay controlled by scripts
play "size 120x36
$dump" replay "$recording"
check "driven by a script, a replay is paused at the start" dumped "^paused   start, $iterations iterations"
play "size 120x36
key Right Right Right Left
$dump" replay "$recording"
check "Right moves by an iteration" dumped "^paused   iter 1/$last "
play "size 120x36
key > > <
$dump" replay "$recording"
check "the key < moves back by an iteration" dumped "^paused   iter 0/$last "
play "size 120x36
key Right . .
$dump" replay "$recording"
check "the dot moves by a draft pass or stage" dumped "^paused   iter 1/$last, step 2 of"
check "the dot shows the tree after that draft pass or stage" dumped 'tree   iter 1: draft'
play "size 120x36
key Right . . , ,
$dump" replay "$recording"
check "the comma moves back by a draft pass or stage" dumped "^paused   iter 0/$last "
play "size 120x36
key 5
$dump" replay "$recording"
check "a digit moves to that tenth of the recording, so 5 moves to the middle" dumped "iter $half/$last   5: g goes there"
play "size 120x36
key Space $(echo "$last" | sed 's/./& /g') g
$dump" replay "$recording"
check "after a jump to the end during playback, the replay stays there" dumped "^end of recording   iter $last/$last "
play "size 120x36
key 1 2 g
$dump" replay "$recording"
check "a number followed by g moves to the iteration with this number" dumped "^paused   iter 12/$last "
play "size 120x36
type :seek 7
key Enter
$dump" replay "$recording"
check ":seek moves to an iteration" dumped "^paused   iter 7/$last "
play "size 120x36
key G Left g
$dump" replay "$recording"
check "g alone moves to the start" dumped '^paused   start'
play "size 120x36
key End
$dump" replay "$recording"
check "the end of the recording is shown" dumped "^end of recording   iter $last/$last "
play "size 120x36
key + + + + + + Space
wait
$dump" replay "$recording"
check "playback runs to the end" dumped "^end of recording   iter $last/$last   16x"
play "size 120x36
key F6
$dump
key F6 - - - -
dump $work/slow" replay "$recording"
check "F6 plays at the recorded speed" dumped 'as recorded'
check "- plays slower" grep -q ' 0.25x ' "$work/slow"
play "size 120x36
key /
type KING who
key Enter
$dump" replay "$recording"
check "a search with a capital letter is case-sensitive" dumped "'KING who' is not in the recorded"
play "size 120x36
key /
type king who
key Enter
$dump" replay "$recording"
check "a search finds words of the prompt" dumped "'king who' in the prompt"
play "size 120x36
key ]
$dump" replay "$recording"
check "a message says that the recording has no markers" dumped 'the recording has no markers'
for command in :temp=1 ':drafter ar' :clear :edit :step ':break path 2' ':seek x' ':seek 99999' \
    ':speed 17' ':idle -1'; do
    play "size 120x36
type $command
key Enter
$dump" replay "$recording"
    check "$command is refused" dumped 'needs models, and a replay has none\|takes'
done
play "size 120x36
type zzz
paste nor does a paste
key Enter
$dump" replay "$recording"
check "in a replay, typed text is not sent as a prompt" dumped '^paused'
play "size 100x50
type :
key Tab
$dump" replay "$recording"
check "completion offers commands of a replay" dumped '│ seek '
check "completion offers no commands that need models" sh -c "! grep -q '│ temp ' '$work/screen'"

play "size 120x100
key F1
$dump" replay "$recording"
for key in $(sed -n 's/.*"\([^" ]*\)", REPLAY.*/\1/p' tui/view/keys.def); do
    check "help names the key $key" dumped "^│   .*$(printf %s "$key" | sed 's/[].[]/\\&/') .*  "
done
check "help has the commands of a replay" dumped '^│   speed NUMBER'
check "help has no commands that need models" sh -c "! grep -q ':clear\|M-e' '$work/screen'"

# The screen must depend only on the position in the recording, not on how the position was reached.
play "size 120x50
type :seek $half
key Enter
dump $work/there
key G 1 9 . . , g
type :seek $half
key Enter
dump $work/again" replay "$recording"
check "seeking back and forth gives the same screen" cmp -s "$work/there" "$work/again"

# ---- files that are not recordings
refused() { # PATTERN FILE: replay must refuse FILE, as text and on a screen, with a message with PATTERN
    fails 1 "$1" $ESPALIER replay "$2" --plain &&
        ESPALIER_SCRIPT=$work/script fails 1 "$1" $ESPALIER replay "$2"
}
check "a file that does not exist is refused" refused 'none.jsonl' "$work/none.jsonl"
check "a folder is refused as a recording" refused 'not a regular file' "$work"
: >"$work/empty"
check "an empty file is refused" refused 'empty' "$work/empty"
head -c 4096 /dev/urandom >"$work/noise"
check "random bytes are refused" refused 'noise' "$work/noise"
echo '{"format":"espalier-session","version":"9.0"}' >"$work/newer"
check "a newer format is refused" refused '9' "$work/newer"
sed '5s/"depth":1/"depth":77/' "$recording" >"$work/wrong"
check "an impossible tree is refused" refused 'line 5' "$work/wrong"
check "replay without a file is refused" fails 2 'try espalier replay --help' $ESPALIER replay
check "an invalid speed is refused" fails 1 "'fast'" $ESPALIER replay "$recording" --speed fast
head -c -20 "$recording" >"$work/cut"
check "an incomplete last line is ignored" \
    sh -c "$ESPALIER replay '$work/cut' --plain 2>'$work/err' | grep -q '^--- iteration 5 '"
told() { # FILE: succeeds if a message says that the file ends early
    grep -q "^espalier: $1 ends early, as after a crash; it has [0-9]* iterations\$" "$work/err"
}
check "a warning says that a recording with an incomplete last line ends early" told "$work/cut"
head -n 7 "$recording" >"$work/killed"
$ESPALIER replay "$work/killed" --plain >/dev/null 2>"$work/err"
check "a warning says that a recording without the end of a generation ends early" told "$work/killed"
$ESPALIER export "$work/killed" --iteration 2 --format txt >"$work/tree" 2>"$work/err"
check "export prints the warning about a truncated recording" told "$work/killed"
check "export writes the last iteration of a truncated recording" grep -q '^iteration 2, ' "$work/tree"
$ESPALIER stats "$work/killed" >/dev/null 2>"$work/err"
check "stats prints the warning about a truncated recording" told "$work/killed"
$ESPALIER export "$work/cut" --asciicast "$work/cut.cast" 2>"$work/err"
check "an asciicast prints the warning about a truncated recording" told "$work/cut"
play "size 120x36
$dump
key G
$dump-2" replay "$work/killed"
check "the replay shows the warning at the start" dumped 'the recording ends early, as after a crash; it has 5 iterations'
check "the replay shows the warning at the end" grep -q '^cut off here   iter 4/4' "$work/screen-2"
$ESPALIER replay "$recording" --plain >/dev/null 2>"$work/err"
check "replaying a complete recording prints no warning" [ ! -s "$work/err" ]
play "size 120x36
key x
$dump" replay "$recording"
check "x needs a focused pane" dumped 'focus a pane with Tab'
check "a message says that a replay needs a terminal" fails 1 'needs a terminal' $ESPALIER replay "$recording"

# Control characters in the texts of tokens must not reach the terminal.
sed 's/"text":" the"/"text":"\\u001b]0;evil\\u0007\\u001b[2J\\u202e"/g' "$recording" \
    >"$work/hostile"
$ESPALIER replay "$work/hostile" --plain >"$work/plain" 2>&1
check "control characters of tokens are printed in a visible form" in_plain '\^\[\]0;evil\^G'
check "no escape code of a token is printed" sh -c "! grep -q '$escape' '$work/plain'"

# ---- replay controlled by keys in a terminal
open 100x30
run replay "$recording"
check "playback starts by itself" see '^playing   iter [0-9]'
keys Space
check "Space pauses" see '^paused   iter'
keys 0
check "0 moves to the start" see '^paused   start'
keys 1 0 g
check "10g moves to iteration 10" see "^paused   iter 10/$last "
keys Right
check "Right moves to the next iteration" see "^paused   iter 11/$last "
keys F1
check "F1 lists the keys of a replay" see 'In a replay'
keys F1 Space
check "Space continues playback" see '^playing'
keys C-c
check "C-c pauses" see '^paused .*'
$terminal resize-window -t main -x 60 -y 20
check "a smaller screen is drawn" see '^└─\{58\}┘$'
keys G
check "the end of the recording is shown" see "^end of recording   iter $last/$last"
keys Space
check "Space at the end starts again" see '^playing   iter [0-9]'
keys q
check "q restores the terminal" left 0

finish
