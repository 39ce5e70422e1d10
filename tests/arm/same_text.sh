#!/bin/sh
# The ARM program ($ESPALIER, in an emulator) must print the same output as the native program ($NATIVE): for every type of
# weights, the same tokens and trees, and probabilities that are equal to the last bit. It must also write the same files.
. tests/shell.sh

# On some x86 processors, the tile unit (AMX) sums the products of BF16 weights in a different order. So this test runs the
# native program without the tile unit.
native_isa=
! "$NATIVE" list backends | grep -q AMX || native_isa=vnni

# run HOW PROGRAM ARGUMENT...: runs the program in an empty state folder. Writes its output to $work/HOW,
# without the values that depend on time or memory.
run() {
    how=$1
    shift
    rm -rf "$work/state"
    isa=
    [ $how = arm ] || isa=$native_isa
    ESPALIER_ISA=$isa XDG_STATE_HOME=$work/state "$@" 2>&1 |
        sed -e '/"seconds":/,/}/d' -e '/"tokens_per_second"\|"peak_bytes"/d' >"$work/$how"
}

# same WHAT ARGUMENT...: both programs must print the same output. `generate` needs a --seed here,
# because with a seed, a run does not use what earlier runs have learned.
same() {
    what=$1
    shift
    run native "$NATIVE" "$@"
    run arm "$ESPALIER" "$@"
    check "the native program prints output for $what" grep -q "${want-"generated_tokens\":	$tokens,"}" "$work/native"
    check "both programs print the same output for $what" cmp -s "$work/native" "$work/arm"
    cmp -s "$work/native" "$work/arm" || diff "$work/native" "$work/arm" | head -n 10
}

types='bf16 f32 q8_0 q4_k'
[ -z "${ARM_QUICK-}" ] || types='bf16 q4_k'

tokens=16
for type in $types; do
    for model in target draft; do
        for how in native arm; do
            program=$NATIVE
            [ $how = native ] || program=$ESPALIER
            "$program" quantize engine/models/fairytale-$model "$work/$how-$model.gguf" --type $type --force \
                >"$work/log" 2>&1 || cat "$work/log"
        done
        check "both programs write the same file for the $model quantised to $type" cmp "$work/native-$model.gguf" "$work/arm-$model.gguf"
    done
    pair="--target $work/native-target.gguf --draft $work/native-draft.gguf"
    gen="generate $pair -p Once_upon_a_time -n $tokens --seed 7 --json"
    same "greedy text of $type" $gen --drafter dynatree
    same "sampled text of $type" $gen --drafter iid:K=2,L=4 --verifier traversal --temp 0.6
    same "$type with --exact" $gen --drafter fixed:D=4,B=2 --exact
done

# Tests drafters that do not depend on measured times, with several verifiers.
gen="generate -p The_king -n $tokens --seed 3 --json $pair"
for drafter in ar linear:K=4 suffix sequoia salf; do
    same "drafter $drafter" $gen --drafter $drafter
done
same "dyspec with swor" $gen --drafter dyspec --verifier swor --temp 0.6
same "dynatree with nss" $gen --drafter dynatree --verifier nss --temp 0.6 --top-p 0.9
same "delayed with specinfer" $gen --drafter delayed --verifier specinfer --temp 1
# Drafters that depend on measured times draft different trees, but write the same greedy text.
for drafter in goodput nde; do
    run native "$NATIVE" generate -p The_king -n $tokens $pair --drafter $drafter
    run arm "$ESPALIER" generate -p The_king -n $tokens $pair --drafter $drafter
    check "$drafter writes text" test -s "$work/native"
    check "$drafter writes the same text on both processors" cmp -s "$work/native" "$work/arm"
done
want=perplexity
printf 'Once upon a time there was a king who had a daughter.\n' >"$work/text"
same "the perplexity of a text" inspect "$work/native-target.gguf" --perplexity "$work/text"
finish
