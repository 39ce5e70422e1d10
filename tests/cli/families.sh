#!/bin/sh
# Tests every model family that has a model in tests/vectors. Drafters must not change the text.
# This is tested with the model's folder and with the GGUF file made from it.
. tests/shell.sh
. tests/letters.sh

text() {
    $ESPALIER generate -p "A tree that grows on a wall" -n 48 --temp 0 --ignore-eos --backend cpu --exact --context 100 \
        --drafter "$1" --target "$2" --draft "$3"
}

for family in mistral-window qwen3-window llama-yarn gemma2 gemma3 phi3-short phi3-partial olmo2 smollm3 gpt2 granite qwen3-moe gpt-oss \
    lfm2 qwen3-5 qwen3-5-moe granite-hybrid qwen3-next nemotron-h nemotron-h-moe lfm2-moe; do
    model=$work/$family
    mkdir "$model" && cp tests/vectors/logits/$family/* "$model" && tokenizer >"$model/tokenizer.json"
    rm -f "$model/generation_config.json"
    sed -i "s/\"eos_token_id\": 2/\"eos_token_id\": 96/" "$model/config.json"
    kind=$(sed -n 's/.*"model_type": "\(.*\)".*/\1/p' "$model/config.json")
    check "$family: inspect says $kind" sh -c "$ESPALIER inspect '$model' | grep -q '$kind'"
    plain=$(text ar "$model" "")
    check "$family: plain decoding writes text" test ${#plain} -ge 40
    check "$family: decoding with trees gives the same text as plain decoding" test "$(text dynatree "$model" "$model")" = "$plain"
    check "$family: decoding with chains gives the same text as plain decoding" test "$(text linear "$model" "$model")" = "$plain"
    case $family in
    qwen3-window | phi3-short)
        check "$family: conversion to GGUF is refused" fails 1 "GGUF\|longrope" \
            $ESPALIER quantize "$model" "$work/$family.gguf" --type f32
        ;;
    *)
        check "$family: a GGUF file is written" \
            $ESPALIER quantize "$model" "$work/$family.gguf" --type f32 >/dev/null 2>"$work/err"
        case $family in
        mistral-window) check "$family: a message says that llama.cpp ignores the window" grep -q "llama.cpp has no window" "$work/err" ;;
        *) check "$family: writing the GGUF file prints no message" test ! -s "$work/err" ;;
        esac
        check "$family: the GGUF file gives the same text as the folder" test "$(text dynatree "$work/$family.gguf" "$model")" = "$plain"
        check "$family: the GGUF file can be quantised to 8 bits" \
            $ESPALIER quantize "$work/$family.gguf" "$work/$family-8.gguf" --type q8_0 >/dev/null 2>&1
        check "$family: drafts of the 8-bit copy do not change the text" test "$(text dynatree "$model" "$work/$family-8.gguf")" = "$plain"
        ;;
    esac
done

# A GGUF file cannot express which layers of these models have windows. The error message must say so.
for family in gemma3-layers smollm3-window; do
    check "$family: conversion to GGUF is refused with the reason" fails 1 "cannot say which layers" \
        $ESPALIER quantize tests/vectors/logits/$family "$work/$family.gguf" --type f32
done

# The CUDA backend, here on the emulator, must also compute mixtures of experts. In exact mode,
# decoding with trees must give the same text as plain decoding.
export ESPALIER_CUDA_PLUGIN="$BUILD/emu/libespalier-cuda.so"
for family in qwen3-moe gpt-oss; do
    mixture="$ESPALIER generate -p A -n 12 --temp 0 --context 100 --backend cuda --exact --target $work/$family"
    $mixture --drafter ar >"$work/plain" 2>"$work/err"
    check "$family: a GPU writes text" test -s "$work/plain"
    $mixture --drafter dynatree --draft "$work/$family" >"$work/out" 2>>"$work/err"
    check "$family: on the GPU, decoding with trees gives the same text as plain decoding" cmp -s "$work/out" "$work/plain"
    check "$family: the mixture of experts does not fall back to the CPU" test ! -s "$work/err"
done

# MTP layers must also draft on the CUDA backend, by default or if --draft names them.
for family in mtp-mimo mtp-qwen3-5; do
    own=$work/$family
    mkdir "$own" && cp tests/vectors/heads/$family/* "$own" && tokenizer >"$own/tokenizer.json"
    gpu="$ESPALIER generate -p A -n 24 --temp 0 --ignore-eos --context 100 --backend cuda --exact --target $own"
    $gpu --draft none >"$work/plain" 2>"$work/err"
    check "$family: a GPU writes text" test -s "$work/plain"
    $gpu --drafter dynatree --draft mtp --json >"$work/json" 2>>"$work/err"
    check "$family: the MTP layer drafts on a GPU" grep -q '"drafted_nodes":[^0-9]*[1-9]' "$work/json"
    $gpu --drafter dynatree --draft mtp >"$work/out" 2>>"$work/err"
    check "$family: drafts of the MTP layer on a GPU do not change the text" cmp -s "$work/out" "$work/plain"
    $gpu --stats >"$work/out" 2>"$work/stats"
    check "$family: the MTP layer drafts on a GPU if no draft is named" grep -q "^draft  *mtp, the target's MTP layer" "$work/stats"
    check "$family: the MTP layer does not fall back to the CPU" test ! -s "$work/err"
done
finish
