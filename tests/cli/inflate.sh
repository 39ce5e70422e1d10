#!/bin/sh
# A target that is made larger in memory says the same.
. tests/shell.sh
prompt="Once upon a time there was"
text() { $ESPALIER generate -p "$prompt" -n 12 "$@"; }

text --drafter ar >"$work/small"
text --drafter linear:K=3 --width 2 --layers 7 >"$work/large"
check "the larger target writes the same text" cmp "$work/small" "$work/large"
text --drafter ar --width 2 --layers 7 --json >"$work/json"
check "and is named by its size" grep -q '"target":.*x2, 7 layers' "$work/json"
check "a width that is no power of two is refused" fails 1 'not 3' \
    $ESPALIER generate -p "$prompt" --width 3
check "so are fewer layers than there are" fails 1 'layers' \
    $ESPALIER generate -p "$prompt" --layers 1
finish
