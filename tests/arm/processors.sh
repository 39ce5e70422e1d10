#!/bin/sh
# Tests the arithmetic and the thread pool on several emulated processors, which have different instruction sets. Each of
# the test programs $ARM_EACH must pass on each of the processors $ARM_CPUS.
. tests/shell.sh
for cpu in $ARM_CPUS; do
    for test in $ARM_EACH; do
        $ESPALIER_TEST_RUNNER -cpu "$cpu" "$test" >"$work/log" 2>&1
        check "$(basename "$test") passes on $cpu" test $? -eq 0
        grep FAILED "$work/log"
    done
done
finish
