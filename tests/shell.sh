# shell.sh - functions for shell tests. A test sources this file, calls `check "what must be true" command...` for each
# fact, and ends with `finish`. $ESPALIER is the program. $work is an empty folder, which is removed at the end.
set -u
: "${ESPALIER:=build/espalier}" "${BUILD:=build}" "${MAKE:=make}"
passed=0
failed=0
name=$(basename "$0" .sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "  FAILED $name: $what"
    fi
}

# fails CODE PATTERN command...: the command must exit with CODE, print nothing on stdout, and print one line with
# PATTERN on stderr.
fails() {
    code=$1
    pattern=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    if [ $got -ne "$code" ] || [ -s "$work/out" ] || [ "$(wc -l <"$work/err")" -ne 1 ] ||
        ! grep -q -- "$pattern" "$work/err"; then
        echo "    $*: exit $got, want $code; stderr: $(head -c 300 "$work/err")"
        return 1
    fi
}

# ends SIGNAL CODE PATTERN PART command...: starts the command, and sends it the signal as soon as a
# file exists with a name that begins with PART. The command must exit with CODE, print one line with
# PATTERN on stderr, and remove the file.
ends() {
    signal=$1 code=$2 pattern=$3 part=$4
    shift 4
    "$@" >"$work/out" 2>"$work/err" </dev/null &
    ended=$!
    while kill -0 $ended 2>/dev/null; do
        set -- "$part"*
        [ -e "$1" ] && kill -s "$signal" $ended && break
    done
    wait $ended
    got=$?
    set -- "$part"*
    if [ $got -ne "$code" ] || [ "$(wc -l <"$work/err")" -ne 1 ] || ! grep -q -- "$pattern" "$work/err" || [ -e "$1" ]; then
        echo "    SIG$signal: exit $got, want $code; left: $*; stderr: $(head -c 300 "$work/err")"
        return 1
    fi
}

finish() {
    echo "$name: $passed passed, $failed failed"
    [ $failed -eq 0 ]
    exit
}
