#!/bin/sh
# A draft with another vocabulary must not change the text. The commands must say how many tokens
# the vocabularies share.
. tests/shell.sh
target=engine/models/fairytale-target
draft=engine/models/fairytale-draft
other="$work/models/other"
gen="$ESPALIER generate -p Once -n 60 --target $target --seed 3"

# In this draft the end-of-text token has another name, and the target's last token is missing.
mkdir -p "$other" && cp "$draft"/* "$other"
sed -i 's/"<|endoftext|>"/"<|end|>"/g; s/"Ġcamp"/"Ġcamq"/; s/, "Ġc amp"//' "$other/tokenizer.json"
check "the draft of this test has another vocabulary" sh -c "! cmp -s '$draft/tokenizer.json' '$other/tokenizer.json'"

$ESPALIER inspect "$target" "$other" >"$work/out"
check "inspect says how many tokens the vocabularies share" \
    grep -q "a different vocabulary, with 4095 of the target's 4096 tokens and 100.0 %" "$work/out"
$ESPALIER inspect "$target" "$other" --json >"$work/out"
check "inspect --json says that the vocabularies differ" grep -q '"other_vocabulary":	true' "$work/out"
ESPALIER_MODELS="$work/models" $ESPALIER list models fairytale-target >"$work/out"
check "list models says how well a draft with another vocabulary will work" grep -q "fits as a draft: another vocabulary with 409[45] of the target's 4096 tokens, 100 % .*nearly as good" "$work/out"
ESPALIER_MODELS="$work/models" $ESPALIER list models fairytale-target --json >"$work/out"
check "list models --json has the number of shared tokens" grep -q '"shared_tokens":	409[45]' "$work/out"

$gen --drafter ar >"$work/plain"
for drafter in linear:K=4 dynatree goodput hybrid; do
    $gen --draft "$other" --drafter "$drafter" >"$work/out"
    check "drafter $drafter with another vocabulary gives the same text as plain decoding" cmp -s "$work/plain" "$work/out"
done
$gen --draft "$other" --drafter linear:K=4 --json >"$work/out"
check "with another vocabulary, some drafted tokens are accepted" sh -c "! grep -q '\"accepted_nodes\":	0,' '$work/out'"
$ESPALIER check --target "$target" --draft "$other" --drafter iid --verifier traversal --trials 20 >"$work/out"
check "espalier check passes with another vocabulary" test $? = 0

# A token id for which the model has no row must give an error.
cp "$draft/tokenizer.json" "$other" && sed -i 's/"<|endoftext|>": *0/"<|endoftext|>":900000/; s/"id": *0/"id":900000/' "$other/tokenizer.json"
check "a draft is refused if its tokenizer has a token for which the model has no row" fails 1 "tokens up to 900000" $gen --draft "$other"
check "train selector needs a draft with the target's vocabulary" sh -c "cp '$draft/tokenizer.json' '$other' &&
    sed -i 's/\"<|endoftext|>\"/\"<|end|>\"/g' '$other/tokenizer.json' &&
    ! $ESPALIER train selector --target '$target' --draft '$other' --verifier nss --text tests/prompts.txt -o '$work/x' 2>'$work/err' &&
    grep -q 'with the same vocabulary' '$work/err'"
finish
