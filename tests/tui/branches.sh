#!/bin/sh
# Tests branches with keys and with the mouse, on small screens and with the light theme. Some branches start at a node
# of the tree, some at a token of the text, and some with inserted words. tour.sh also tests branches.
. tests/shell.sh
. tests/terminal.sh

tokens() { # prints the number of tokens of the text
    screen | sed -n 's/^┌ text   \([0-9]*\) tokens.*/\1/p'
}
gone() { # PATTERN: waits until PATTERN is no longer on the screen
    wait_until sh -c "! $terminal capture-pane -p -t main | grep -q -e '$1'"
}
click() { # COLUMN ROW, counted from 1: clicks with the mouse at this place of the screen
    keys "$(printf '\033[<0;%d;%dM\033[<0;%d;%dm' "$1" "$2" "$1" "$2")"
}
begin() { # WIDTHxHEIGHT: opens a terminal of this size, starts the program, and generates a text
    open "$1"
    run --theme light --temp 0 --seed 1 --drafter fixed --tokens 20 --no-config
    see 'beginning of a\|Type the'
    keys 'There was once a king' Enter
    see 'limit reached'
}

begin 80x24
keys Tab Tab Home Down Down
check "80x24: the cursor is on a node of the tree" see ' 3/[0-9]* '
keys b
check "80x24: b starts a branch at the node, and the branch is written to its end" see 'limit reached'
check "80x24: after b, the tree pane follows the newest tree again" gone '(held)'
keys u
check "80x24: u restores the previous text" see 'undone'
before=$(tokens)
click 12 4
check "80x24: a click on the text moves the cursor to the clicked token" see 'iter [0-9]* (held)\|┬ tree'
keys Enter
check "80x24: with the other panes hidden, the node pane explains the token" see '^┌ node   token [0-9]* "'
check "80x24: the node pane lists the target's tokens for this position" see '> [1-8] ".*written'
keys Down Enter
check "80x24: the text continues with the selected token" see 'limit reached'
keys ':continue 3' Enter
check "80x24: three continuations are written" see '3 continuations'
check "80x24: the branches pane lists the continuations" see '^┌ branches'
keys '['
check "80x24: [ switches to the previous branch" see 'branch [0-9]* of [0-9]*'
check "80x24: the previous branch is marked as current" wait_until sh -c "$terminal capture-pane -p -t main | grep -q '● '"
keys Up Enter
check "80x24: Enter switches to the selected branch" gone 'still being'
keys ':clear!' Enter
check "80x24: the text is cleared" see 'Type the beginning'
keys ':undo' Enter
check "80x24: u restores the text" see '^│ There was once'
keys ':heat rank' Enter
check "80x24: tokens are coloured by rank, with a legend" see 'rank 1 2 3-4 5-8 9+'
check "80x24: the ranks have the colours of the light theme" sh -c "$terminal capture-pane -p -e -t main | grep -q '$(printf '\033')\[[0-9;]*38;[25];'"
keys ':quit' Enter
check "80x24: the program ends" left 0

# The session must have been kept with its text, branches and trees.
open 80x24
run --theme light --no-config --resume
check "80x24: another run resumes the session" see 'session 1 is open again'
check "80x24: the resumed session has its text" see '^│ There was once'
keys Tab Left
check "80x24: the resumed session has its trees" see 'iter [0-9]* (held)\|┬ tree'
keys B
check "80x24: the resumed session has its branches" see '^┌ branches   [0-9]* of [0-9]*'
keys '['
check "80x24: in the resumed session, [ switches to another branch" see 'branch [0-9]* of [0-9]*'
keys u
check "80x24: in the resumed session, u undoes the switch" see 'undone'
keys U
check "80x24: U redoes the switch" see 'redone; u undoes it'
keys '[' u
check "80x24: u, pressed directly after [, waits for the switch" see 'undone'
keys Escape
check "80x24: Esc leaves the pane" see '^ F1 help'
keys ':private on' Enter
check "80x24: :private on stops keeping the session" see 'private = on'
keys ':quit' Enter
check "80x24: :quit ends the resumed session" left 0

begin 40x12
keys Tab Left Left
check "40x12: the cursor moves through the text" see 'king'
keys Enter
check "40x12: Enter lists the target's tokens for the position of the cursor" see '> [1-8] "'
keys Down Enter
check "40x12: the text continues with the selected token" see 'limit reached'
keys B
check "40x12: there are two branches" see '● '
keys ']'
check "40x12: [ or ] switches to the other branch" see 'branch 1 of 2\|branch 2 of 2'
keys d
check "40x12: d asks before it deletes a branch" see 'Delete this branch'
keys n
check "40x12: n keeps the branch" gone 'Delete this branch'
keys ':insert and then a fox' Enter
check "40x12: :insert inserts words" see 'limit reached'
keys Tab
check "40x12: the inserted words are in the text" see 'fox'
keys u
check "40x12: u removes the words that were added" gone 'fox'
keys ':quit' Enter
check "40x12: the program ends" left 0

open 40x12
run --theme light --no-config --resume=2
check "40x12: another run resumes the session" see 'There was once'
keys Tab B
check "40x12: the resumed session has its branches" see '● '
keys Escape
check "40x12: Esc leaves the pane" see '^ F1 help'
keys ':resume' Enter
check "40x12: :resume opens the previous session" see 'session 1 is open again'
keys ':heat surprisal' Enter
check "40x12: tokens of the resumed session can be coloured by surprisal" see 'bits <1'
keys ':quit' Enter
check "40x12: :quit ends the resumed session" left 0

# A recording must be continued as a session.
open 80x24
run replay "$PWD/sessions/samples/same-text-linear.esp.jsonl" --no-config
check "a recording is replayed" see 'Space play'
keys ':resume' Enter
check ":resume continues a recording as a session" see 'session 3 is open again'
keys Enter
check "the resumed recording can be continued" see 'limit reached'
keys ':quit' Enter
check "the program ends" left 0
check "all sessions are listed" test "$(XDG_STATE_HOME=$work/state $program sessions | wc -l)" = 3
finish
