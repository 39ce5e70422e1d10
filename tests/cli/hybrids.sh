#!/bin/sh
# Tests models with recurrent layers (tests/vectors/logits), as target and as draft. Every drafter
# with every verifier must give the text of plain decoding, also in a window, with ranks and on a
# GPU.
. tests/shell.sh
. tests/letters.sh

generate() {
    model=$1
    shift
    $ESPALIER generate -p "A tree that grows on a wall" -n 60 --temp 0 --backend cpu --context 120 --ignore-eos \
        --target "$model" "$@"
}
on_gpu() { # MODEL OPTION...: prints the text that MODEL generates on a GPU
    model=$1
    shift
    ESPALIER_CUDA_PLUGIN="${ESPALIER_CUDA_PLUGIN:-$BUILD/emu/libespalier-cuda.so}" $ESPALIER generate -n 12 --temp 0 \
        -p "A tree that grows on a wall" --backend cuda --exact --context 60 --ignore-eos --target "$model" "$@"
}
# check_gpu FAMILY MODEL FILE: on a GPU, a tree must give the text of plain decoding, both for the
# folder MODEL and for FILE, the 4-bit file made from it.
check_gpu() {
    test "${ESPALIER_CUDA_PLUGIN:-}" = none && return
    for own in "$2" "$3"; do
        plain=$(on_gpu "$own" --drafter ar)
        check "$1: plain decoding on a GPU writes text" test ${#plain} -ge 8
        check "$1: a tree on a GPU gives the text of plain decoding" \
            test "$(on_gpu "$own" --draft "$3" --drafter dynatree)" = "$plain"
        test "$own" = "$3" && continue # a copy of the 4-bit file would not be smaller
        check "$1: a copy of the target on a GPU gives the text of plain decoding" \
            test "$(on_gpu "$own" --draft self:q4_0 --drafter dynatree)" = "$plain"
    done
}
iterations() { figure iterations /dev/stdin; }
figure() { sed -n "s/^.*\"$1\":[^0-9]*\([0-9]*\).*/\1/p" "$2"; } # NAME FILE: prints the number after this JSON key
drafters=$($ESPALIER list drafters | sed -n 's/^\([a-z][a-z0-9-]*\) .*/\1/p')
verifiers=$($ESPALIER list verifiers | sed -n 's/^\([a-z][a-z0-9-]*\) .*/\1/p')

for family in lfm2 qwen3-5 granite-hybrid; do
    model=$work/$family
    mkdir "$model" && cp tests/vectors/logits/$family/* "$model" && tokenizer >"$model/tokenizer.json"
    rm -f "$model/generation_config.json"
    sed -i "s/\"eos_token_id\": 2/\"eos_token_id\": 96/" "$model/config.json"
    check "$family: a 4-bit file is written" $ESPALIER quantize "$model" "$work/$family.gguf" --type q4_0 >/dev/null 2>&1
    draft=$work/$family.gguf
    check "$family: inspect prints the size of a checkpoint" sh -c \
        "$ESPALIER inspect '$model' --backend cpu | grep -q '[23] of [345] layers; 8 checkpoints of their states, 0.0 MB each'"
    plain=$(generate "$model" --drafter ar)
    check "$family: plain decoding writes text" test ${#plain} -ge 40
    for drafter in $drafters; do
        case $drafter in nde) continue ;; esac # nde needs a selector
        for verifier in auto $verifiers; do
            text=$(generate "$model" --draft "$draft" --drafter "$drafter" --verifier "$verifier" 2>"$work/err") ||
                test "$verifier" = auto || continue # this drafter cannot be used with this verifier
            check "$family: $drafter with $verifier gives the text of plain decoding" test "$text" = "$plain"
        done
    done
    generate "$model" --draft "$draft" --drafter dynatree --json >"$work/json"
    $ESPALIER inspect "$model" --backend cpu --json >"$work/inspected"
    passes=$(($(figure iterations "$work/json") * $(figure state_bytes "$work/inspected")))
    check "$family: a pass over a tree reads the recurrent states once" test "$(figure state_bytes_read "$work/json")" = "$passes"
    written=$(($(figure state_bytes_written "$work/json") / $(figure state_bytes "$work/inspected")))
    check "$family: generating 60 tokens writes the states at most 8 times" test "$written" -ge 1 -a "$written" -le 8
    check "$family: copying the states for each row would move more than twice the bytes that passes read" test "$(figure state_bytes_copies "$work/json")" -gt $((2 * passes))
    for drafter in dynatree:cache=rebuild linear:cache=rebuild fixed:root=draft; do
        check "$family: $drafter gives the text of plain decoding" \
            test "$(generate "$model" --draft "$draft" --drafter $drafter)" = "$plain"
    done
    check "$family: sampled text does not depend on the number of threads" \
        test "$(generate "$model" --temp 0.9 --seed 3 --drafter ngram)" = \
        "$(generate "$model" --temp 0.9 --seed 3 --drafter ngram --threads 1)"
    for drafter in linear:K=4 dynatree goodput fixed:root=draft dynatree:cache=rebuild; do
        check "$family: $drafter with a copy of the target gives the text of plain decoding" \
            test "$(generate "$model" --draft self:q4_0 --drafter $drafter)" = "$plain"
    done
    check "$family: the target accepts many drafts of its quantised copy" test \
        "$(generate "$model" --draft self:q8_0 --drafter linear:K=4 --json | iterations)" -lt 30
    check "$family: a copy of the target on two ranks gives the text of plain decoding" \
        test "$(generate "$model" --draft self:q4_0 --drafter dynatree --ranks 2 --ranks-whole none)" = "$plain"
    window="--window 24 --sinks 3"
    plain=$(generate "$model" $window --drafter ar)
    check "$family: in a window, trees give the text of plain decoding" \
        test "$(generate "$model" $window --draft "$draft" --drafter dynatree)" = "$plain"
    check "$family: in a window, trees with ranks give the text of plain decoding" \
        test "$(generate "$model" $window --draft "$draft" --drafter dynatree --ranks 2 --ranks-whole none)" = "$plain"
    check "$family: in a window, a copy of the target gives the text of plain decoding" \
        test "$(generate "$model" $window --draft self:q4_0 --drafter dynatree)" = "$plain"
    check "$family: inflate makes the model wider and deeper" $ESPALIER inflate "$model" "$work/$family-wide" --width 2 --layers 8
    check "$family: in the enlarged model, a tree gives the text of plain decoding" \
        test "$(generate "$work/$family-wide" --draft "$draft" --drafter dynatree)" = "$(generate "$work/$family-wide" --drafter ar)"
    check_gpu "$family" "$model" "$draft"
done

check "a GGUF file in which heads have a different order cannot be enlarged" fails 1 "order of GGUF files; enlarge the model folder" \
    generate "$work/qwen3-5.gguf" --width 2

# These families are similar to the families above. A few drafters are enough, because families.sh tests chains and GGUF files.
for family in qwen3-next nemotron-h nemotron-h-moe lfm2-moe; do
    model=$work/$family
    mkdir "$model" && cp tests/vectors/logits/$family/* "$model" && tokenizer >"$model/tokenizer.json"
    rm -f "$model/generation_config.json"
    sed -i "s/\"eos_token_id\": 2/\"eos_token_id\": 96/" "$model/config.json"
    check "$family: a 4-bit file is written" $ESPALIER quantize "$model" "$work/$family.gguf" --type q4_0 >/dev/null 2>&1
    plain=$(generate "$model" --drafter ar)
    check "$family: plain decoding writes text" test ${#plain} -ge 40
    for drafter in dynatree delayed suffix recycle dynatree:cache=rebuild; do
        check "$family: $drafter gives the text of plain decoding" \
            test "$(generate "$model" --draft "$work/$family.gguf" --drafter "$drafter")" = "$plain"
    done
    check "$family: a drafter does not change the text that the 4-bit file generates" \
        test "$(generate "$work/$family.gguf" --drafter ar)" = "$(generate "$work/$family.gguf" --drafter suffix)"
    check_gpu "$family" "$model" "$work/$family.gguf"
done

test "${ESPALIER_CUDA_PLUGIN:-}" = none ||
    check "a model with recurrent layers cannot be divided among several GPUs" fails 1 "several GPUs cannot divide a model with recurrent layers" \
        env ESPALIER_EMU_DEVICES=2 ESPALIER_CUDA_PLUGIN="${ESPALIER_CUDA_PLUGIN:-$BUILD/emu/libespalier-cuda.so}" \
        $ESPALIER generate -p A -n 2 --backend cuda --ranks 2 --context 60 --target "$work/lfm2"

# If the target's files contain an MTP layer, this layer must draft by default, and also if --draft names it.
own=$work/mtp
mkdir "$own" && cp tests/vectors/heads/mtp-qwen3-5/* "$own" && tokenizer >"$own/tokenizer.json"
sed -i "s/\"eos_token_id\": 2/\"eos_token_id\": 96/" "$own/config.json"
drafts() { generate "$own" "$@" --json | sed -n 's/.*"draft":[^a-z"]*"\{0,1\}\([a-z]*\).*/\1/p' | head -n 1; }
plain=$(generate "$own" --draft none)
check "an MTP layer drafts if no draft is named" test "$(drafts)" = mtp
check "the MTP layer does not draft with --draft none" test "$(drafts --draft none)" = null
check "the MTP layer does not draft with a memory limit" test "$(drafts --memory 2G)" = null
for drafter in auto linear dynatree:cache=rebuild eagle2; do
    check "drafter $drafter with the MTP layer gives the text of plain decoding" \
        test "$(generate "$own" --draft mtp --drafter $drafter)" = "$plain"
done
generate "$own" --draft mtp --stats >"$work/text" 2>"$work/stats"
check "statistics name the MTP layer" grep -q "^draft  *mtp, the target's MTP layer: [0-9.]* MB of BF16" "$work/stats"
window="--window 24 --sinks 3"
check "in a window, trees of the MTP layer give the text of plain decoding" test "$(generate "$own" $window --drafter ar)" = \
    "$(generate "$own" $window --draft mtp --drafter dynatree)"
$ESPALIER list models "$own" >"$work/list"
check "the list of models shows the MTP layer" grep -q '^mtp .* MB  qwen3_5_text BF16  *its MTP layer' "$work/list"
check "the list of models says that the MTP layer fits as a draft" sh -c "grep -A 2 '^mtp ' '$work/list' | grep -q 'fits as a draft'"
check "for a model without an MTP layer, the list of models does not show mtp" sh -c "! $ESPALIER list models '$work/qwen3-5' | grep -q '^mtp '"
check "inspect names the MTP layer" sh -c "$ESPALIER inspect '$own' --backend cpu | grep -q 'MTP layer .*--draft mtp'"
check "inspect says that the target and its MTP layer fit" sh -c \
    "$ESPALIER inspect '$own' mtp --backend cpu | grep -q 'pair fits  *yes: vocabulary and hidden states'"
next=$work/mtp-next
mkdir "$next" && cp tests/vectors/heads/mtp-qwen3-next/* "$next" && tokenizer >"$next/tokenizer.json"
sed -i "s/\"eos_token_id\": 2/\"eos_token_id\": 96/" "$next/config.json"
check "Qwen3-Next's MTP layer drafts if no draft is named" test "$(own=$next && drafts)" = mtp
check "drafts of Qwen3-Next's MTP layer do not change the text" test "$(generate "$next" --drafter dynatree)" = "$(generate "$next" --draft none)"
check "quantising keeps Qwen3-Next's MTP layer" $ESPALIER quantize "$next" "$work/next.gguf" --type q8_0 >/dev/null 2>&1
check "the quantised MTP layer drafts" test "$(own=$work/next.gguf && drafts)" = mtp
check "inspect names the quantised MTP layer" sh -c "$ESPALIER inspect '$work/next.gguf' --backend cpu | grep -q 'MTP layer .*--draft mtp'"
check "drafts of the quantised MTP layer do not change the text" \
    test "$(generate "$work/next.gguf" --drafter dynatree)" = "$(generate "$work/next.gguf" --draft none)"
check "--draft mtp is refused for a model without an MTP layer, and the error names the model" fails 1 "qwen3-5 has no MTP layer" generate "$work/qwen3-5" --draft mtp
check "quantising keeps the MTP layer" sh -c "$ESPALIER quantize '$own' '$work/whole.gguf' --type q8_0 | grep -q '^MTP layer '"
check "inspect names the MTP layer of the quantised file" sh -c "$ESPALIER inspect '$work/whole.gguf' --backend cpu | grep -q 'MTP layer .*--draft mtp'"
check "the MTP layer of the quantised file drafts" test "$(own=$work/whole.gguf && drafts)" = mtp
check "drafts of the quantised MTP layer do not change the text" test "$(generate "$work/whole.gguf" --draft mtp --drafter dynatree)" = \
    "$(generate "$work/whole.gguf" --draft none)"
check "a quantised file with an MTP layer can be quantised again" $ESPALIER quantize "$work/whole.gguf" "$work/again.gguf" --type q4_0 >/dev/null
check "a file that was quantised twice has an MTP layer that can draft" test "$(own=$work/again.gguf && drafts)" = mtp
without=$work/without
mkdir "$without" && cp "$own"/* "$without" && LC_ALL=C sed -i 's/"mtp\./"mtx./g' "$without/model.safetensors"
check "a model without an MTP layer can be quantised" $ESPALIER quantize "$without" "$work/mtp.gguf" --type q8_0 >/dev/null 2>&1
check "the quantised file of a model without an MTP layer has no MTP layer" test "$(own=$work/mtp.gguf && drafts)" = null
plain8=$(generate "$work/mtp.gguf" --draft none)
cp tests/vectors/gguf/mtp-qwen3-5-alone.gguf "$work/mtp-other.gguf"
printf GGUF >"$work/mtp-a.gguf"
check "an MTP layer in a separate file drafts for a GGUF file in the same folder" test "$(own=$work/mtp.gguf && drafts)" = mtp
check "drafts of an MTP layer in a separate file do not change the text" test "$(generate "$work/mtp.gguf" --draft mtp --drafter dynatree)" = "$plain8"
check "if --draft names the file of an MTP layer, its drafts do not change the text" test "$(generate "$work/mtp.gguf" --draft "$work/mtp-other.gguf" --drafter linear)" = "$plain8"
check "the list of models shows the MTP layer in the separate file" sh -c "$ESPALIER list models '$work/mtp.gguf' | grep -A 2 '^mtp ' | grep -q 'fits as a draft'"
check "an MTP file alone is refused as a target" fails 1 "mtp-other.gguf is a draft head (mtp) and needs a target" \
    generate "$work/mtp-other.gguf"
LC_ALL=C sed -i 's/mtp\.norm\.weight/mtp.form.weight/' "$own/model.safetensors"
check "a damaged MTP layer is refused" fails 1 "tensor mtp.norm.weight of shape (32) is missing" generate "$own"
check "with --draft none, a damaged MTP layer does no harm" test "$(generate "$own" --draft none)" = "$plain"

# Draft and target can belong to different families.
plain=$(generate "$work/qwen3-5" --drafter ar)
check "drafts of an LFM2 model do not change the text of a Qwen3.5 model" test "$(generate "$work/qwen3-5" --draft "$work/lfm2" --drafter dynatree)" = "$plain"
finish
