#!/bin/sh
# The README's tour in a real terminal, from the first item to the last, with a step for each testable sentence. Numbers
# are those of the items; keys and commands are written as in the README.
. tests/shell.sh
. tests/terminal.sh

value() { # NAME: a variable of the Makefile
    sed -n "s/^$1 := //p" Makefile
}
tokens() { # of the text
    screen | sed -n 's/^┌ text   \([0-9]*\) tokens.*/\1/p'
}
more() {
    test "$(tokens)" != "$before"
}
writes() { # LINE: a prompt, or nothing; its continuation comes to its end
    before=$(tokens)
    keys "$1" Enter
    wait_until more && see 'limit reached'
}
escapes() { # PATTERN: Esc, and it is gone
    keys Escape
    gone "$1"
}
gone() { # PATTERN: not on the screen any more
    wait_until sh -c "! $terminal capture-pane -p -t main | grep -q -e '$1'"
}
answer() { # runs a line, and sees what it answers
    keys "$1" Enter
    see "$2"
}
sed -n '/^## A tour/,/^Without a terminal/p' README.md | tr '\n' ' ' | grep -o '`[^`]*`' | tr -d '`' | sort -u >"$work/spans"
while IFS= read -r span; do
    check "this file walks '$span' of the tour" grep -qF -e "$span" tests/tui/tour.sh
done <"$work/spans"
check "the tour has keys and commands" test "$(wc -l <"$work/spans")" -gt 40
start="cd $work; export EDITOR=$work/editor"
printf '#!/bin/sh\nprintf "from the editor" >"$1"\n' >"$work/editor"
chmod +x "$work/editor"

# 1. `make race`; a pass of 5 ms instead of 100.
open 120x36
keys "$start" Enter
run race --seed 1 --pass 5
check "1: one side decodes plainly" see 'ar: plain decoding, one token per pass'
check "1: at the end it is said how many times as fast the trees were" see 'identical, [0-9.]* times as fast'
check "1: to the end of a sentence" see '[.!?]"'
keys Space
check "1: Space shows it again" gone 'Space again'
check "1: to the end" see 'Space again'
keys Escape
check "1: Esc leaves" left 0

# 2. `make demo`; `--width 1` is left out: how fast trees are then is the machine's.
prompt=$(value DEMO_PROMPT)
run -p "'$prompt'" --temp 0.6 --width "$(value DEMO_WIDTH)" --drafter "$(value DEMO_DRAFTER)" --seed 7
check "2: the prompt is already there" see 'once upon a time a fisherman'
check "2: the tree of each iteration is drawn" see '[├└]─ "'
check "3: twelve trees a second are shown" see 'paced 12/s\|of 12/s\|limit reached'
check "3: the root is the last committed token" see '· ".* committed'
check "3: \`✓\` marks the accepted path" see '✓'
check "3: \`✗\` a guess that the target did not share" see '✗'
check "3: a guess has its draft probability" see '[├└]─ ".*" *[.<][0-9.]'
keys F6
check "3: \`F6\` runs at full speed" see 'full speed\|limit reached'
check "2: the text comes to its end" see 'limit reached'
check "2: the header says what the trees are worth" sh -c "$terminal capture-pane -p -t main | head -n 1 | grep -q 'plain'"
check "2: guesses that were accepted are underlined" sh -c "$terminal capture-pane -p -e -t main | grep -q '$(printf '\033')\[[0-9;]*4[m;]'"

# 4. The controller, \`D0\`.
check "4: the demo's drafter is \`dynatree\`" see '^ espalier.* dynatree'
check "4: its base depth is shown" see 'base depth'
check "4: as sparklines" see '[▁▂▃▄▅▆▇█]\{4\}'
keys Tab Tab Tab F8
check "4: \`F8\` on this pane shows charts" see '^┌ controller ─*┐$'
check "4: by their names in the papers" see 'D0'
check "4: and says why each threshold moved" see 'deeper\|end before\|reached\|because'
keys Escape
check "4: Esc gives the panes back" see '┬ tree'
check "4: \`:drafter goodput\`" answer ':drafter goodput' 'drafter = goodput'
check "4: drafts what pays" writes ''
check "4: by what a row and a draft pass cost" see 'cost of a row'

