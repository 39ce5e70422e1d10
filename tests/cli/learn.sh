#!/bin/sh
# It must be possible to finish every lesson, both through a pipe and on a screen. The right answers
# depend on numbers that the lesson measures.
. tests/shell.sh
. tests/script.sh

$ESPALIER learn >"$work/list"
check "there are ten lessons" test "$(wc -l <"$work/list")" -eq 10
for lesson in $(awk '{ print $1 }' "$work/list"); do
    # The number of questions is counted in the lesson's file.
    file=sessions/lessons/$lesson.lesson
    questions=$(grep -c '^\.ask ' $file)
    yes 1 | head -n "$questions" | $ESPALIER learn "$lesson" >"$work/out" 2>"$work/err"
    check "$lesson runs to its end" test $? -eq 0
    check "$lesson has at least two questions" test "$questions" -ge 2
    check "$lesson prints how many predictions were right" grep -q "^[0-9]* of $questions predictions were right\.$" "$work/out"
    check "$lesson marks the right answer of each question" test \
        "$(grep -c '^ ✓ [1-9] ' "$work/out")" -ge "$questions"
    check "$lesson says whether each prediction was right" test "$(grep -c '^ *Right\. \|^ *Not so\. ' "$work/out")" -eq "$questions"
    check "$lesson prints a value for every {...} in its text" sh -c "! grep -q '[{}]\| ? \|\^J' '$work/out'"
    check "$lesson prints nothing on stderr" test ! -s "$work/err"
done

# Before the answer, the tree must not show which tokens the target accepts.
$ESPALIER learn 3 </dev/null >"$work/out"
check "if standard input is empty, a lesson skips its questions" test $? -eq 0
awk '/page 1 of 3|  1 of 3/ { n++ } n == 1 && /─/' "$work/out" >"$work/tree"
check "the tree is shown before the question is answered" test "$(wc -l <"$work/tree")" -gt 5
check "before the question is answered, the tree has no verdicts" sh -c "! grep -q '✓\|✗\|target' '$work/tree'"

# On a screen, a user must be able to answer, turn pages in both directions, reach the end, and return to the list.
play "size 80x24
$dump
key 3
wait
key 1
$dump" learn
check "in the list of lessons, a digit begins the lesson with this number" dumped 'A tree of guesses .*right   page 1 of 3'
check "a digit answers a question" dumped 'Right. \|Not so. '
play "size 80x24
key Down
$dump-list
key Enter
wait
$dump" learn
check "the list marks the selected lesson" grep -q '^>2  A chain of guesses' "$work/screen-list"
check "arrow keys select a lesson, and Enter begins it" dumped '^ A chain of guesses .* 1 of '
play "size 80x24
wait
key ? Space ? Space ? Space Space
wait
$dump" learn 3
check "after a lesson, the list selects the next lesson" dumped '^ The mask: .* 1 of '
for size in 80x24 120x36 40x12 20x5; do
    play "size $size
wait
key Space ? Space ? Left Right ? Space Space Space Space q" learn 3
    check "on a screen of $size, a lesson can be finished and left" test $? -eq 0
done
play "size 80x24
wait
type :learn 5
key Enter
wait
$dump
key Esc
type :learn nothing
key Enter
$dump"
check "Esc returns to the panes" dumped "there is no lesson 'nothing'"
play "size 80x24
wait
type :learn 2
key Enter
wait
$dump" --target engine/models/fairytale-target --draft engine/models/fairytale-draft
check ":learn opens a lesson in the interface" dumped 'A chain of guesses'

play "size 80x24
wait
type :learn
key Enter
key Down Enter
wait
key q
dump $work/list
key q
$dump" --target engine/models/fairytale-target --draft engine/models/fairytale-draft
check "q returns from a lesson to the list" grep -q '^>2  A chain of guesses' "$work/list"
check "q returns from the list of lessons to the panes" dumped '^┌ text'
play "size 100x24
wait
key F5
type Once upon a time
key Enter
wait
type :learn 3
key Enter
wait
dump $work/lesson
key Esc
wait
$dump
key F1 F1
dump $work/footer" -n 30 --target engine/models/fairytale-target --draft engine/models/fairytale-draft
check ":learn opens a lesson during a generation" grep -q '^ A tree of guesses' "$work/lesson"
check "opening a lesson stops the generation" dumped 'generation stopped; Enter continues it'
check "after a lesson the text is shown again" dumped '^│ Once upon a time'
check "after a lesson no generation runs" sh -c "! grep -q 'C-c stop' '$work/footer'"
play "size 100x24
wait
key F5
type Once upon a time
key Enter
wait
type :learn nothing
key Enter
wait
$dump" --target engine/models/fairytale-target --draft engine/models/fairytale-draft
check ":learn with an unknown lesson does not stop the generation" dumped 'step mode, iter'

