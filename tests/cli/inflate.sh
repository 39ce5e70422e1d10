#!/bin/sh
# A target that was enlarged, in memory or as a folder, must give the same text. A folder must be
# written completely or not at all.
. tests/shell.sh
prompt="Once upon a time there was"
text() { $ESPALIER generate -p "$prompt" -n 12 "$@"; }

text --drafter ar >"$work/small"
text --drafter linear:K=3 --width 2 --layers 7 >"$work/large"
check "the larger target writes the same text" cmp "$work/small" "$work/large"
text --drafter ar --width 2 --layers 7 --json >"$work/json"
check "the larger target's name shows the enlargement" grep -q '"target":.*x2, 7 layers' "$work/json"
check "a width that is not a power of two is refused" fails 1 'not 3' \
    $ESPALIER generate -p "$prompt" --width 3
check "fewer layers than the model has are refused" fails 1 'layers' \
    $ESPALIER generate -p "$prompt" --layers 1

inflate="$ESPALIER inflate engine/models/fairytale-target"
check "a folder is written" $inflate "$work/folder" --width 2 --layers 7
check "only the folder is written" test "$(echo "$work"/folder*)" = "$work/folder"
text --drafter linear:K=3 --target "$work/folder" --draft engine/models/fairytale-draft >"$work/large"
check "the written folder gives the same text, too" cmp "$work/small" "$work/large"
large="$inflate $work/x --width 4 --layers 60" # this would take gigabytes
check "Ctrl-C leaves no file behind" ends INT 130 "interrupted: .*/x was not written" "$work/x" $large
check "SIGTERM leaves no file behind" ends TERM 143 "SIGTERM: .*/x was not written" "$work/x" $large
check "SIGHUP leaves no file behind" ends HUP 129 "SIGHUP: .*/x was not written" "$work/x" $large
full() { (ulimit -f 1000; exec $large); }
check "a full disk is reported, with the reason" fails 1 "cannot write .*/model.safetensors: File too large" full
check "a full disk leaves no file behind" test "$(echo "$work"/x*)" = "$work/x*"
finish
