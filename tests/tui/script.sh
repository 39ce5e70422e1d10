#!/bin/sh
# Tests the interface with scripts, without a terminal. The code and the screens are the same as on a
# terminal.
. tests/shell.sh
. tests/script.sh
default_drafter=dynatree

# Every key and command of the tables must be in the help, in the manual and in completion.
play "size 100x120
wait
key F1
$dump
mdoc $work/page"
keys=$(sed -n 's/^[A-Z]*(.*"\([^" ]*\)", [A-Z]*[,)].*/\1/p' tui/view/keys.def)
commands=$(sed -n 's/^X(\(.*\))/\1/p' tui/commands/commands.def)
check "all keys were tested" [ "$(echo "$keys" | wc -l)" = "$(grep -c '^[AKCI].*"' tui/view/keys.def)" ]
check "all commands were tested" \
    [ "$(echo "$commands" | sort)" = "$(cd tui/commands/each && ls *.c | sed 's/[.]c$//' | sort)" ]
in_page() { # KEY: succeeds if a tag of the manual page has KEY
    grep '^\.It' "$work/page" | grep -qF -e " Ic $1" -e " Ic \&$1"
}
live=$(cd tui/commands/each && grep -L ESP_IN_REPLAY -- *.c | sed 's/[.]c$//')
for key in $keys; do
    grep -F "\"$key\", REPLAY" tui/view/keys.def >/dev/null ||
        check "help names the key $key" dumped "^│   .*$(printf %s "$key" | sed 's/[[]/\\&/') .*  "
    check "the manual names the key $key" in_page "$key"
done
for command in $live; do
    check "help names the command $command" dumped "^│   :$command "
done
for command in $commands; do
    check "the manual names the command $command" in_page ":$command"
done

play "size 100x50
wait
type :
key Tab
$dump"
for command in $live; do
    check "completion names the command $command" dumped "│ $command "
done

play "size 100x60
wait
type :set
key Space Tab
$dump" --drafter dynatree
check "settings are completed" dumped '│ temp '
check "parameters of the drafter are completed" dumped '│ D0 '
play "size 100x40
wait
type :drafter dynatree:br
key Tab
$dump"
check "parameters in a specification are completed" dumped '^> :drafter dynatree:breadth='
play "size 100x40
wait
key Esc
type In the sea
$dump"
check "a letter after Escape is not lost" dumped '^> In the sea'
play "size 100x40
wait
type :theme hi
key Tab
$dump"
check "themes are completed" dumped '^> :theme high-contrast'
play "size 100x40
wait
type :set order=h
key Tab
$dump"
check "the values of a setting are completed" dumped '^> :set order=hpd'

# ":set KEY" must show a setting, and wrong names must give a message.
play "size 100x40
wait
type :set tauh
key Enter
wait
$dump
type :set nonsense
key Enter
$dump-2
type :c
key Enter
$dump-3
type :set speed
key Enter
$dump-4
type :set K
key Enter
wait
$dump-5" --drafter dynatree
check ":set KEY shows a parameter" dumped '^ tauh = [.0-9]'
check ":set reports an unknown setting" grep -q "^ there is no setting 'nonsense'" "$work/screen-2"
check "an ambiguous command is refused" grep -q "^ several commands begin with ':c'" "$work/screen-3"
check "a command that works only in replays is refused" grep -q 'speed works only in a replay' "$work/screen-4"
check "a parameter of a different drafter is refused" grep -q "has no parameter 'K'" "$work/screen-5"
play "size 100x40
wait
key C-c
paste text
key C-c
$dump-6"
check "C-c, a paste and another C-c do not end the program" grep -q '^ C-c again leaves' "$work/screen-6"

# The text must equal the text of `generate`, even if drafters change, or if generation pauses or
# continues in step mode.
prompt='Once upon a time there was a king who had three sons,'
words() { # prints the words of the text pane, without its frame
    sed -e '1,2d' -e '/^└/,$d' -e 's/^│ //' -e 's/ *│$//' "$work/screen" | tr -s ' \n' '\n'
}
same_text() {
    $ESPALIER generate -p "$prompt" -n 60 | tr -s ' \n' '\n' >"$work/generated"
    printf '%s' "$prompt" | tr -s ' \n' '\n' | cat - "$work/generated" | tr -d '\n' >"$work/want"
    words | tr -d '\n' >"$work/got"
    cmp "$work/want" "$work/got"
}
play "size 118x40
wait
type :set n=60
key Enter
key F5
type $prompt
key Enter
wait
key Space Space Space
wait
type :drafter linear:K=3
key Enter F5
wait
key F8
$dump"
check "a script generates the same text as espalier generate" same_text

play "size 80x24
glyphs ascii
wait
type Once upon a time
key Enter
wait
$dump" -n 20
check "--ascii prints only ASCII" [ -z "$(tr -d '\000-\177' <"$work/screen")" ]

play "size 80x24
wait
paste one line\nand another
key Left Left C-a
type >
$dump"
check "a newline in a pasted text does not send the prompt" dumped '^  and another'
check "a pasted text can be edited" dumped '^> >one line$'

cursor() { # INSTRUCTIONS: runs them and types X at the cursor
    play "size 60x16
wait
$1
type X
$dump"
}
cursor 'type naïve Käse
key Left Left'
check "Left moves by one character, even if the character has several bytes" dumped '^> naïve KäXse'
cursor 'type 漢字
key Left'
check "the cursor passes a wide character in one step" dumped '^> 漢X字'
cursor 'type one two three
key M-b C-w'
check "M-b skips a word, and C-w deletes a word" dumped '^> one Xthree'

# A search from the input line must search the text. A search from the tree must search the
# tree's tokens.
found() { # INSTRUCTIONS: generates a text and then runs the instructions
    play "size 120x36
type $prompt
key Enter
wait
$1
$dump" -n 40 --seed 1 --drafter dynatree
}
found 'type /THREE'
check "/ begins a search" dumped '^> /THREE'
found 'type /three
key Enter'
check "a match is found, and matches are counted" dumped "'three' in the text: 1 of [0-9]"
found 'type /Sons
key Enter'
check "a message says that the searched word is not in the text" dumped "not found: 'Sons' is not in the text"
found 'type /s
key Enter n N N'
check "N searches backwards and continues from the end" dumped "'s' in the text: \([0-9]*\) of \1, continued from the end"
found 'key Tab Tab < < < < /
type a
key Enter'
check "a search in the focused tree finds its tokens" dumped "'a' in the tree: [0-9]* of [0-9]"
check "a search in the focused tree keeps this iteration on the screen" dumped 'tree .*(held)'
found 'key Tab n'
check "if n is pressed before any search, a message says how to search" dumped 'no search yet: type / and a text, then Enter'
found 'key Tab Tab t'
check "t makes the tree grow to the right" dumped '" ✓ *[┬─┼┤]'
found 'type :tree right
key Enter'
check ":tree right makes the tree grow to the right" dumped '" ✓ *[┬─┼┤]'

# The palette must list every key and command of the tables, except those for replays.
play "size 120x240
wait
key F7
$dump" --drafter dynatree
for command in $commands; do
    grep -q 'ESP_IN_REPLAY' "tui/commands/each/$command.c" && continue
    check "the palette offers :$command" dumped "│ :$command .* command │"
done
for key in $(sed -n '/REPLAY/d; /, "", "")$/d; s/^\(ACTION\|COMMAND\|INPUT\)(.*"\([^" ]*\)", [A-Z]*[,)].*/\2/p' tui/view/keys.def); do
    check "the palette offers the key $key" dumped "│ $(printf %s "$key" | sed 's/[].[]/\\&/') .* key │"
done
for name in 'drafter dynatree' 'verifier traversal' 'theme mono' 'set tauh=' 'temp' 'backend cpu' \
    'model fairytale-draft'; do
    check "the palette offers :$name" dumped "│ :$name"
done
play "size 120x40
wait
key M-x
type them mono
key Enter
$dump"
check "Enter runs the selected command" dumped '^ theme = mono'
play "size 120x40
wait
key F7
type tauh
key Enter
$dump" --drafter dynatree
check "a command that needs a value is put in the input line" dumped '^> :set tauh='
play "size 120x40
wait
key F7
type F8
key Enter
$dump"
check "Enter on a key of the palette presses the key" sh -c "! grep -q 'controller' $work/screen"

# Tests the mouse: a click focuses a pane and selects an item of it, and the wheel scrolls the pane under the pointer.
play "size 120x50
wait
type Once upon a time
key Enter
wait
mouse 0 20 40
$dump
mouse 0 80 3
dump $work/node
mouse 0 5 48
dump $work/input" -n 60
check "a click on a column of the timeline shows its iteration" dumped 'iter 1[0-9] (held)'
check "a click on the tree focuses the tree" grep -q '^ Up Down move' "$work/node"
check "a click on the input line returns the focus" grep -q '^ F1 help' "$work/input"
play "size 40x12
wait
type Once upon a time there was a king
key Enter
wait
mouse 64 5 5
mouse 64 5 5
$dump
mouse 0 8 1
dump $work/tab" -n 120
check "the wheel scrolls the text" dumped '^Once upon'
check "a click on a tab shows its pane" grep -q '[·|└├]─* *"' "$work/tab"
play "size 20x6
wait
key Tab Tab Tab Tab Tab Tab
$dump"
check "the tab of the current pane is visible" dumped ' timeline '

# While text is generated, the screen is resized to a thousand sizes between 1x1 and 400x120.
sizes=$(awk 'BEGIN { srand(7); for (i = 0; i < 1000; i++)
    printf "size %dx%d\ndump /dev/null\n", 1 + rand() * 400, 1 + rand() * 120 }')
play "wait
type Once upon a time there was a king
key Enter
$sizes
size 80x24
$dump" -n 700 --drafter ar
check "the screen is drawn correctly after a thousand sizes during a generation" dumped '^└\{1\}─\{78\}┘$'
check "the generation was still running after the thousand sizes" dumped 'iter [0-9]'

play "size 60x16
frobnicate"
check "the error message names the line with an unknown instruction" grep -q "line 2: there is no instruction" "$work/err"
check "the program reports a script that does not exist" sh -c \
    "ESPALIER_SCRIPT='$work/none' $ESPALIER 2>&1 | grep -q 'none cannot be read'"
finish
