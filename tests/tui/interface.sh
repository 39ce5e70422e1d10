#!/bin/sh
# Tests the interface in real terminals of several sizes: the prompt, the growing text, the tree, a change of the drafter,
# and a resize during generation. At the end the terminal must be restored.
. tests/shell.sh
. tests/terminal.sh

for size in 120x36 80x24 200x60; do
    open $size
    run -n 24
    check "$size: the models are loaded" see 'ready'
    keys 'Once upon a time there was a king' Enter
    check "$size: a text is generated to its end" see 'token limit reached'
    check "$size: the prompt is shown" see 'Once upon a time'
    check "$size: the tree is shown" see '[├└]─ "'
    check "$size: the header compares the speed with plain decoding" see 'plain'
    keys ':drafter linear:K=3' Enter
    check "$size: the drafter can be changed" see 'drafter = linear:K=3'
    keys ':set n=400' Enter
    check "$size: the number of tokens can be changed" see 'n = 400'
    keys ' and then' Enter
    check "$size: a second generation runs" see 'iter 1[0-9]'
    $terminal resize-window -t main -x 72 -y 20
    check "$size: the smaller screen is drawn" see '^└\{1\}─\{70\}┘$'
    $terminal resize-window -t main -x 100 -y 30
    check "$size: the larger screen is drawn" see '^└\{1\}─\{98\}┘$'
    keys C-c
    check "$size: C-c stops the generation" see 'stopped\|ready\|token limit reached'
    keys ':quit' Enter
    check "$size: the terminal is restored" left 0
done

changed() {
    [ "$(screen)" != "$before" ]
}

steps_to() { # PATTERN: presses Space until the screen shows PATTERN
    for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        shows "$1" && return
        before=$(screen)
        keys Space
        wait_until changed || return 1
    done
    shows "$1"
}

open 20x6
run -n 8
check "20x6: there are tabs" see ' text  tree'
keys 'Once upon a time' Enter
check "20x6: the text is shown" see 'Once upon a time'
keys Tab Tab
check "20x6: the tree is shown" see '[├└]─ '
keys :q Enter
check "20x6: the terminal is restored" left 0

open 80x24
run -n 8 --drafter dynatree -p "'Once upon a time'"
check "a prompt on the command line is continued" see 'token limit reached'
keys F1
check "F1 shows the help" see 'Keys'
keys F1 F2
check "F2 lists the drafters" see 'dynatree .*adapt\|dynatree .*confidence'
keys C-c Enter
check "an empty line continues the text" see 'text   .* tokens'
keys ':nonsense' Enter
check "the error message names an unknown command" see "no command ':nonsense'"
keys ':set temp=-1' Enter
check "a value out of range is refused" see 'temp takes a number'
keys ':drafter nobody' Enter
check "the error message names an unknown drafter" see "no drafter 'nobody'"
keys ':drafte' Tab
check "commands are completed" see '^> :drafter'
keys C-u
keys ':drafter dyn' Tab
check "drafters are completed" see ':drafter dynatree'
keys C-u ':theme light' Enter
check "a theme is loaded" see 'theme = light'
keys ':theme plaid' Enter
check "the error message names an unknown theme" see "there is no theme 'plaid'"
keys :clear! Enter F5 'Once upon a time' Enter
check "step mode stops after a draft pass" see 'Draft pass 1'
keys Space
check "Space runs one stage" see 'Draft pass 2\|tree is drafted'
check "Space runs all stages in order, up to the last stage" steps_to 'drafted levels\|levels were accepted'
keys F5
check "F5 continues without stops" see 'token limit reached'
keys ':drafter linear:K=4' Enter ':set n=200' Enter ':break path 1' Enter Enter
check "a breakpoint stops the generation" see 'tokens was accepted'
keys C-c
check "C-c ends the pause at a breakpoint" see 'ready'
keys F5 C-d
check "C-d ends the program" left 0
check "only the owner can read the history" \
    [ "$(stat -c %a "$work/state/espalier/history")" = 600 ]
check "only the owner can read the folder of the history" \
    [ "$(stat -c %a "$work/state/espalier")" = 700 ]
run -n 8
check "the program starts again" see 'ready'
keys Up
check "the program has the history of its earlier run" see '^> :break path 1'
keys C-c C-c
check "C-c twice ends the program" left 0

open 80x24
keys 'export LC_ALL=C' Enter
run -n 8 -p "'Once upon a time'"
check "without UTF-8 the frames are ASCII" see '^+ text .*-+ tree'
keys :quit Enter
check "the program ends" left 0
check "only ASCII was printed" [ -z "$(screen | LC_ALL=C tr -d '\000-\177')" ]
keys 'export LC_ALL=C.UTF-8 TERM=nonsense' Enter
run
check "the error message names an unknown terminal" see "type 'nonsense'"

check "a message says that the interface needs a terminal" fails 1 'needs a terminal' $ESPALIER
only_ascii() {
    screen >"$work/ascii"
    ! LC_ALL=C grep -q '[^ -~]' "$work/ascii"
}

open 100x24
run --ascii --theme light -n 12
check "--ascii: the models are loaded" see 'ready'
keys 'Once upon a time' Enter
check "--ascii: a text is generated to its end" see 'token limit reached'
check "--ascii: only ASCII is printed" only_ascii
keys ':quit' Enter
check "--ascii: the terminal is restored" left 0
open 100x24
run --theme plaid
check "--theme refuses an unknown theme" see "there is no theme 'plaid'"
check "--theme: the terminal is restored" left 1

finish
