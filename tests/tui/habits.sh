#!/bin/sh
# Tests habits that users have from other programs: Esc, new lines, /name, menus, a click on the footer, and their own
# keys and editor.
. tests/shell.sh
. tests/script.sh

# play_and_see PATTERN INSTRUCTIONS [ARGUMENTS...]: runs the instructions; the screen must then show PATTERN.
play_and_see() {
    pattern=$1
    shift
    instructions=$1
    shift
    play "size 100x30
wait
$instructions
$dump" "$@" && dumped "$pattern"
}
not_dumped() {
    ! grep -q -e "$1" "$work/screen"
}
rows_of_input() { # prints the rows below the frames, without the footer
    sed -e '1,/^└/d' "$work/screen" | sed '$d'
}

check "Esc clears a command line" play_and_see '^> *$' 'type :drafter line
key Esc'
check "Esc keeps a prompt" play_and_see '^> Once upon' 'type Once upon
key Esc'
check "Esc in a command line restores the prompt that was being typed" play_and_see '^> Once upon a' 'type Once upon
key M-p Esc
type  a'
check "running a command restores the prompt that was being typed" play_and_see '^> Once upon a' "type Once upon
key M-p
type $work/none.xyz
key Enter
type  a"
check "a half-typed prompt is in the history after M-e" play_and_see '^> half a thought' 'type Once
key Enter
wait
type half a thought
key M-e y Up' -n 4
check "a half-typed prompt is in the history after C-c" play_and_see '^> half a thought' 'type half a thought
key C-c Up'

# On a screen of 40x12 every pane must have rows, and text that does not fit into a row must
# continue in the next row.
play "size 40x12
wait
type Once upon a time there was a king
key Enter
wait
key Tab Tab Tab Tab
dump $work/node
key Down Down Down End
dump $work/details
key Tab Tab Tab
$dump" -n 40 --seed 3 --drafter fixed:D=3,B=3
check "parts of the header do not overlap" dumped '^ espalier  *limit reached  '
check "the statistics show the fraction of accepted nodes" dumped '^[0-9]* % of nodes accepted'
check "the statistics show the time of an iteration" dumped '^verify [0-9.]*, rest [0-9.]*'
cp "$work/details" "$work/screen"
check "the node pane can be scrolled" dumped '↑ [0-9]'
check "the node pane can be scrolled to its end" dumped '^children\|siblings\|" .*draft'
check "the zoomed pane starts at the top" sh -c "! grep -q '↑' '$work/node'"
play "size 120x36
wait
type Once upon a time
key Enter
wait
key Tab Tab Home Down
$dump" -n 20 --seed 3 --drafter fixed:D=1,B=20
check "the tree pane shows the number of the node at the cursor" dumped ' 2/21 '
check "the tree pane shows how many nodes are below its last row" dumped '↓ [0-9]'
check "the node pane counts the siblings that do not fit" dumped '+ 1[0-9] more'

# Commands that would lose text must ask first.
asks() { # PATTERN ANSWER COMMAND: COMMAND must ask; after ANSWER, the screen must show PATTERN
    play_and_see "$1" "type Once upon a time
key Enter
wait
$3
$dump-asked
key $2
wait" -n 8 && grep -q "$4" "$work/screen-asked"
}
for keep in n Esc Enter F1 '"'; do
    check ":clear asks, and $keep keeps the text" asks 'text   1[0-9] tokens\|help' "$keep" 'type :clear
key Enter' 'Clear the text (1[0-9] tokens)? y: yes, any other key: no'
done
check "y clears the text" asks 'Type the beginning of a text' y 'type :clear
key Enter' 'y: yes'
check ":clear! does not ask" play_and_see 'Type the beginning of a text' 'type Once upon a time
key Enter
wait
type :clear!
key Enter
wait' -n 8
check ":clear without a text does not ask" play_and_see '^ F1 help' 'type :clear
key Enter
wait'
check "M-e asks, and y takes the last prompt back" asks '^> Once upon a time' y 'key M-e' \
    'Take back the last prompt and delete the 8 tokens after it? y: yes'
