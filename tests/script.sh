# script.sh - runs the interface with a script (tui/app/script.h), for tests. Source it after shell.sh.
#
#     play INSTRUCTIONS [ARGUMENTS...]    runs the interface with the instructions; kills it after two minutes
#     $dump                               an instruction: writes the screen to the file that `dumped` reads
#     dumped PATTERN                       succeeds if the last screen that was written contains the pattern
dump="dump $work/screen"

# The drafter that `play` uses if its arguments name none. A test that checks trees sets this variable,
# because the trees of the program's default drafter depend on the speed of the machine.
default_drafter=

# Prints the option --drafter with $default_drafter. Prints nothing if the arguments name a drafter or begin with a
# subcommand.
with_drafter() {
    case "$1 $*" in
    *--drafter* | [a-z]*) ;;
    *) echo "${default_drafter:+--drafter $default_drafter}" ;;
    esac
}

play() {
    printf '%s\n' "$1" >"$work/script"
    shift
    set -- "$@" $(with_drafter "${1:--}" "$@")
    ESPALIER_SCRIPT="$work/script" timeout 120 $ESPALIER "$@" >"$work/out" 2>"$work/err"
}

dumped() {
    grep -q -e "$1" "$work/screen" && return
    echo "    no '$1' in:"
    sed 's/^/    |/' "$work/screen"
    return 1
}
