#!/bin/sh
# `espalier sessions verify` must generate the tokens of a session again with the same models. The
# draft can be the target's own copy, a model with another vocabulary or a draft head, and the
# target can have recurrent layers. Missing models must be reported in one sentence.
. tests/shell.sh
. tests/script.sh
. tests/letters.sh
export XDG_STATE_HOME="$work/state"
sessions="$ESPALIER sessions"

# keeps COUNT OPTION...: runs the program with these options, which stores session number COUNT.
# Checks that the session contains the text and that verify reproduces the text.
keeps() {
    count=$1
    shift
    play "size 80x24
type A tree
key Enter
wait
key Enter
wait" --no-config --seed 1 -n 12 "$@"
    $sessions show $count >"$work/show" && grep -q '[0-9] tokens of its own' "$work/show" &&
        $sessions verify $count >"$work/verify" 2>&1 &&
        grep -q "^session $count: 2 generations gave the same tokens$" "$work/verify" && return
    cat "$work/err" "$work/show" "$work/verify"
    return 1
}

# small FOLDER: copies a model folder from tests/vectors, and adds a tokenizer to the copy.
small() {
    to=$work/$(basename "$1")
    mkdir "$to" && cp "$1"/* "$to" && tokenizer >"$to/tokenizer.json"
    rm -f "$to/generation_config.json"
    sed -i 's/"eos_token_id": 2/"eos_token_id": 96/' "$to/config.json"
}

check "a session with the target's own copy is reproduced" keeps 1 --draft self --temp 0
check "a sampled session with the target's own copy is reproduced" keeps 2 --draft self:q8_0 --temp 0.8 --drafter fixed

target=engine/models/fairytale-target
mkdir "$work/other" && cp engine/models/fairytale-draft/* "$work/other"
sed -i 's/"<|endoftext|>"/"<|end|>"/g; s/"Ġcamp"/"Ġcamq"/; s/, "Ġc amp"//' "$work/other/tokenizer.json"
check "a session with a draft of another vocabulary is reproduced" keeps 3 --target $target --draft "$work/other" --temp 0
check "a sampled session with a draft of another vocabulary is reproduced" keeps 4 --target $target --draft "$work/other" --temp 0.8 --drafter fixed

small tests/vectors/heads/target
for head in eagle eagle3; do
    cp -r tests/vectors/heads/$head "$work"
done
check "a session with a draft head is reproduced" keeps 5 --target "$work/target" --draft "$work/eagle" --temp 0 --drafter dynatree
check "a sampled session with a draft head that reads three layers is reproduced" \
    keeps 6 --target "$work/target" --draft "$work/eagle3" --temp 0.8 --drafter fixed

small tests/vectors/logits/qwen3-5
check "a session of a target with recurrent layers is reproduced" keeps 7 --target "$work/qwen3-5" --draft "$work/qwen3-5" --temp 0 --drafter dynatree
check "a sampled session of a target with recurrent layers is reproduced" keeps 8 --target "$work/qwen3-5" --draft none --temp 0.8 --drafter ngram

check "a session is reproduced even if the draft is now a copy of the target" $sessions verify 7 --draft self:q4_0
check "models with another vocabulary are refused" fails 1 "session 5 has a different vocabulary from these models" \
    $sessions verify 5 --target $target
mv "$work/eagle" "$work/away"
check "sessions verify reports that the draft head is missing" fails 1 "eagle" $sessions verify 5
finish