check "after M-e, n keeps the text" asks 'text   1[0-9] tokens' n 'key M-e' 'y: yes'
check ":regenerate asks, and y writes a new answer" asks 'temperature 0' y 'type :regenerate
key Enter' 'Delete the last 8 tokens and generate others? y: yes'
check "after :regenerate, n keeps the answer" asks '^ F1 help' n 'type :regenerate
key Enter' 'y: yes'
check "a question longer than the footer is shown in full" play_and_see 'other key: no' 'size 40x20
type Once upon a time
key Enter
wait
key M-e' -n 8

# q and Esc must leave the help, a zoomed pane or a pane, but must never end the program or clear the text.
stays() { # KEYS: after these keys, the program still runs and generates text
    play_and_see "${2:-iter}" "key F5
type Once upon a time
key Enter
wait
key $1
wait" && dumped 'step mode, iter'
}
check "q closes the help" stays 'F1 q' '^┌ text'
check "q leaves a pane" stays 'Tab q' '^ Space step   C-c stop   F1'
check "q leaves a zoomed pane" stays 'Tab F8 q' '┬ tree'
check "Esc leaves a zoomed pane" stays 'Tab F8 Esc' '┬ tree'
check "F8, pressed in the input line, zooms the text pane" stays 'F8' '^┌ text [^┬]*┐$'
check "the footer shows how to leave the zoom" dumped 'Esc back'
check "Esc leaves the zoom and does not stop the generation" stays 'F8 Esc' '┬ tree'
check "a second Esc stops the generation" play_and_see 'stopped' 'key F5
type Once upon a time
key Enter
wait
key F8 Esc Esc'
check "Esc stops a generation" play_and_see 'stopped' 'key F5
type Once upon a time
key Enter
wait
key Esc'
check "Esc does not stop the generation if a pane has the focus" play_and_see 'step mode, iter' 'key F5
type Once upon a time
key Enter
wait
key Tab Esc'
check "after Esc in a replay, letters act as keys again" play_and_see '^┌ help' 'key e Esc x F1' \
    replay sessions/samples/dyspec.esp.jsonl

play_and_see 'second line' 'type first
key C-j
type second line
key M-Enter
type third'
check "C-j and M-Enter begin new lines, and the input line grows" \
    [ "$(rows_of_input | tr -s ' ' | tr '\n' '|')" = '> first| second line| third|' ]
check "Up and Down move between the lines" play_and_see '^  secXond' 'type first
key C-j
type second
key Up Home
type a
key Down Right Right
type X'
check "several lines form one prompt" play_and_see '^│ second' 'type first
key C-j
type second
key Enter
wait' -n 4
check "in a command line, C-j acts as Enter" play_and_see 'theme = mono' 'type :theme mono
key C-j'

check "/SETTING VALUE sets a setting" play_and_see 'theme = mono' 'type /theme mono
key Enter'
check "/drafter NAME chooses a drafter" play_and_see 'drafter = linear:K=4' 'type /drafter linear:K=4
key Enter
wait'
check "/ and the name of a setting without a value search the text" \
    play_and_see "not found: 'theme' is not in the text; the command is :theme" 'type /theme
key Enter'
for line in clear 'clear all' quit edit regenerate "save $work/by-slash" "mark here" help; do
    check "/$line runs no command" play_and_see "not found: '$line' is not in the text" "type Once upon a time
key Enter
wait
type /$line
key Enter
wait" -n 4
    check "/$line leaves the text unchanged" dumped '^│ Once upon a time'
done
check "/$line writes no file" test ! -e "$work/by-slash"
check "/cle is not completed, because :clear is not a setting" play_and_see '^> /cle *$' 'type /cle
key Tab'
check "/the is completed" play_and_see '^> /theme mono' 'type /the
key Tab
type mo
key Tab'
check "/themes searches the text" play_and_see "not found: 'themes' is not in the text" 'type /themes
key Enter'
check "in a pane, / always searches, even for the name of a command" play_and_see "not found: 'theme' is not in the tree" 'type Once
key Enter
wait
key Tab Tab
type /theme
key Enter' -n 4

