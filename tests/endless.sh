#!/bin/sh
# Tests very long texts with an attention window (--window). `make check` does not run this script, because it takes long.
# Each drafter writes 100,000 tokens with the built-in pair. All drafters must write the same text. At the end of the run,
# a drafter must use at most 1 MB more memory than after a fifth of the run. $ESPALIER is the program; the arguments are
# drafters.
ESPALIER=${ESPALIER:-build/espalier} tokens=${TOKENS:-100000} window=${WINDOW:-250}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
[ $# -gt 0 ] || set -- suffix goodput dynatree linear ar
first=$1
for drafter; do
    "$ESPALIER" generate -p "Once upon a time there was" -n "$tokens" --window "$window" --drafter "$drafter" \
        --seed 1 --stats >"$work/$drafter" 2>"$work/stats" &
    program=$!
    : >"$work/kilobytes"
    while sleep 0.2 && kill -0 $program 2>/dev/null; do
        awk '/^VmRSS/ { print $2 }' /proc/$program/status >>"$work/kilobytes" 2>/dev/null
    done
    wait $program || failed=1
    awk -v drafter="$drafter" '{ kilobytes[NR] = $1 }
        END { early = kilobytes[int(NR / 5) + 1]
            printf "%-10s %d kB at a fifth, %d kB at the end: %+d kB\n", drafter, early, $1, $1 - early
            exit $1 - early > 1024 }' "$work/kilobytes" || failed=1
    grep '^generated' "$work/stats" || failed=1
    cmp "$work/$first" "$work/$drafter" || failed=1
done
[ $failed = 0 ] && echo "endless: passed" || echo "endless: FAILED"
exit $failed
