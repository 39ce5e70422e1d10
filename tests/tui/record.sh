#!/bin/sh
# Tests recording in the interface: starting and stopping it, the sign "rec" in the header, markers, and write errors.
. tests/shell.sh
. tests/script.sh
file="$work/session.esp.jsonl"
types() { # FILE: prints the types of a recording's events, except iterations
    sed -n 's/^{"t":[^,]*,"type":"\([a-z]*\)".*/\1/p' "$1" | grep -v iteration | tr '\n' ' '
}

play "size 100x24
wait
type :record $file
key Enter
wait
$dump"
check "F9 starts a recording" dumped "recording to "
check "the header shows that a recording runs" dumped "● rec"

play "size 100x24
wait
type Once upon a time
key Enter
wait
type :record! $file
key Enter
wait
type :mark here
key Enter
type :temp 0.5
key Enter
key Enter
wait
type :clear!
key Enter
type Another
key Enter
wait
type :record
key Enter
wait
$dump
key M-m
$dump.2" -n 10
check "a second F9 ends the recording" dumped "recorded to "
check "after the second F9, the header no longer shows that a recording runs" sh -c "! grep -q '● rec' $work/screen"
check "a marker is refused if nothing is recorded" grep -q "nothing is being recorded" "$work/screen.2"
check "the file has all events in order" test \
    "$(types "$file")" = "prompt marker setting end rewind clear prompt end "
check "a recording that begins after a text contains this text" test \
    "$(sed -n 2p "$file" | grep -o '"id"' | wc -l)" -eq 14
check "a recording that begins after a text has the size of the screen" grep -q '"terminal":{"columns":100,"rows":24}' "$file"
check "markers have a text" grep -q '"type":"marker","text":"here"' "$file"

spaces='Space Space Space Space Space Space Space Space Space Space Space Space'
writing='wait
key F5
type Once upon a time
key Enter
wait
key '"$spaces $spaces"
play "size 100x24
wait
type :record $work/stopped
key Enter
$writing
type :record
key Enter F5
wait" -n 100
play "size 100x24
wait
type :record $work/left
key Enter
$writing
type :quit
key Enter" -n 100
for way in stopped left; do
    check "a recording that is $way during a generation is complete" sh -c \
        "[ -z \"\$($ESPALIER replay '$work/$way' --plain 2>&1 >/dev/null)\" ]"
done
check "a recording that is $way during a generation has iterations" grep -q '"type":"iteration"' "$work/stopped" "$work/left"

cp "$file" "$work/copy"
play "size 100x24
wait
type :record $file
key Enter
wait
$dump
type :record /dev/full
key Enter
wait
$dump.2"
check "an existing file is not overwritten" dumped "exists; give another name"
check "an existing recording is not changed" cmp -s "$file" "$work/copy"
check "a recording on a full disk gives an error message" grep -q "cannot write /dev/full" "$work/screen.2"

play "size 100x24
wait
type :record! $file
key Enter
wait
key F5
type Once upon a time
key Enter
wait
key Space
wait
type :mark in the middle
key Enter
$dump
key F5
wait
key F9
wait
" -n 10
check "in step mode a message says when the marker is set" dumped "the marker is set after this iteration"
check "in step mode the marker is set after the iteration" grep -q '"type":"marker","text":"in the middle"' "$file"

mkfifo "$work/pipe"
head -c 3000 "$work/pipe" >/dev/null &
play "size 100x24
wait
type :record $work/pipe
key Enter
wait
type Once upon a time
key Enter
wait
$dump" -n 40
wait
check "a closed pipe suspends the recording" dumped "suspended: Broken pipe"
check "the header no longer shows that a recording runs" sh -c "! grep -q '● rec' $work/screen"
check "the text is complete after the recording has ended" dumped "token limit reached"

(
    cd "$work"
    printf '%s\n' "size 100x24" wait "key F9" wait "key F9" wait >script
    case $ESPALIER in /*) ;; *) ESPALIER="$OLDPWD/$ESPALIER" ;; esac
    ESPALIER_SCRIPT=script $ESPALIER >/dev/null
)
check "F9 chooses a file name" sh -c "ls $work | grep -q '^espalier-[0-9]*-[0-9]*.esp.jsonl$'"
finish