check "F2 opens a menu that marks the current drafter" play_and_see '✓ dynatree .* now' 'key F2' --drafter dynatree
check "arrows and Enter choose a drafter" play_and_see 'drafter = goodput' 'key F2 Down Enter
wait' --drafter dynatree
check "F3 shows why a verifier is refused" play_and_see 'needs a temperature above 0; at 0 use greedy' 'key F3 Down Enter
wait' --temp 0
check "F3 keeps the current verifier if another one is refused" play_and_see 'dynatree, greedy, cpu' 'key F3 Down Enter Esc
wait' --drafter dynatree --temp 0
check "a drafter that needs a draft model is refused without one" \
    play_and_see 'fixed .*refused' 'type :model fairytale-target
key Enter
wait
key F2'
check "opening and closing a menu keeps the typed prompt" play_and_see '^> Once X' 'type Once 
key F3 Esc
type X'
play_and_see 'F2 drafter' ''
column=$(awk 'END { print index($0, "F2 drafter") }' "$work/screen")
check "the footer can be clicked" play_and_see 'how trees are drafted' "mouse 0 $column 29"
play_and_see '│   suffix ' 'key F2'
row=$(grep -n '│   suffix ' "$work/screen" | cut -d: -f1)
check "the menu can be clicked" play_and_see 'drafter = suffix' "key F2
mouse 0 10 $((row - 1))
wait"
check "a click outside the menu closes the menu" play_and_see '^│ *│ *│$' "key F2
mouse 0 0 0"
check "the wheel scrolls the text, not the history" play_and_see '^> *$' "type :theme mono
key Enter
mouse 64 5 28
mouse 64 5 28"

cat >"$work/config" <<END
bind F12 :theme mono
bind F6 help
bind z zoom
bind M-e none
END
check "a key in the configuration runs a command" play_and_see 'theme = mono' 'key F12' --config "$work/config"
check "a key in the configuration runs an action" play_and_see '^┌ help' 'key F6' --config "$work/config"
check "a letter with a binding is typed if the input line has text" play_and_see '^> xz' 'type xz' --config "$work/config"
check "a letter with a binding runs its action if the input line is empty" play_and_see '^┌ text ─*┐$' 'type z' --config "$work/config"
check "a key bound to none goes to the input line" play_and_see '^ F1 help' 'key M-e' --config "$work/config"
check "the menu lists the user's keys" play_and_see 'F12 .*:theme mono .*your key' 'key F7
type your key' --config "$work/config"
check "a key named Equal can be bound" play_and_see 'Equal: help' 'type :bind Equal help
key Enter' --config "$work/config"
check ":bind binds a key, and :config save saves it" play_and_see 'written to' "type :bind C-t full-speed
key Enter
type :bind F6 default
key Enter
type :bind Equal help
key Enter
type :config save
key Enter
wait" --config "$work/config"
check "the new binding is saved" grep -qx 'bind C-t full-speed' "$work/config"
check "the earlier binding is still there" grep -qx 'bind F12 :theme mono' "$work/config"
check "a removed binding is not saved" sh -c "! grep -q 'bind F6' $work/config"
check "saved bindings are read" play_and_see '^┌ help' 'key Equal' --config "$work/config"
refuses() { # LINE PATTERN: a configuration file with LINE must be refused with an error that has PATTERN
    echo "$1" >"$work/bad"
    play 'size 80x24' --config "$work/bad"
    grep -q "bad, line 1: $2" "$work/err" || { cat "$work/err"; return 1; }
}
check "an unknown key is refused" refuses 'bind F99 help' "there is no key 'F99"
check "an unknown action is refused" refuses 'bind F9 hepl' "there is no action 'hepl' (did you mean help?)"
check "action 'digit' cannot be bound to another key" refuses 'bind F9 digit' 'the action digit is for the keys 0 to 9'
check "C-c cannot be bound" refuses 'bind C-c help' 'C-c cannot be bound'

