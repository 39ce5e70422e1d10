#!/bin/sh
# Follows the README's tour in a real terminal, with a check for each sentence that can be tested.
# The name of a check begins with the number of the tour's item. Keys and commands are written as
# in the README.
. tests/shell.sh
. tests/terminal.sh

value() { # NAME: prints the value of a variable of the Makefile
    sed -n "s/^$1 := //p" Makefile
}
tokens() { # prints the number of tokens of the text
    screen | sed -n 's/^┌ text   \([0-9]*\) tokens.*/\1/p'
}
more() {
    test "$(tokens)" != "$before"
}
continued() { # waits until the length of the text differs from $before, then until the generation ends
    wait_until more && see 'limit reached'
}
writes() { # LINE: sends a prompt, or an empty line, and waits until its continuation ends
    before=$(tokens)
    keys "$1" Enter
    continued
}
escapes() { # PATTERN: presses Esc, and waits until PATTERN is no longer on the screen
    keys Escape
    gone "$1"
}
gone() { # PATTERN: waits until PATTERN is no longer on the screen
    wait_until sh -c "! $terminal capture-pane -p -t main | grep -q -e '$1'"
}
answer() { # LINE PATTERN: runs a line, and checks the answer
    keys "$1" Enter
    see "$2"
}
sed -n '/^## A five-minute tour/,/^Without a terminal/p' README.md | tr '\n' ' ' | grep -o '`[^`]*`' | tr -d '`' | sort -u >"$work/spans"
while IFS= read -r span; do
    check "this file tests '$span' of the tour" grep -qF -e "$span" tests/tui/tour.sh
done <"$work/spans"
check "the tour has keys and commands" test "$(wc -l <"$work/spans")" -gt 40
start="cd $work; export EDITOR=$work/editor"
printf '#!/bin/sh\nprintf "from the editor" >"$1"\n' >"$work/editor"
chmod +x "$work/editor"

# 1. `make race`, but with passes of 5 ms instead of 100 ms.
open 120x36
keys "$start" Enter
run race --seed 1 --pass 5
check "1: one side uses plain decoding" see 'ar: plain decoding, one token per pass'
check "1: the result says how many times as fast the tree was" see 'identical, [0-9.]* times as fast'
check "1: the text ends with a sentence" see '[.!?]"'
keys Space
check "1: Space starts the race again" gone 'Space again'
check "1: the race runs to its end" see 'Space again'
keys Escape
check "1: Esc ends the program" left 0

# 2. `make demo`. `--width 1` is not tested, because the speedup then depends on the machine.
prompt=$(value DEMO_PROMPT)
run -p "'$prompt'" --temp 0.6 --width "$(value DEMO_WIDTH)" --drafter "$(value DEMO_DRAFTER)" --seed 7
check "2: the prompt is in the text" see 'once upon a time a fisherman'
check "2: the tree of each iteration is drawn" see '[├└]─ "'
check "3: the pace is twelve trees a second" see 'paced 12/s\|of 12/s\|limit reached'
check "3: the root is the last committed token" see '· ".* committed'
check "3: \`✓\` marks the accepted path" see '✓'
check "3: \`✗\` marks a guess that the target rejected" see '✗'
check "3: each guess is shown with its draft probability" see '[├└]─ ".*" *[.<][0-9.]'
keys F6
check "3: \`F6\` runs at full speed" see 'full speed\|limit reached'
check "2: the generation runs to its end" see 'limit reached'
check "2: the header compares the speed with plain decoding" sh -c "$terminal capture-pane -p -t main | head -n 1 | grep -q 'plain'"
check "2: accepted guesses are underlined" sh -c "$terminal capture-pane -p -e -t main | grep -q '$(printf '\033')\[[0-9;]*4[m;]'"

# 4. The controller, \`D0\`.
check "4: the demo's drafter is \`dynatree\`" see '^ espalier.* dynatree'
check "4: the base depth of dynatree is shown" see 'base depth'
check "4: the base depth has a sparkline" see '[▁▂▃▄▅▆▇█]\{4\}'
keys Tab Tab Tab F8
check "4: \`F8\` on the controller pane shows charts" see '^┌ controller ─*┐$'
check "4: the charts use the names of the paper" see 'D0'
check "4: the controller pane says why each threshold moved" see 'deeper\|end before\|reached\|because'
keys Escape
check "4: Esc returns to the panes" see '┬ tree'
check "4: \`:drafter goodput\` chooses the drafter goodput" answer ':drafter goodput' 'drafter = goodput'
check "4: goodput generates text" writes ''
check "4: the controller pane shows the cost of a row" see 'cost of a row'

