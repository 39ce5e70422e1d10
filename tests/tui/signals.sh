#!/bin/sh
# The terminal must be restored, however the program ends. A program that was suspended must use
# the terminal again when it continues.
. tests/shell.sh
. tests/terminal.sh

writing() { # starts the program and makes it generate text
    open 80x24
    run -n 600 -p "'Once upon a time'"
    see 'iter [0-9]'
}

ends_by() { # SIGNAL CODE: the signal must end the program with CODE and restore the terminal
    writing || return 1
    kill -s "$1" "$(process)"
    left "$2" && see '@@'
}

check "SIGTERM restores the terminal" ends_by TERM 143
check "SIGHUP restores the terminal" ends_by HUP 129
check "SIGSEGV restores the terminal" ends_by SEGV 139
check "SIGABRT restores the terminal" ends_by ABRT 134

# Another program truncates a model file that is mapped into memory. The terminal must be
# restored, even if this ends the program.
cut_off() {
    rm -rf "$work/model"
    cp -r engine/models/fairytale-target "$work/model" && open 80x24
    run --target "$(cd "$work" && pwd)/model" -n 600 -p "'Once upon a time'"
    see 'iter [0-9]' || return 1
    truncate -s 4096 "$work/model/model.safetensors"
    sleep 2
    [ -s "$work/after" ] || keys C-c C-u :quit Enter
    wait_until not_empty "$work/after" && see '@@' && cmp "$work/before" "$work/after"
}
check "a truncated model file ends the program with a message" cut_off

interrupted() {
    writing || return 1
    kill -s INT "$(process)"
    see 'stopped' && kill -s INT "$(process)" && left 0
}
check "SIGINT stops the generation, and a second SIGINT ends the program" interrupted

suspended() { # KEY-OR-SIGNAL: suspends the program, continues it, and compares the terminal's modes
    writing || return 1
    if [ "$1" = key ]; then keys C-z; else kill -s TSTP "$(process)"; fi
    see '@@' || return 1
    keys "stty -g >$work/stopped" Enter
    wait_until not_empty "$work/stopped" || return 1
    keys fg Enter
    see 'F1 help' || return 1
    keys F6 # chooses full speed
    see 'token limit reached' || return 1
    rm -f "$work/after"
    keys :quit Enter
    see '^@@$' || return 1
    keys "stty -g >$work/after" Enter
    wait_until not_empty "$work/after" && cmp "$work/before" "$work/stopped" &&
        cmp "$work/before" "$work/after"
}
check "C-z and fg restore the modes of the terminal each time" suspended key
check "SIGTSTP and fg restore the modes of the terminal each time" suspended signal

gone() { case $(ps -o stat= -p "$1") in '' | Z*) ;; *) false ;; esac }

killed_while_stopped() { # sends SIGTERM to the stopped program, and continues it in the background
    writing || return 1
    pid=$(process)
    keys C-z
    see '@@' || return 1
    kill -s TERM "$pid" && kill -s CONT "$pid"
    wait_until gone "$pid" || return 1
    keys clear Enter
    see '^@@$'
}
check "SIGTERM ends a stopped program" killed_while_stopped

elsewhere() { # resizes the window while the program is stopped
    writing || return 1
    keys C-z
    see '@@' || return 1
    $terminal resize-window -t main -x 70 -y 20
    keys fg Enter
    see '^└\{1\}─\{68\}┘$' || return 1
    keys :quit Enter
    see "^@@$"
}
check "a resize while the program is stopped takes effect" elsewhere

# When the program ends, the terminal must return to its main screen, show its cursor, and no
# longer report the mouse.
given_back() { # SIGNAL: the signal must end the program and restore the screen
    writing || return 1
    keys ':mouse on' Enter
    see 'mouse = on' || return 1
    [ "$($terminal display-message -p -t main '#{mouse_any_flag}#{alternate_on}')" = 11 ] || return 1
    kill -s "$1" "$(process)"
    wait_until not_empty "$work/after" &&
        [ "$($terminal display-message -p -t main '#{mouse_any_flag}#{alternate_on}#{cursor_flag}')" = 001 ]
}
check "SIGSEGV restores screen, cursor and mouse" given_back SEGV
check "SIGTERM restores screen, cursor and mouse" given_back TERM

resized() {
    writing || return 1
    for size in 1x1 400x120 2x50 19x4 20x5 59x13 60x14 1x30 130x1 99x27 100x28 3x3 80x24; do
        $terminal resize-window -t main -x "${size%x*}" -y "${size#*x}"
    done
    see 'F1 help' || return 1
    keys :quit Enter
    left 0
}
check "the program survives all sizes from 1x1 to 400x120" resized
finish
