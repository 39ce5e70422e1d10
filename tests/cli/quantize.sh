#!/bin/sh
# Tests `espalier quantize`. A file with unrounded weights must give the same text as its source. A file
# must be written completely or not at all, and its rounding error must be printed.
. tests/shell.sh
target=engine/models/fairytale-target
draft=engine/models/fairytale-draft
q="$ESPALIER quantize"
text() { $ESPALIER generate -p "Once upon a time" -n 24 --temp 0 --drafter "$1" --target "$2" --draft "$3"; }

check "quantize converts the target to a GGUF file" $q $target "$work/t.gguf" --type bf16 >"$work/said"
check "with --type bf16 nothing is rounded, so the printed loss is 0" grep -q '^loss  *0\.00 %' "$work/said"
check "quantize accepts the name of a built-in model" sh -c "$q fairytale-target '$work/named.gguf' --type bf16 >/dev/null &&
    cmp '$work/t.gguf' '$work/named.gguf'"
check "quantize refuses a model name that it does not know" fails 1 "nomodel" $q nomodel "$work/none.gguf" --type q8_0
check "quantize accepts a type in upper case" $q $draft "$work/d.gguf" --type BF16 >/dev/null
check "the GGUF files give the same text as the model folders" test "$(text dynatree "$work/t.gguf" "$work/d.gguf")" = "$(text dynatree $target $draft)"
check "a GGUF file as target works with a model folder as draft" test "$(text linear "$work/t.gguf" $draft)" = "$(text linear $target $draft)"
check "the GGUF file contains the preset of the model" sh -c "$ESPALIER inspect $work/t.gguf $work/d.gguf | grep -q '^preset  *goodput'"
printf '{"drafter": "linear:K=3"}' >"$work/t.espalier.json"
check "a file espalier.json beside the GGUF file overrides the preset in it" \
    sh -c "$ESPALIER inspect $work/t.gguf $work/d.gguf | grep -q '^preset  *linear:K=3'"
check "quantize accepts a GGUF file as its source" $q "$work/t.gguf" "$work/again.gguf" --type bf16 >/dev/null
check "the copy of a GGUF file writes the same text" test "$(text ar "$work/again.gguf" "")" = "$(text ar $target "")"

check "quantize writes a file of type q4_k" $q $target "$work/q4.gguf" --type q4_k >"$work/said"
check "quantize prints the loss of q4_k" grep -q '^loss  *[1-9][.][0-9]* % .*; most in blk\.' "$work/said"
check "--width 1 does not change the text of a quantised model" test "$($ESPALIER generate -p "Once upon a time" -n 24 --temp 0 --drafter ar \
    --target "$work/q4.gguf" --width 1)" = "$(text ar "$work/q4.gguf" "")"
check "--width is refused for a quantised model" fails 1 "Q4_K\|Q6_K" $ESPALIER generate -p Once -n 4 --target "$work/q4.gguf" --width 2
check "quantize prints the number of bits per weight" grep -q ' [45][.][0-9]* bits per number' "$work/said"

