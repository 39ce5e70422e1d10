#!/bin/sh
# Presses every pair of keys. The keys are function keys, special keys, and letters with C- or M-. Keys
# that leave the interface are not pressed. The interface must keep running. tests/unit/input.c tests the
# input line with more keys.
. tests/shell.sh
. tests/script.sh
ESPALIER=$(cd "$(dirname "$ESPALIER")" && pwd)/$(basename "$ESPALIER")

awk 'BEGIN {
    for (c = 97; c <= 122; c++) {
        name = sprintf("%c", c)
        if (name != "c" && name != "d") keys[n++] = "C-" name
        keys[n++] = "M-" name
    }
    count = split("C-] C-_ M-. M-_ M-< M-> M-[ M-] M-0 M-9 M-- M-? M-* M-C-h M-Backspace F1 F2 F3 F4 F5 F6 F7 F8 " \
        "F9 F11 F12 Up Down Left Right Home End PgUp PgDn Ins Del Tab S-Tab Esc Enter Backspace", more, " ")
    for (i = 1; i <= count; i++) keys[n++] = more[i]
    for (i = 0; i < n; i++)
        for (k = 0; k < n; k++)
            print "key " keys[i] " " keys[k] " Esc C-g\ntype :x"
}' >"$work/pairs"
lines=$(wc -l <"$work/pairs")

check "more than ten thousand keys are pressed" [ "$lines" -gt 10000 ]
goes_on() {
    cd "$work" || return 1 # some keys write files
    play "size 90x30
wait
$(cat "$work/pairs")
$dump" -n 4 --no-config && dumped 'espalier'
}
check "the interface survives every pair of keys" goes_on
play "size 80x24
wait
key C-r C-x a
$dump"
check "C-r C-x a leaves the input line empty" dumped '^> *$'
play "size 80x24
wait
type some words
key C-r C-x a C-s C-x C-r M-3 C-x C-g
$dump"
check "other key sequences that begin with a prefix leave the line unchanged" dumped '^> some words'
finish
