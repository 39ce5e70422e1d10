#!/bin/sh
# Tests `espalier train selector`, which makes a selector for drafter nde. Training that was
# interrupted and started again must make the same selector as uninterrupted training. Each
# error message must be one sentence.
. tests/shell.sh
cp -r engine/models/fairytale-target "$work/target"
rm -f "$work/target"/nde-*
draft=engine/models/fairytale-draft
models="--target $work/target --draft $draft"
nde="$ESPALIER generate $models -p Once -n 24 --drafter nde --temp 0.6 --seed 3"
printf '%s\n' 'There was once a king who had three sons. The eldest was strong, the second was clever, and of the
youngest nobody said anything at all, until one day an old woman came to the castle and asked for bread and a
place to sleep. Nobody would let her in but him.' >"$work/text"
train="$ESPALIER train selector $models --text $work/text --context 200 --epochs 2 --seed 5 --threads 1"

$nde --verifier nss >"$work/out" 2>"$work/err"
check "drafter nde is refused without a selector" test $? -eq 1 -a ! -s "$work/out"
check "the message says how to make a selector" grep -q 'train selector --target .* --draft .* --verifier nss --goal speed --text' "$work/err"

$train --verifier nss --pieces 2 --json >"$work/json" 2>"$work/err"
check "training a selector succeeds without messages" test $? -eq 0 -a ! -s "$work/err"
file=$work/target/nde-nss.safetensors
cp "$file" "$work/whole"
size=$(wc -c <"$work/target/nde-nss.samples")
for part in 3 8; do
    rm "$file"
    truncate -s $((size * part / 10)) "$work/target/nde-nss.samples"
    $train --verifier nss --pieces 2 --json >/dev/null 2>"$work/err"
    check "training that continues from $part tenths of the samples makes the same file" cmp -s "$file" "$work/whole"
done
$train --verifier nss --pieces 1 --seed 6 2>"$work/err" >/dev/null
check "samples that were made with other settings are refused" test $? -eq 1 -a "$(grep -c 'a different file with -o' "$work/err")" = 1

$nde --verifier nss --json >"$work/json" 2>"$work/err"
check "drafter nde generates text with the selector" grep -q '"drafter":.*"nde"' "$work/json"
$nde --verifier nss >"$work/one"
$nde --verifier nss >"$work/two"
check "the same seed gives the same text" cmp -s "$work/one" "$work/two"
$nde --verifier khisti >/dev/null 2>"$work/err"
check "a selector is used only with its verifier" test $? -eq 1 -a "$(grep -c 'verifier khisti' "$work/err")" = 1
$nde --temp 0 >"$work/greedy"
$ESPALIER generate $models -p Once -n 24 --drafter ar >"$work/plain"
check "at temperature 0 the text equals the text of plain decoding" cmp -s "$work/greedy" "$work/plain"
printf x >"$file"
$nde --verifier nss >/dev/null 2>"$work/err"
check "a damaged selector gives an error message of one line" test $? -eq 1 -a "$(wc -l <"$work/err")" = 1

$ESPALIER train selector $models --verifier nss --pieces 1 >/dev/null 2>"$work/err"
check "training without --text gives a message that names --text" test $? -eq 1 -a "$(grep -c -e '--text' "$work/err")" = 1
$train --verifier greedy >/dev/null 2>"$work/err"
check "a verifier that cannot have a selector is refused" test $? -eq 1 -a "$(grep -c "for verifier 'greedy'" "$work/err")" = 1
$ESPALIER train bread >/dev/null 2>"$work/err"
check "an unknown kind of training is refused" test $? -eq 2
. tests/letters.sh
mkdir "$work/hybrid" && cp tests/vectors/logits/qwen3-5/*.json tests/vectors/logits/qwen3-5/*.safetensors "$work/hybrid"
tokenizer >"$work/hybrid/tokenizer.json"
$ESPALIER quantize "$work/hybrid" "$work/hybrid.gguf" --type q4_0 >/dev/null 2>&1
pair="--target $work/hybrid --draft $work/hybrid.gguf"
check "a selector is trained for a pair with recurrent layers" $ESPALIER train selector $pair --verifier nss \
    --text README.md --context 120 --epochs 1 --seed 5 --threads 1 --pieces 2 --json
check "drafter nde generates text with the selector for recurrent layers" sh -c \
    "$ESPALIER generate $pair -p Once -n 24 --drafter nde --verifier nss --temp 0.6 --seed 3 --json | grep -q '\"drafter\":.*\"nde\"'"
full() { (ulimit -f 1; exec $train --verifier nss --pieces 2 --json -o "$work/full.safetensors"); }
check "train selector reports a full disk, with the reason" fails 1 "full.*samples cannot be written: File too large" full
finish