# 5. A prompt of one's own.
keys 'A king' C-j 'and a queen'
check "5: \`Ctrl-J\` begins a new line" see '^  and a queen'
keys C-x C-e
check "5: \`Ctrl-X Ctrl-E\` opens the editor" see '^> from the editor'
keys C-u ':clear' Enter
check "11: \`:clear\` asks" see 'Clear the text ([0-9]* tokens)? y: yes'
keys n
check "11: and n keeps it" gone 'Clear the text'
check "11: the text" see '^┌ text   [0-9]* tokens'
keys ':clear' Enter
check "11: again" see 'Clear the text'
keys y
check "5: the built-in models have only read fairy tales" see 'The built-in models have only read fairy tales: they'
check "5: a long text" answer ':n 700' 'n = 700'
keys 'There was once a king' Enter
check "5: Enter sends the prompt" see '│ There was once a king'
check "5: while it is written, the footer says how it stops" see 'C-c stop'
keys Escape
check "5: \`Esc\` stops a generation" see 'stopped'
keys ':clear!' Enter
check "5: :clear! does not ask" see 'The built-in models have only read fairy tales: they'
check "5: a short one" answer ':n 40' 'n = 40'

# 6. A comparison.
keys ':compare ar' Enter
check "6: \`:compare ar\`" see '[├┬] compare'
check "6: a text" writes 'Once upon a time there was a king'
check "6: plain decoding runs over the same text" see '^│ ar  *1\.00 '
check "6: what each costs" see 'draft ms'
check "6: and which is ahead" see 'iterations for the same text'
keys ':compare linear' Enter
check "6: \`:compare linear\`" see '│ linear'
before=x
check "6: has a single chain of guesses" writes ''
check "6: that has its figures, too" see '^│ linear  *[1-9]\.[0-9]'
check "6: \`:compare off\` ends it" answer ':compare off' 'comparison has ended'

# 7. Step mode and the tree.
check "7: a tree of some size" answer ':drafter iid:K=3,L=3' 'drafter = iid'
check "7: whose verifier has a formula for each node" answer ':verifier specinfer' 'verifier = specinfer'
keys F5 Enter
check "7: \`F5\` switches step mode on" see 'Draft pass 1'
for stage in 'Draft pass 2' 'Draft pass 3' 'tree is drafted'; do
    keys Space
    check "7: \`Space\` runs one stage, and it is said what happened" see "$stage"
done
steps_to() { # PATTERN: presses Space until the screen shows it
    for step in 1 2 3 4 5 6 7 8 9; do
        shows "$1" && return
        before=$(screen)
        keys Space
        wait_until sh -c "[ \"\$($terminal capture-pane -p -t main)\" != \"\$0\" ]" "$before" || return 1
    done
    shows "$1"
}
check "7: up to the next iteration" steps_to 'Draft pass 1'
keys Tab Tab
check "7: \`Tab\` goes from pane to pane, to the tree" see '^ Space step .* Up Down move'
keys '<'
check "7: the whole iteration before" see '(held), [0-9]* of'
keys Home
check "7: the arrow keys walk its nodes" see ' 1/[0-9]* '
keys Down
check "7: from one to the next" see ' 2/[0-9]* '
keys Home Enter
check "7: \`Enter\` folds" see '… [0-9]* more'
keys Enter t
check "7: \`t\` lets it grow to the right" see '· ".*" [┬┤─┼]'
keys t
check "7: and down again" see '│ [├└]─ "'
keys '/king' Enter
check "7: \`/king\` finds a token" see "'king' in the tree\|'king' is not in the tree"
keys Home Tab Tab F8
check "7: the node pane, \`F8\` zooms it" see '^┌ node .*─┐$'
check "7: the ceiling alpha* that no lossless verifier can exceed" see 'alpha\*'
check "7: how likely each child was" see '^│ children'
keys Tab Tab Tab Tab
check "7: \`Tab\` on to the accepted pane" see '^┌ accepted'
check "7: acceptance by depth, child and probability" see 'depth'
keys q
check "7: q leaves it" see '┬ tree'
keys Tab Tab Home Right Tab Tab F8
check "7: the probabilities of draft (q) and target (p)" see 'draft (q) .*target (p)'
check "7: the verifier's formula with this node's numbers" see "accepted with probability min(1, p'*/q) = "
keys q
check "7: q leaves the zoom" see '┬ tree'
before=$(tokens)
keys F5
check "7: F5 again runs on" wait_until more
check "7: to the end" see 'limit reached'
keys Tab Tab
check "7: back to the tree" see '^ Up Down move'
check "7: \`Esc\` follows the newest tree again" escapes '(held)'
check "7: and leaves the pane" escapes '^ Up Down move'