# 5. The user's own prompt.
keys 'A king' C-j 'and a queen'
check "5: \`Ctrl-J\` begins a new line" see '^  and a queen'
keys C-x C-e
check "5: \`Ctrl-X Ctrl-E\` opens the editor" see '^> from the editor'
keys C-u ':clear' Enter
check "11: \`:clear\` asks before it clears" see 'Clear the text ([0-9]* tokens)? y: yes'
keys n
check "11: n keeps the text" gone 'Clear the text'
check "11: the text is still shown" see '^┌ text   [0-9]* tokens'
keys ':clear' Enter
check "11: :clear asks again" see 'Clear the text'
keys y
check "5: after y the first screen says that the built-in models only know fairy tales" see 'The built-in models have only read fairy tales: they'
check "5: the token limit is 700" answer ':n 700' 'n = 700'
keys 'There was once a king' Enter
check "5: Enter sends the prompt" see '│ There was once a king'
check "5: during the generation the footer shows the key that stops it" see 'C-c stop'
keys Escape
check "5: \`Esc\` stops a generation" see 'stopped'
keys ':clear!' Enter
check "5: :clear! clears without a question" see 'The built-in models have only read fairy tales: they'
check "5: the token limit is 40" answer ':n 40' 'n = 40'

# 6. A comparison.
keys ':compare ar' Enter
check "6: \`:compare ar\` opens the compare pane" see '[├┬] compare'
check "6: a text is generated" writes 'Once upon a time there was a king'
check "6: plain decoding runs over the same text" see '^│ ar  *1\.00 '
check "6: the compare pane shows the times of both sides" see 'draft ms'
check "6: the compare pane says which side needs fewer iterations" see 'iterations for the same text'
keys ':compare linear' Enter
check "6: \`:compare linear\` compares with a chain" see '│ linear'
before=x
check "6: text is generated again" writes ''
check "6: the chain's totals are shown" see '^│ linear  *[1-9]\.[0-9]'
check "6: \`:compare off\` ends the comparison" answer ':compare off' 'comparison has ended'

# 7. Step mode and the tree.
check "7: a drafter with wide trees is chosen" answer ':drafter iid:K=3,L=3' 'drafter = iid'
check "7: a verifier with a formula for each node is chosen" answer ':verifier specinfer' 'verifier = specinfer'
keys F5 Enter
check "7: \`F5\` switches step mode on" see 'Draft pass 1'
for stage in 'Draft pass 2' 'Draft pass 3' 'tree is drafted'; do
    keys Space
    check "7: \`Space\` runs one stage, and a sentence describes it" see "$stage"
done
steps_to() { # PATTERN: presses Space until the screen shows PATTERN
    for step in 1 2 3 4 5 6 7 8 9; do
        shows "$1" && return
        before=$(screen)
        keys Space
        wait_until sh -c "[ \"\$($terminal capture-pane -p -t main)\" != \"\$0\" ]" "$before" || return 1
    done
    shows "$1"
}
check "7: Space continues with the next iteration" steps_to 'Draft pass 1'
keys Tab Tab
check "7: \`Tab\` moves the focus to the tree" see '^ Space step .* Up Down move'
keys '<'
check "7: the key < shows the tree of the previous iteration" see '(held), [0-9]* of'
keys Home
check "7: the arrow keys move to the first node" see ' 1/[0-9]* '
keys Down
check "7: the arrow keys move to the next node" see ' 2/[0-9]* '
keys Home Enter
check "7: \`Enter\` folds a node" see '… [0-9]* more'
keys Enter t
check "7: \`t\` draws the tree to the right" see '· ".*" [┬┤─┼]'
keys t
check "7: \`t\` draws the tree from top to bottom again" see '│ [├└]─ "'
keys '/king' Enter
check "7: \`/king\` finds a token" see "'king' in the tree\|'king' is not in the tree"
keys Home Tab Tab F8
check "7: \`F8\` zooms the node pane" see '^┌ node .*─┐$'
check "7: the zoomed node pane shows alpha*, the ceiling of lossless verifiers" see 'alpha\*'
check "7: the zoomed node pane shows how likely each child was" see '^│ children'
keys Tab Tab Tab Tab
check "7: \`Tab\` moves the focus to the accepted pane" see '^┌ accepted'
check "7: the accepted pane shows acceptance by depth, child and probability" see 'depth'
keys q
check "7: q leaves the pane" see '┬ tree'
keys Tab Tab Home Right Tab Tab F8
check "7: the node pane shows the probabilities of draft (q) and target (p)" see 'draft (q) .*target (p)'
check "7: the node pane shows the verifier's formula with this node's numbers" see "accepted with probability min(1, p'*/q) = "
keys q
check "7: q leaves the zoom" see '┬ tree'
before=$(tokens)
keys F5
check "7: F5 again ends step mode" wait_until more
check "7: the generation runs to its end" see 'limit reached'
keys Tab Tab
check "7: the tree has the focus again" see '^ Up Down move'
check "7: \`Esc\` shows the newest tree again" escapes '(held)'
check "7: a second Esc leaves the pane" escapes '^ Up Down move'

