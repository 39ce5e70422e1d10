#!/bin/sh
# The user's history, configuration and themes can be pipes that nobody writes to. The program must not wait for these
# pipes. It must also work if the history file does not contain text.
. tests/shell.sh
. tests/terminal.sh

mkdir -p "$work/state/espalier" "$work/config/espalier/themes"
history=$work/state/espalier/history
config=$work/config/espalier/config

writes() { # ARGUMENTS: the program must start, continue a prompt, have the prompt in its history, and end
    open 80x24
    run "$*" -n 8
    see 'ready' || return 1
    keys 'Once upon a time' Enter
    see 'token limit reached' && keys Up && see '> Once upon a time' && keys C-u :quit Enter && left 0
}
refuses() { # PATTERN ARGUMENTS: the program must end immediately with a message with PATTERN
    pattern=$1
    shift
    open 160x24
    run "$*"
    left 1 && see "$pattern"
}

mkfifo "$history"
check "the program works if the history is a pipe" writes
check "the program does not replace a history that is a pipe" [ -p "$history" ]
rm "$history" && mkdir "$history"
check "the program works if the history is a folder" writes
rmdir "$history" && printf 'half a character: \346\274\nOnce more\n' >"$history"
check "the program works if the history is not text" writes
rm "$history"
pipe_later() { # the history becomes a pipe while the program runs
    open 80x24
    run -n 8
    see 'ready' || return 1
    rm "$history" && mkfifo "$history"
    keys 'Once upon a time' Enter
    see 'token limit reached' && keys :quit Enter && left 0
}
check "the program works if the history becomes a pipe" pipe_later
rm "$history"

mkfifo "$config"
check "a configuration file that is a pipe is refused" refuses 'config cannot be read: it is not a regular file'
check "a configuration file on the command line that is a pipe is refused" refuses 'config cannot be read: it is not a regular file' \
    --config "$config"
rm "$config"
mkfifo "$work/config/espalier/themes/mine.theme"
check "a theme that is a pipe is refused" refuses 'mine.theme cannot be read: it is not a regular file' --theme mine
finish
