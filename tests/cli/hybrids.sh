#!/bin/sh
# Models with recurrent layers (tests/vectors/logits), as target and as draft: every drafter with every verifier gives
# the text of plain decoding; windows, limits of memory and chats, too.
. tests/shell.sh
. tests/letters.sh

generate() {
    model=$1
    shift
    $ESPALIER generate -p "A tree that grows on a wall" -n 60 --temp 0 --backend cpu --context 120 --ignore-eos \
        --target "$model" "$@"
}
drafters=$($ESPALIER list drafters | sed -n 's/^\([a-z][a-z0-9-]*\) .*/\1/p')
verifiers=$($ESPALIER list verifiers | sed -n 's/^\([a-z][a-z0-9-]*\) .*/\1/p')

for family in lfm2 qwen3-5 granite-hybrid; do
    model=$work/$family
    mkdir "$model" && cp tests/vectors/logits/$family/* "$model" && tokenizer >"$model/tokenizer.json"
    rm -f "$model/generation_config.json"
    sed -i "s/\"eos_token_id\": 2/\"eos_token_id\": 96/" "$model/config.json"
    check "$family: 4 bits are written" $ESPALIER quantize "$model" "$work/$family.gguf" --type q4_0 >/dev/null 2>&1
    draft=$work/$family.gguf
    check "$family: what a checkpoint takes is said" sh -c \
        "$ESPALIER inspect '$model' --backend cpu | grep -q '[23] of [345] layers; 8 checkpoints of their states, 0.0 MB each'"
    plain=$(generate "$model" --drafter ar)
    check "$family: there is text" test ${#plain} -ge 40
    for drafter in $drafters; do
        case $drafter in nde) continue ;; esac # it needs a selector
        for verifier in auto $verifiers; do
            text=$(generate "$model" --draft "$draft" --drafter "$drafter" --verifier "$verifier" 2>"$work/err") ||
                test "$verifier" = auto || continue # a pair that espalier refuses
            check "$family: $drafter with $verifier gives the text of plain decoding" test "$text" = "$plain"
        done
    done
    for drafter in dynatree:cache=rebuild linear:cache=rebuild fixed:root=draft; do
        check "$family: $drafter, too" \
            test "$(generate "$model" --draft "$draft" --drafter $drafter)" = "$plain"
    done
    check "$family: sampled text, too, follows from the seed alone" \
        test "$(generate "$model" --temp 0.9 --seed 3 --drafter ngram)" = \
        "$(generate "$model" --temp 0.9 --seed 3 --drafter ngram --threads 1)"
    window="--window 24 --sinks 3"
    plain=$(generate "$model" $window --drafter ar)
    check "$family: a window gives the same with trees" \
        test "$(generate "$model" $window --draft "$draft" --drafter dynatree)" = "$plain"
    check "$family: why it has no own copy is said" fails 1 "recurrent layers" generate "$model" --draft self
    check "$family: why it is not made larger is said" fails 1 "recurrent layers" \
        $ESPALIER inflate "$model" "$work/$family-wide" --width 2
    check "$family: what CUDA lacks is said" fails 1 "backend cuda cannot compute a model with recurrent layers" \
        env ESPALIER_CUDA_PLUGIN="$BUILD/emu/libespalier-cuda.so" \
        $ESPALIER generate -p A -n 2 --backend cuda --context 60 --target "$model"
done

# Draft and target need not be of one kind.
plain=$(generate "$work/qwen3-5" --drafter ar)
check "LFM2 drafts for Qwen3.5" test "$(generate "$work/qwen3-5" --draft "$work/lfm2" --drafter dynatree)" = "$plain"
finish