touch "$work/there"
check "an existing file is not overwritten" fails 1 "already exists" $q $target "$work/there" --type q8_0
check "a refused quantize leaves the existing file unchanged" test ! -s "$work/there"
check "--force overwrites an existing file" $q $target "$work/there" --type q8_0 --force >/dev/null
check "an unknown type is refused" fails 1 "the types are q8_0, q6_k" $q $target "$work/x.gguf" --type q2
check "a missing type is refused" fails 2 "name a type" $q $target "$work/x.gguf"
check "a source that does not exist is refused" fails 1 "none" $q "$work/none" "$work/x.gguf" --type q8_0
mkdir "$work/bad" && cp $draft/* "$work/bad" && rm "$work/bad/tokenizer.json"
mkdir "$work/phi3-mine" && cp $draft/* "$work/phi3-mine"
check "quantize changes a model name in the file if llama.cpp would mistake the model for Phi-3" sh -c "$q '$work/phi3-mine' '$work/phi.gguf' --type q8_0 >/dev/null &&
    grep -aq phi_3-mine '$work/phi.gguf'"
check "a folder without a tokenizer is refused" fails 1 "tokenizer.json" $q "$work/bad" "$work/x.gguf" --type q8_0
check "the output cannot be a device" fails 1 "not a regular file" $q $target /dev/full --type q8_0 --force
full() { (ulimit -f 1000; trap '' XFSZ; exec $q $target "$work/x.gguf" --type q8_0); }
check "a full disk is reported by quantize" fails 1 "cannot be written" full
check "the message about a full disk gives the reason" grep -q "File too large" "$work/err"
full() { (ulimit -f 1000; exec $q $target "$work/x.gguf" --type q8_0); }
check "quantize reports a file that exceeds the size limit" fails 1 "cannot be written: File too large" full
check "after a full disk, quantize leaves no file" test -z "$(ls "$work" | grep '^x\|[.][0-9]')"
check "inflate accepts only folders" fails 1 "only a model folder" $ESPALIER inflate "$work/t.gguf" "$work/wide"

# If a signal arrives while the file is written, the command must leave no file.
$ESPALIER inflate $target "$work/large" --width 2 --layers 8
check "Ctrl-C leaves no file" ends INT 130 "interrupted: .*/x.gguf was not written" "$work/x" $q "$work/large" "$work/x.gguf" --type q4_k
check "SIGTERM leaves no file" ends TERM 143 "SIGTERM: .*/x.gguf was not written" "$work/x" $q "$work/large" "$work/x.gguf" --type q4_k
check "SIGHUP leaves no file" ends HUP 129 "SIGHUP: .*/x.gguf was not written" "$work/x" $q "$work/large" "$work/x.gguf" --type q4_k
echo precious >"$work/y.gguf" && chmod 600 "$work/y.gguf"
check "with --force, Ctrl-C leaves no temporary file" ends INT 130 "y.gguf was not written" "$work/y.gguf." $q "$work/large" "$work/y.gguf" --type q4_k --force
check "an interrupted quantize --force keeps the existing file" grep -q precious "$work/y.gguf"
$q $target "$work/y.gguf" --type q8_0 --force >/dev/null
check "an existing file keeps its permissions when it is replaced" test "$(stat -c %a "$work/y.gguf")" = 600
esc=$(printf 'x\033[31m\nforged')
check "a message shows control characters of a file name in printable form" ends INT 130 'x^\[\[31m^Jforged was not written' "$work/x" $q "$work/large" "$work/$esc" --type q4_k
(trap '' HUP; exec $q "$work/large" "$work/z.gguf" --type bf16) >"$work/out" 2>&1 &
while kill -0 $! && [ "$(echo "$work"/z*)" = "$work/z*" ]; do :; done
kill -s HUP $!
wait $!
check "under nohup, quantize ignores SIGHUP and writes the whole file" test $? -eq 0 -a -s "$work/z.gguf"
rm -r "$work/large"

head -c 12000 README.md >"$work/text"
check "inspect --perplexity succeeds" $ESPALIER inspect $target --perplexity "$work/text" >"$work/said"
check "inspect --perplexity prints the perplexity with its error" grep -q '^perplexity  *[0-9.]* +- [0-9.]* on [0-9]* tokens' "$work/said"
a=$($ESPALIER inspect $target --perplexity "$work/text" --json | sed -n 's/.*"value":[[:space:]]*\([0-9.]*\).*/\1/p')
b=$($ESPALIER inspect "$work/t.gguf" --perplexity "$work/text" --json | sed -n 's/.*"value":[[:space:]]*\([0-9.]*\).*/\1/p')
check "the GGUF file and the folder have the same perplexity ($a, $b)" test -n "$a" -a "$a" = "$b"
check "inspect --perplexity refuses a text that is too short" fails 1 "at least 4" $ESPALIER inspect $target --perplexity /dev/null
check "inspect --perplexity refuses a text file that does not exist" fails 1 "none" $ESPALIER inspect $target --perplexity "$work/none"
finish