for pair in 'picture :export' 'svg :export' 'slide :export' 'zoom F8' 'exit :quit' 'faster F6' 'save slide :export'; do
    check "the menu finds '${pair% *}'" play_and_see "│ ${pair##* } " "key F7
type ${pair% *}"
done

check "the first screen says that the built-in models only know fairy tales" play_and_see 'only read fairy tales' ''
play "size 100x30
wait
type Once upon a time
key Enter
wait
$dump" -n 20 --context 64
check "the text pane shows how full the context is" dumped '^┌ text   [0-9]* tokens, [34][0-9] % of the context'
cores=$(nproc)
check "there are at most as many threads as processors" play_and_see "threads = $cores\$" 'type :threads 400
key Enter
wait
type :set threads
key Enter'
stops() { # WHEN PATTERN OPTION...: after ":break WHEN", the generation must stop and show PATTERN
    when=$1 pattern=$2
    shift 2
    play_and_see "$pattern" "type :break $when
key Enter
type Once upon a time there was a king
key Enter
wait" -n 200 "$@" && dumped 'step mode, iter'
}
check ":break says when the generation will stop" play_and_see 'when a path of more than 3 tokens is accepted' 'type :break path 3
key Enter'
check "generation stops after a long path" stops 'path 3' 'a path of [4-6] tokens was accepted' \
    --drafter fixed:D=6,B=2 --temp 0
check "the tree shows an accepted path of more than 3 tokens" dumped 'tree .* [4-6] of [0-9]* accepted'
check ":break rejected stops after all nodes were rejected" stops rejected 'everything was rejected' --drafter linear:K=1 --temp 1 --ignore-eos

printf '#!/bin/sh\ntest "$(cat "$2")" = "$1" && printf "two\\nlines\\n" >"$2"\n' >"$work/editor"
chmod +x "$work/editor"
edits() { # PATTERN EDITOR INSTRUCTIONS: with this editor, the screen must show PATTERN after the instructions
    (EDITOR=$2 VISUAL='' TMPDIR=$work && export EDITOR VISUAL TMPDIR && play_and_see "$1" "$3")
}
check "C-x C-e opens the editor" edits '^  lines' "$work/editor one" 'type one
key C-x C-e'
check ":editor opens the editor" edits '^  lines' "$work/editor one" 'type one
key F7
type :editor
key Enter'
check "if the editor fails, the line is unchanged" edits '^> one' false 'type one
key C-x C-e'
check "a message says that the editor failed" dumped 'the editor failed, and the line is unchanged'
check "no temporary file is left" [ -z "$(ls "$work" | grep '^espalier-')" ]

check "a misspelled command gives a suggestion" play_and_see "no command ':drafer' (did you mean drafter?)" 'type :drafer
key Enter'
check "a misspelled drafter gives a suggestion" play_and_see "no drafter 'dynatre' (did you mean dynatree?)" 'type :drafter dynatre
key Enter
wait'
check "a misspelled theme gives a suggestion" play_and_see "no theme 'drak' (did you mean dark?)" 'type :theme drak
key Enter'
check "a misspelled setting gives a suggestion" play_and_see "no setting 'tmep' (did you mean temp?)" 'type :set tmep=1
key Enter'
check "a misspelled folder of a model gives a suggestion" play_and_see "'fairytale-traget' (did you mean fairytale-target?)" 'type :model fairytale-traget
key Enter
wait'
mkdir "$work/pythia-70m"
check "a misspelled model gives a suggestion on the command line" fails 1 'did you mean pythia-70m?' \
    $ESPALIER inspect "$work/pythia-70n"
check "a misspelled subcommand gives a suggestion" fails 2 "no command 'repaly', and no model of this name (did you mean replay?)" $ESPALIER repaly
check "a misspelled option gives a suggestion" fails 2 "option '--tmep' (did you mean --temp?)" $ESPALIER generate --tmep 1
finish