# 8. Drafters and verifiers.
keys F2
check "8: \`F2\` is a menu of the drafters" see 'how trees are drafted'
check "8: that Esc leaves" escapes 'how trees are drafted'
check "8: the verifier that suits best" answer ':verifier auto' 'verifier = '
check "8: \`:drafter linear:K=4\`" answer ':drafter linear:K=4' 'drafter = linear:K=4'
check "8: \`:drafter auto\`" answer ':drafter auto' 'drafter = [^l]'
check "8: \`/drafter linear:K=4\`" answer '/drafter linear:K=4' 'drafter = linear:K=4'
check "8: a \`/\` without a value searches" answer '/drafter' "not found: 'drafter' is not in the text"
keys Escape
check "8: a search focuses the text, which Esc leaves" see '^ F1 help'
keys ':clear!' Enter ':n 700' Enter
check "8: a long text" see 'n = 700'
keys 'There was once a king' Enter
check "8: while it streams" see 'C-c stop'
check "8: \`:set K 8\`" answer ':set K 8' 'K = 8'
check "8: \`:set temp 0\`" answer ':set temp 0' 'temp = 0'
keys F3
check "8: \`F3\` chooses among the verifiers, and says why others do not do" see 'refused\|needs a temperature'
check "8: and Esc leaves them" escapes 'needs a temperature\|refused'
check "8: the demo's temperature again" answer ':temp 0.6' 'temp = 0.6'

# 9. \`:learn\`
keys ':clear!' Enter 'There was once a queen' Enter
check "9: a prompt is sent" see '^│ There was once a queen'
check "9: a text is written" see 'C-c stop'
keys ':learn' Enter
check "9: \`:learn\` has ten lessons" see '^ 9  '
keys 3
check "9: which ask before they show" see 'Which branch will be accepted'
check "9: Esc leaves the lesson" escapes 'Which branch'
check "9: and the list" escapes '^ 8  '
check "9: a text that is being written stops for them, and stays" see '^│ There was once a queen'
check "9: which is said" see 'generation stopped; Enter continues'

# 10. Recordings and pictures.
check "10: a short text" answer ':n 30' 'n = 30'
keys F9
check "10: \`F9\` records the session" see 'recording to'
check "10: what is written" writes ''
keys M-m
check "10: \`M-m\` marks a place" see 'marked'
keys F9
check "10: a second \`F9\` ends the recording" see 'recorded to'
check "10: there is a file" sh -c "ls '$work'/*.esp.jsonl >/dev/null"
keys Tab Tab e
check "10: \`e\` in a pane saves what it shows" see '^> :export'
keys C-u ':export tree.svg dark 16:9 short' Enter
check "10: \`:export tree.svg dark 16:9 short\`" see 'tree.svg'
check "10: as a picture" wait_until test -s "$work/tree.svg"
keys ':export tale.html' Enter
check "10: \`:export tale.html\` saves all of them as a page" wait_until test -s "$work/tale.html"
check "10: and says so" see 'a page of [0-9]* iteration'

# 11. The last prompt.
keys M-e
check "11: \`M-e\` takes the last prompt back, after a question" see 'Take back the last prompt'
keys y
check "11: to change and send it again" see '^> There was once a queen'
keys ' and a fox' Enter
check "11: and so it is sent" see '^│ There was once a queen and a fox'
check "11: and continued" see 'limit reached'
check "11: \`:save FILE\` writes the text" answer ':save text' 'bytes written to'
check "11: to the file" grep -q 'There was once a queen and a fox' "$work/text"
check "11: \`:copy\` copies it" answer ':copy' 'copied to the clipboard'

