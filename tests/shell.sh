# shell.sh - what the shell tests share. Source it, call `check "what should be" command...` for each
# fact, and end with `finish`. $ESPALIER is the program; $work is an empty folder, removed at the end.
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

# fails CODE PATTERN command...: exits with CODE, prints nothing on stdout and one line on stderr that
# holds PATTERN.
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

finish() {
    echo "$name: $passed passed, $failed failed"
    [ $failed -eq 0 ]
    exit
}