# 8. Drafters and verifiers.
keys F2
check "8: \`F2\` opens a menu of drafters" see 'how trees are drafted'
check "8: Esc closes the menu" escapes 'how trees are drafted'
check "8: :verifier auto chooses a verifier that fits" answer ':verifier auto' 'verifier = '
check "8: \`:drafter linear:K=4\` chooses a drafter" answer ':drafter linear:K=4' 'drafter = linear:K=4'
check "8: \`:drafter auto\` returns to the default" answer ':drafter auto' 'drafter = [^l]'
check "8: \`/drafter linear:K=4\` works like \`:drafter linear:K=4\`" answer '/drafter linear:K=4' 'drafter = linear:K=4'
check "8: \`/\` and a word without a value search the text" answer '/drafter' "not found: 'drafter' is not in the text"
keys Escape
check "8: Esc leaves the search" see '^ F1 help'
keys ':clear!' Enter ':n 700' Enter
check "8: the token limit is 700" see 'n = 700'
keys 'There was once a king' Enter
check "8: the generation is running" see 'C-c stop'
check "8: \`:set K 8\` changes a parameter" answer ':set K 8' 'K = 8'
check "8: \`:set temp 0\` changes the temperature" answer ':set temp 0' 'temp = 0'
keys F3
check "8: \`F3\` lists the verifiers, and says why some are refused" see 'refused\|needs a temperature'
check "8: Esc closes the menu" escapes 'needs a temperature\|refused'
check "8: the demo's temperature is set again" answer ':temp 0.6' 'temp = 0.6'

# 9. \`:learn\`
keys ':clear!' Enter 'There was once a queen' Enter
check "9: a prompt is sent" see '^│ There was once a queen'
check "9: the generation is running" see 'C-c stop'
keys ':learn' Enter
check "9: \`:learn\` lists ten lessons" see '^ 9  '
keys 3
check "9: a lesson asks for a prediction first" see 'Which branch will be accepted'
check "9: Esc leaves the lesson" escapes 'Which branch'
check "9: a second Esc leaves the list of lessons" escapes '^ 8  '
check "9: the text is still shown" see '^│ There was once a queen'
check "9: a message says that the generation was stopped" see 'generation stopped; Enter continues'

# 10. Recordings and pictures.
check "10: the token limit is 30" answer ':n 30' 'n = 30'
keys F9
check "10: \`F9\` starts a recording" see 'recording to'
check "10: a text is recorded" writes ''
keys M-m
check "10: \`M-m\` marks a place" see 'marked'
keys F9
check "10: a second \`F9\` ends the recording" see 'recorded to'
check "10: the recording is written to a file" sh -c "ls '$work'/*.esp.jsonl >/dev/null"
keys Tab Tab e
check "10: \`e\` puts the pane's export command into the input line" see '^> :export'
keys C-u ':export tree.svg dark 16:9 short' Enter
check "10: \`:export tree.svg dark 16:9 short\` exports a picture" see 'tree.svg'
check "10: the picture is written" wait_until test -s "$work/tree.svg"
keys ':export tale.html' Enter
check "10: \`:export tale.html\` writes all iterations as a page" wait_until test -s "$work/tale.html"
check "10: a message says that the page was written" see 'a page of [0-9]* iteration'

# 11. The last prompt.
keys M-e
check "11: \`M-e\` asks before it takes the last prompt back" see 'Take back the last prompt'
keys y
check "11: the prompt is in the input line" see '^> There was once a queen'
keys ' and a fox' Enter
check "11: the changed prompt is sent" see '^│ There was once a queen and a fox'
check "11: the changed prompt is continued" see 'limit reached'
check "11: \`:save FILE\` writes the text" answer ':save text' 'bytes written to'
check "11: the file has the text" grep -q 'There was once a queen and a fox' "$work/text"
check "11: \`:copy\` copies the text" answer ':copy' 'copied to the clipboard'

