#!/bin/sh
# An enlarged target must give the same text as the original, whether it was enlarged in memory or
# written as a folder. A folder must be written completely or not at all.
. tests/shell.sh
prompt="Once upon a time there was"
text() { $ESPALIER generate -p "$prompt" -n 12 "$@"; }

text --drafter ar >"$work/small"
text --drafter linear:K=3 --width 2 --layers 7 >"$work/large"
check "a target enlarged in memory writes the same text as the original" cmp "$work/small" "$work/large"
text --drafter ar --width 2 --layers 7 --json >"$work/json"
check "the name of an enlarged target shows how it was enlarged" grep -q '"target":.*x2, 7 layers' "$work/json"
check "a width that is not a power of two is refused" fails 1 'not 3' \
    $ESPALIER generate -p "$prompt" --width 3
check "fewer layers than the model has are refused" fails 1 'layers' \
    $ESPALIER generate -p "$prompt" --layers 1

inflate="$ESPALIER inflate engine/models/fairytale-target"
check "inflate writes a folder" $inflate "$work/folder" --width 2 --layers 7
check "inflate leaves no file beside the folder that it writes" test "$(echo "$work"/folder*)" = "$work/folder"
text --drafter linear:K=3 --target "$work/folder" --draft engine/models/fairytale-draft >"$work/large"
check "a target enlarged as a folder gives the same text as the original" cmp "$work/small" "$work/large"
large="$inflate $work/x --width 4 --layers 60" # this would take gigabytes
check "Ctrl-C leaves no file behind" ends INT 130 "interrupted: .*/x was not written" "$work/x" $large
check "SIGTERM leaves no file behind" ends TERM 143 "SIGTERM: .*/x was not written" "$work/x" $large
check "SIGHUP leaves no file behind" ends HUP 129 "SIGHUP: .*/x was not written" "$work/x" $large
full() { (ulimit -f 1000; exec $large); }
check "inflate reports a full disk and gives the reason" fails 1 "cannot write .*/model.safetensors: File too large" full
check "if the disk is full, inflate leaves no file behind" test "$(echo "$work"/x*)" = "$work/x*"
finish
