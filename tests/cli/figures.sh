#!/bin/sh
# Tests tests/figures/run, which makes all tables and figures of the papers. To be fast, this test generates
# only a few tokens for each table and figure.
. tests/shell.sh
count=$(ls sessions/suites/*.suite | wc -l)
# The test uses the built-in draft model instead of every draft head.
mkdir "$work/heads"
for head in $(sed -n 's/^vary *draft //p' sessions/suites/*.suite); do
    ln -sfn "$PWD/engine/models/fairytale-draft" "$work/heads/$head"
done
HEADS=$work/heads ESPALIER=$ESPALIER BUILD=$BUILD MAKE=$MAKE tests/figures/run --short "$work/figures" >"$work/said" 2>"$work/err"
check "tests/figures/run succeeds without messages" test $? -eq 0 -a ! -s "$work/err"
[ -s "$work/err" ] && head -n 3 "$work/err"
check "tests/figures/run writes a table for every suite" test "$(ls "$work"/figures/*.md | wc -l)" = "$count"
check "every table is also written as CSV and JSON" test "$(ls "$work"/figures/*.csv "$work"/figures/*.json | wc -l)" = $((2 * count + 1))
check "every 'plot' line of a suite makes a picture" test "$(ls "$work"/figures/*.svg | wc -l)" = \
    "$(cat sessions/suites/*.suite | grep -c '^plot ')"
check "every table has rows" sh -c "for file in '$work'/figures/*.csv; do [ \$(wc -l <\$file) -gt 2 ] || exit 1; done"
check "tests/figures/run measures the times of attention" sh -c "grep -q '^64,256,hpd,' '$work/figures/attention.csv'"
for suite in sessions/suites/*.suite; do
    check "$suite has a title and a source" sh -c "grep -q '^title ' '$suite' && grep -q '^source .*\(table\|figure\)' '$suite'"
done
finish
