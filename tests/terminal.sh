# terminal.sh - opens a terminal for tests: an interactive shell in a separate tmux server.
# Source it after shell.sh.
#
#     open WIDTHxHEIGHT        opens a new shell, whose prompt is "@@"
#     run ARGUMENTS            runs $ESPALIER in the shell; writes the terminal's modes (`stty -g`) before the run to
#                              $work/before, and those after the run to $work/after
#     keys KEY...              sends text, or keys with the names that tmux uses (Enter, F2, C-c)
#     see PATTERN              waits until the screen shows the pattern; fails if it does not
#     left CODE                waits until the program ends; fails if it does not exit with CODE, or if the modes have changed
terminal=false
opened=0
program=$(cd "$(dirname "$ESPALIER")" && pwd)/$(basename "$ESPALIER")
echo "PS1='@@ '" >"$work/shellrc"
trap '$terminal kill-server 2>/dev/null; rm -rf "$work"' EXIT

open() {
    $terminal kill-server 2>/dev/null
    opened=$((opened + 1))
    terminal="tmux -L espalier-$$-$opened -f /dev/null"
    rm -f "$work/before" "$work/after"
    env -u ESPALIER_SCRIPT XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" \
        ENV="$work/shellrc" \
        $terminal new-session -d -s main -x "${1%x*}" -y "${1#*x}" "sh -i" &&
        $terminal set -g status off && see '@@'
}

run() {
    rm -f "$work/before" "$work/after"
    keys "stty -g >$work/before; $program $*" \
        "; echo code=\$? >$work/code; stty -g >$work/after" Enter
}

keys() {
    $terminal send-keys -t main "$@"
}

screen() {
    $terminal capture-pane -p -t main 2>&1
}

# Runs a command again and again until it succeeds. Fails after 20 seconds.
wait_until() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || return 1
        sleep 0.05
    done
}

shows() {
    screen | grep -q -e "$1"
}

see() {
    wait_until shows "$1" && return
    echo "    waited for '$1', saw:"
    screen | sed 's/^/    |/'
    return 1
}

not_empty() {
    [ -s "$1" ]
}

left() {
    if ! wait_until not_empty "$work/after"; then
        echo "    still running:"
        screen | sed 's/^/    |/'
        return 1
    fi
    if ! grep -qx "code=$1" "$work/code" || ! cmp -s "$work/before" "$work/after"; then
        echo "    $(cat "$work/code"), want $1; modes:"
        cat "$work/before" "$work/after"
        return 1
    fi
}

# Prints the process id of the program that runs in the terminal.
process() {
    ps -o pid= --ppid "$($terminal list-panes -t main -F '#{pane_pid}')" | tr -d ' '
}