# On a small screen, scrolling must show every line.
play "size 40x12
wait
key Space Space
dump $work/question
key Down Down
dump $work/down
key Space
dump $work/choices
key 1
dump $work/answer
key Space Space
dump $work/next" learn 2
check "a long page shows that it continues" grep -q '↓ [0-9]* *$' "$work/question"
check "Down scrolls a row" test "$(sed -n 3p "$work/down" | cut -c 1-20)" = "$(sed -n 5p "$work/question" | cut -c 1-20)"
check "the last answer can be scrolled into view" grep -q '^   3 all of them' "$work/choices"
check "the tree can be scrolled into view" grep -q ' └─ " the" *\.32' "$work/choices"
check "after an answer, the end of the explanation is visible" grep -q 'added 7 tokens' "$work/answer"
check "Space turns the page if its end is visible" grep -q '3 of 4' "$work/next"
check "answers are wrapped, not truncated" sh -c "! grep -q '…  *$' '$work/next'"

# A user's own lesson must work, and the program must report an error in such a lesson.
lesson="$work/mine.lesson"
cat >"$lesson" <<'END'
.title Mine
.tokens 6
.run now linear:K=2
.page
It wrote {now.tokens} tokens, {now.tokens / now.iterations} a pass, {now.acceptance %}.
.ask How many?
.choice 6 | now.tokens == 6
.choice other
.answer
{now.tokens}.
END
echo 1 | $ESPALIER learn "$lesson" >"$work/out"
check "a user's own lesson fills in its numbers" grep -q 'It wrote 6 tokens, ' "$work/out"
check "a user's own lesson marks the right answer" grep -q '✓ 1 6' "$work/out"
wrong() { # WHAT PATTERN SED: a lesson that SED has damaged must be refused with an error that has PATTERN
    sed "$3" "$lesson" >"$work/wrong.lesson"
    check "$1 is refused" fails 1 "$2" $ESPALIER learn "$work/wrong.lesson"
}
wrong "an unknown instruction" 'line 2: there is no instruction .nonsense' 's/^.tokens 6/.nonsense/'
wrong "an unknown value of a run" "page 1: a run has no value 'colour'" 's/{now.tokens}/{now.colour}/'
wrong "an unknown run" "no run or number" 's/{now.tokens}/{then.tokens}/'
wrong "an iteration that does not exist" "no such iteration" 's/{now.tokens}/{now[99].accepted}/'
wrong "half an expression" "page 1:" 's/now.tokens == 6/now.tokens ==/'
wrong "a brace that is not closed" "is missing" 's/^{now.tokens}[.]/{now.tokens/'
wrong "a picture that does not exist" "no picture 'bush'" 's/^.ask/.show bush now[0]\n.ask/'
wrong "a question with a single choice" "fewer than two choices" '/^.choice other/d'
wrong "a drafter that does not exist" "no drafter 'linaer'" 's/linear/linaer/'
wrong "a recording that does not exist" "no recording gone.esp.jsonl" 's/^.run now.*/.record now gone.esp.jsonl/'
wrong "a path that leaves the folder" "without a folder" 's/^.run now.*/.record now ..\/..\/x/'
wrong "a lesson without a title" "has no .title" '/^.title/d'
head -c 3000 /dev/zero | tr '\0' '(' | sed 's/^/.title x\n.page\n.ask q\n.choice a | /; s/$/\n.choice b/' >"$work/wrong.lesson"
check "an expression with thousands of brackets is refused" fails 1 'too many brackets' $ESPALIER learn "$work/wrong.lesson"
check "the error message names a lesson that does not exist" fails 1 "no lesson '99'" $ESPALIER learn 99
check "the error message names a lesson file that does not exist" fails 1 "gone.lesson" $ESPALIER learn ./gone.lesson
finish
