#!/bin/sh
# Tests `espalier compare`, which runs two configurations on the same text.
. tests/shell.sh
prompt="Once upon a time there was"
cmp="$ESPALIER compare -n 40 -p"

value() { # KEY FILE: prints all values of a JSON key, in order
    sed -n "s/.*\"$1\":[[:space:]]*\([-0-9.e]*\),*$/\1/p" "$2"
}
$cmp "$prompt" --drafter linear --with dyspec >"$work/out" 2>"$work/err"
check "two drafters can be compared on one text" test $? -eq 0
check "the output says that the texts are identical" grep -q '^The texts are identical: 40 tokens\.$' "$work/out"
check "both drafters have a line in the table" test "$(grep -c '^linear  \|^dyspec  ' "$work/out")" -eq 2
check "the output says how many iterations each drafter took" grep -q 'iterations for the same text' "$work/out"
check "compare prints nothing on stderr" test ! -s "$work/err"

# Totals and text must be the same as in two separate runs. Because a seed is given, a run does
# not use what earlier runs have learned.
for temp in 0 0.8; do
    $cmp "$prompt" --drafter linear:K=4 --with assisted --temp $temp --seed 0 --json >"$work/both"
    check "compare --json succeeds at temperature $temp" test $? -eq 0
    $ESPALIER generate -n 40 -p "$prompt" --drafter linear:K=4 --temp $temp --seed 0 --json >"$work/one"
    check "at temperature $temp, the text is the same as in a separate run of the first side" test \
        "$(sed -n '/"text"/p;/"tokens"/p' "$work/both")" = "$(sed -n '/"text"/p;/"tokens"/p' "$work/one")"
    for key in iterations drafted_nodes accepted_nodes draft_passes target_passes; do
        check "the first side has the same $key as a separate run" test \
            "$(value $key "$work/both" | head -n 1)" = "$(value $key "$work/one")"
    done
done
check "sampled texts are not called identical" grep -q '"identical":	null' "$work/both"
$cmp "$prompt" --drafter linear:K=4 --with assisted --seed 0 --json >"$work/both"
$ESPALIER generate -n 40 -p "$prompt" --drafter assisted --seed 0 --json >"$work/two"
for key in iterations drafted_nodes accepted_nodes draft_passes target_passes; do
    check "the second side has the same $key as a separate run" test \
        "$(value $key "$work/both" | tail -n 1)" = "$(value $key "$work/two")"
done
check "greedy texts are called identical" grep -q '"identical":	true' "$work/both"

$cmp "$prompt" --drafter iid --verifier traversal --with-verifier spectr --temp 1 >"$work/out"
check "two verifiers can be compared with the same drafter" test $? -eq 0
check "the two verifiers are named in the table" grep -q '^iid spectr' "$work/out"
check "the output says that the text comes from the first side" grep -q 'the first side writes the text' "$work/out"
printf %s "$prompt" | $ESPALIER compare -n 9 --with ar >"$work/out"
check "the prompt can be read from a pipe" grep -q '9 tokens' "$work/out"

# If the text ends before the token limit, both sides must count only the tokens of the text.
for seed in 1 9; do
    $ESPALIER compare -n 400 -p "And they lived happily ever after." --temp 1 --seed $seed \
        --drafter linear --with dyspec --json >"$work/both"
    for i in 1 2; do
        value iterations "$work/both" | sed -n ${i}p >"$work/n"
        value tokens_per_iteration "$work/both" | sed -n ${i}p >"$work/each"
        check "with seed $seed, side $i counts exactly the tokens of the text" test \
            "$(paste "$work/n" "$work/each" | awk '{ printf "%.0f", $1 * $2 }')" = \
            "$(value generated_tokens "$work/both")"
    done
done

# If one side is plain decoding, it must be the baseline, with a speedup of 1.
for sides in "linear:K=4 --with ar" "ar --with linear:K=4"; do
    $cmp "$prompt" --drafter $sides --seed 0 >"$work/out"
    check "ar is the baseline in '$sides'" grep -q '^ar .* 1\.00x$' "$work/out"
done

check "without --with, compare asks for a second configuration" fails 2 '--with' $cmp "$prompt"
check "the error message names a drafter that does not exist" fails 1 "no drafter 'linaer'" \
    $cmp "$prompt" --with linaer
check "a verifier that does not fit the drafter is refused" fails 1 'naive' \
    $cmp "$prompt" --with dyspec --with-verifier naive --temp 1
check "compare --help explains --with-verifier" sh -c "$ESPALIER compare --help | grep -q 'with-verifier'"
finish
