# script.sh - the interface driven by a script (tui/app/script.h), for tests. Source it after shell.sh.
#
#     play INSTRUCTIONS [ARGUMENTS...]    runs them; stops the test if they take two minutes
#     $dump                               the instruction that dumps the screen for dumped
#     dumped PATTERN                       the last dump has it
dump="dump $work/screen"

play() {
    printf '%s\n' "$1" >"$work/script"
    shift
    ESPALIER_SCRIPT="$work/script" timeout 120 $ESPALIER "$@" >"$work/out" 2>"$work/err"
}

dumped() {
    grep -q -e "$1" "$work/screen" && return
    echo "    no '$1' in:"
    sed 's/^/    |/' "$work/screen"
    return 1
}
