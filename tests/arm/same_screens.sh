#!/bin/sh
# The ARM program ($ESPALIER, in an emulator) must draw the same screens as the native program ($NATIVE). This test steps
# through recorded sessions and compares the screens after each of twelve steps.
. tests/shell.sh
. tests/script.sh
arm=$ESPALIER
instructions='size 120x40'
for stop in $(seq 12); do
    instructions="$instructions
key .
dump $work/HOW-$stop"
done

for recording in delayed dynatree-adapting traversal-sampling; do
    for how in native arm; do
        ESPALIER=$arm
        [ $how = arm ] || ESPALIER=$NATIVE
        play "$(printf '%s\n' "$instructions" | sed "s/HOW/$how/")" replay "sessions/samples/$recording.esp.jsonl"
        check "the replay of $recording on $how succeeds" test $? -eq 0
    done
    for stop in $(seq 12); do
        check "the screen of $recording at stop $stop shows an iteration" grep -q iter "$work/native-$stop"
        check "the screen of $recording at stop $stop is the same on both processors" cmp -s "$work/native-$stop" "$work/arm-$stop"
        cmp -s "$work/native-$stop" "$work/arm-$stop" || diff "$work/native-$stop" "$work/arm-$stop" | head -n 6
    done
    rm -f "$work"/native-* "$work"/arm-*
done
finish