# 13. Branches. Before 12, which leaves.
check "13: the likeliest tokens" answer ':temp 0' 'temp = 0'
keys ':clear!' Enter
check "13: a new text" see 'Type the beginning'
writes 'There was once a king'
keys Tab Left
check "13: the arrow keys walk the tokens: the tree is the one that wrote it" see '(held)'
keys w Left Left Left
check "13: and the node pane explains it" see '┬ tree *iter [0-9]* (held)'
before=$(tokens)
keys Enter
check "13: \`Enter\` goes to the tokens that could stand there" see 'node *token [0-9]* "'
keys Down
check "13: as a list" see '> 2 "'
keys Enter
check "13: and a second one goes on from the chosen one" see 'limit reached'
keys B
check "13: \`B\` lists both texts" see 'branches   [0-9]* of [0-9]*'
keys r 'the other' Enter
check "13: \`r\` names one" see '\[the other\]'
keys m
check "13: \`m\` marks it" see 'marked with'
here=$(screen | sed -n 's/.*branches   \([0-9]*\) of.*/\1/p')
keys '['
check "13: \`[\` goes to the one before" see "branches   $((here - 1)) of"
keys ']'
check "13: and \`]\` back" see "branches   $here of"
keys d
check "13: \`d\` deletes it, after a question" see 'Delete this branch'
keys y
check "13: then it is gone" gone 'the other'
keys u
check "13: \`u\` brings it back" see '\[the other\]'
keys u
check "13: and the text goes back to it" see "branches   $here of"
keys U
check "13: \`U\` does it again" see 'redone; u undoes it'
keys ':continue 4' Enter
check "13: \`:continue 4\` writes four" see '4 continuations'
check "13: Esc leaves the pane" escapes '^┌ branches'
keys ':clear!' Enter
check "13: \`:clear\` is undone, too" see 'Type the beginning'
keys ':undo' Enter
check "13: the text is there again" see '^│ There was once a king'
keys Tab Left i
check "13: \`i\` writes something of one's own" see '^> :insert'
keys 'and the fox said' Enter
check "13: after the cursor" see 'the fox said'
check "13: and it is continued" see 'limit reached'
keys Tab H
check "13: \`H\` colours the tokens" see 'surprisal, bits <1'
keys H H H
check "13: by origin" see 'written by draft target you'
keys ':export text tale.svg' Enter
check "13: \`:export text tale.svg\` saves it like that" see 'the text is written to'
check "13: as a picture" grep -q 'written by' "$work/tale.svg"
keys Tab
keys H Tab
check "13: \`b\` goes on from the node at the cursor of the tree" see '^ Up Down move *b branch'
keys Home Down b
check "13: as a branch" see 'iter\|limit reached'
check "13: to its end" see 'limit reached'
check "13: Esc leaves the tree" escapes '^ Up Down move'

# 12. The menu, help, keys of one's own.
keys F7 picture
check "12: \`F7\` finds what one wants: \`picture\`" see ':export'
check "12: Esc leaves it" escapes 'everything you can do'
keys F7 faster
check "12: \`faster\`" see '│ F6 '
check "12: Esc again" escapes 'everything you can do'
keys F1
check "12: \`F1\` lists keys and commands" see '^│ *Keys'
keys q
check "12: and q leaves it" see '┬ tree'
keys ':bind F12 :theme light' Enter F12
check "12: \`:bind F12 :theme light\`" see 'theme = light'
check "12: \`:config save\` remembers" answer ':config save' 'written to'
keys ':quit' Enter
check "12: \`:quit\` leaves" left 0
check "12: what was changed" grep -q 'theme light' "$work/config/espalier/config"

# 14. The session was kept.
run --resume --no-config
check "14: \`espalier --resume\` opens the last session again" see 'goes on; Enter continues its text'
keys Tab B
check "14: with all its branches" see 'branches   [0-9]* of [0-9]*'
check "14: Esc leaves the pane" escapes '^┌ branches'
keys ':private on' Enter
check "14: \`:private on\` keeps nothing more" see 'private = on'
keys ':quit' Enter
check "14: it leaves" left 0
check "14: it was kept in \`~/.local/state/espalier/sessions.db\`" test -s "$work/state/espalier/sessions.db"
run --no-config --private
check "14: \`--private\` keeps nothing at all" see 'Type the beginning'
keys ':resume' Enter
check "14: \`:resume\` goes on with another one" see 'goes on; Enter continues its text'
keys ':quit' Enter
check "14: it leaves again" left 0
check "14: \`espalier sessions\` lists it" sh -c "XDG_STATE_HOME=$work/state $program sessions | grep -q 'fairytale-target'"
check "14: \`espalier sessions search king\` finds words" sh -c \
    "XDG_STATE_HOME=$work/state $program sessions search king | grep -q '\[king'"
finish