# 13. Branches. This comes before 12, because 12 ends the program.
check "13: the temperature is 0" answer ':temp 0' 'temp = 0'
keys ':clear!' Enter
check "13: the text is cleared" see 'Type the beginning'
writes 'There was once a king'
keys Tab Left
check "13: the arrow keys select a token, and the tree that wrote it is shown" see '(held)'
keys w Left Left Left
check "13: the tree pane says that it does not follow the newest tree" see '┬ tree *iter [0-9]* (held)'
before=$(tokens)
keys Enter
check "13: \`Enter\` lists the target's tokens for this position" see 'node *token [0-9]* "'
keys Down
check "13: the arrow keys select a token of the list" see '> 2 "'
keys Enter
check "13: a second Enter continues from the selected token" continued
keys B
check "13: \`B\` lists both texts" see 'branches   [0-9]* of [0-9]*'
keys r 'the other' Enter
check "13: \`r\` names a branch" see '\[the other\]'
keys m
check "13: \`m\` sets a mark" see 'marked with'
here=$(screen | sed -n 's/.*branches   \([0-9]*\) of.*/\1/p')
keys '['
check "13: \`[\` switches to the previous branch" see "branches   $((here - 1)) of"
keys ']'
check "13: \`]\` switches to the next branch" see "branches   $here of"
keys d
check "13: \`d\` asks before it deletes a branch" see 'Delete this branch'
keys y
check "13: the deleted branch is no longer listed" gone '\[the other\]'
keys u
check "13: \`u\` restores the branch" see '\[the other\]'
keys u
check "13: \`u\` switches to the restored branch" see "branches   $here of"
keys U
check "13: \`U\` redoes what u has undone" see 'redone; u undoes it'
check "13: \`U\` switches back to the previous branch" see "branches   $((here - 1)) of"
keys ':continue 4' Enter
check "13: \`:continue 4\` writes four continuations" see '4 continuations'
check "13: Esc leaves the branches pane" escapes '^┌ branches'
keys ':clear!' Enter
check "13: \`:clear\` clears the text" see 'Type the beginning'
keys ':undo' Enter
check "13: \`u\` restores the text" see '^│ There was once a king'
keys Tab Left i
check "13: \`i\` enters the insert command" see '^> :insert'
keys 'and the fox said' Enter
check "13: words are inserted after the cursor" see 'the fox said'
check "13: the text is continued after the inserted words" see 'limit reached'
keys Tab H
check "13: \`H\` colours the tokens by surprisal" see 'surprisal, bits <1'
keys H H H
check "13: \`H\` again colours the tokens by origin" see 'written by draft target you'
keys ':export text tale.svg' Enter
check "13: \`:export text tale.svg\` exports the coloured text" see 'the text is written to'
check "13: the picture is written" grep -q 'written by' "$work/tale.svg"
keys Tab
keys H Tab
check "13: the footer offers \`b\` at a node of the tree" see '^ Up Down move *b branch'
keys Home Down b
check "13: \`b\` starts a branch" see 'iter\|limit reached'
check "13: the branch is written to its end" see 'limit reached'
check "13: Esc leaves the tree" escapes '^ Up Down move'

# 12. The menu, the help, and the user's own keys.
keys F7 picture
check "12: \`F7\` searches the commands: \`picture\` finds :export" see ':export'
check "12: Esc closes the menu" escapes 'everything you can do'
keys F7 faster
check "12: in the menu, \`faster\` finds F6" see '│ F6 '
check "12: Esc closes the menu again" escapes 'everything you can do'
keys F1
check "12: \`F1\` lists keys and commands" see '^│ *Keys'
keys q
check "12: q closes the help" see '┬ tree'
keys ':bind F12 :theme light' Enter F12
check "12: \`:bind F12 :theme light\` binds a key" see 'theme = light'
check "12: \`:config save\` writes the configuration" answer ':config save' 'written to'
keys ':quit' Enter
check "12: \`:quit\` ends the program" left 0
check "12: the file has the changed theme" grep -q 'theme light' "$work/config/espalier/config"

# 14. The session must have been kept, and can be resumed.
run --resume --no-config
check "14: \`espalier --resume\` opens the last session" see 'is open again; Enter continues its text'
keys Tab B
check "14: the resumed session has all its branches" see 'branches   [0-9]* of [0-9]*'
check "14: Esc leaves the branches pane" escapes '^┌ branches'
keys ':private on' Enter
check "14: \`:private on\` stops keeping the session" see 'private = on'
keys ':quit' Enter
check "14: the program ends" left 0
check "14: the session was kept in \`~/.local/state/espalier/sessions.db\`" test -s "$work/state/espalier/sessions.db"
run --no-config --private
check "14: \`--private\` starts a session that is not kept" see 'Type the beginning'
keys ':resume' Enter
check "14: \`:resume\` opens another session" see 'is open again; Enter continues its text'
keys ':quit' Enter
check "14: :quit ends the resumed session" left 0
check "14: \`espalier sessions\` lists the session" sh -c "XDG_STATE_HOME=$work/state $program sessions | grep -q 'fairytale-target'"
check "14: \`espalier sessions search king\` finds words" sh -c \
    "XDG_STATE_HOME=$work/state $program sessions search king | grep -q '\[king'"
finish
