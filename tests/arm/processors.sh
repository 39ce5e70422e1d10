#!/bin/sh
# Tests the arithmetic and the thread pool on several processors, which have different instructions: runs the programs
# $ARM_EACH on each of $ARM_CPUS.
. tests/shell.sh
for cpu in $ARM_CPUS; do
    for test in $ARM_EACH; do
        $ESPALIER_TEST_RUNNER -cpu "$cpu" "$test" >"$work/log" 2>&1
        check "$(basename "$test") passes on $cpu" test $? -eq 0
        grep FAILED "$work/log"
    done
done
finish
