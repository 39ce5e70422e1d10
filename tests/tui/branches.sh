#!/bin/sh
# Branches on small screens, in a terminal with a light theme: with keys and with the mouse, from nodes, tokens and
# words, there and back again. The README's tour (tour.sh) walks the rest.
. tests/shell.sh
. tests/terminal.sh

tokens() { # of the text
    screen | sed -n 's/^┌ text   \([0-9]*\) tokens.*/\1/p'
}
gone() { # PATTERN: not on the screen any more
    wait_until sh -c "! $terminal capture-pane -p -t main | grep -q -e '$1'"
}
click() { # COLUMN ROW, from 1: a press and its release
    keys "$(printf '\033[<0;%d;%dM\033[<0;%d;%dm' "$1" "$2" "$1" "$2")"
}
begin() { # WIDTHxHEIGHT
    open "$1"
    run --theme light --temp 0 --seed 1 --drafter fixed --tokens 20 --no-config
    see 'beginning of a\|Type the'
    keys 'There was once a king' Enter
    see 'limit reached'
}

begin 80x24
keys Tab Tab Home Down Down
check "80x24: a node of the tree" see ' 3/[0-9]* '
keys b
check "80x24: another text is written from it" see 'limit reached'
check "80x24: and the tree follows it again" gone '(held)'
keys u
check "80x24: the text is there as before" see 'undone'
before=$(tokens)
click 12 4
check "80x24: a click puts the cursor" see 'iter [0-9]* (held)\|┬ tree'
keys Enter
check "80x24: the node pane alone explains the token" see '^┌ node   token [0-9]* "'
check "80x24: with what the target had there" see '> [1-8] ".*written'
keys Down Enter
check "80x24: another one is chosen" see 'limit reached'
keys ':continue 3' Enter
check "80x24: three continuations" see '3 continuations'
check "80x24: side by side" see '^┌ branches'
keys '['
check "80x24: to the one before" see 'branch [0-9]* of [0-9]*'
check "80x24: it is there" wait_until sh -c "$terminal capture-pane -p -t main | grep -q '● '"
keys Up Enter
check "80x24: and by Enter" gone 'still being'
keys ':clear!' Enter
check "80x24: the text is cleared" see 'Type the beginning'
keys ':undo' Enter
check "80x24: and back" see '^│ There was once'
keys ':heat rank' Enter
check "80x24: colours by rank, and which is which" see 'rank 1 2 3-4 5-8 9+'
check "80x24: as colours of the light theme" sh -c "$terminal capture-pane -p -e -t main | grep -q '$(printf '\033')\[[0-9;]*38;[25];'"
keys ':quit' Enter
check "80x24: it leaves" left 0

# The session was kept with its text, branches and trees.
open 80x24
run --theme light --no-config --resume
check "80x24: it goes on in another run" see 'session 1 goes on'
check "80x24: with its text" see '^│ There was once'
keys Tab Left
check "80x24: and the trees that wrote it" see 'iter [0-9]* (held)\|┬ tree'
keys B
check "80x24: with its branches" see '^┌ branches   [0-9]* of [0-9]*'
keys '['
check "80x24: to another one" see 'branch [0-9]* of [0-9]*'
keys u
check "80x24: and back" see 'undone'
keys Escape
check "80x24: Esc leaves the pane" see '^ F1 help'
keys ':private on' Enter
check "80x24: nothing more is kept" see 'private = on'
keys ':quit' Enter
check "80x24: it leaves again" left 0

begin 40x12
keys Tab Left Left
check "40x12: the cursor walks the text" see 'king'
keys Enter
check "40x12: the tokens that could stand there" see '> [1-8] "'
keys Down Enter
check "40x12: one of them" see 'limit reached'
keys B
check "40x12: two texts" see '● '
keys ']'
check "40x12: the other one" see 'branch 1 of 2\|branch 2 of 2'
keys d
check "40x12: d asks" see 'Delete this branch'
keys n
check "40x12: n keeps it" gone 'Delete this branch'
keys ':insert and then a fox' Enter
check "40x12: words of one's own" see 'limit reached'
keys Tab
check "40x12: in the text" see 'fox'
keys u
check "40x12: are undone" gone 'fox'
keys ':quit' Enter
check "40x12: it leaves" left 0

open 40x12
run --theme light --no-config --resume=2
check "40x12: it goes on in another run" see 'There was once'
keys Tab B
check "40x12: with its branches" see '● '
keys Escape
check "40x12: Esc leaves the pane" see '^ F1 help'
keys ':resume' Enter
check "40x12: :resume opens the one before" see 'session 1 goes on'
keys ':heat surprisal' Enter
check "40x12: and its colours" see 'bits <1'
keys ':quit' Enter
check "40x12: it leaves again" left 0

# A recording goes on as a session.
open 80x24
run replay "$PWD/sessions/samples/same-text-linear.esp.jsonl" --no-config
check "a replay" see 'Space play'
keys ':resume' Enter
check "goes on as a session" see 'session 3 goes on'
keys Enter
check "that is continued" see 'limit reached'
keys ':quit' Enter
check "it leaves" left 0
check "all sessions are listed" test "$(XDG_STATE_HOME=$work/state $program sessions | wc -l)" = 3
finish
