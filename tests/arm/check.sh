#!/bin/sh
# Runs the short form of `make check-arm`. `make check CI=true` runs this script as one of its tests.
out=$(ESPALIER_TEST_WORKERS=1 ESPALIER_NO_APT=1 $MAKE --no-print-directory QUICK=1 check-arm 2>&1)
status=$?
printf '%s\n' "$out" | sed 's/^[0-9]* passed, /arm: &/'
exit $status
