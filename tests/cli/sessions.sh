#!/bin/sh
# Tests kept sessions on the command line. By default, sessions must be kept in a library. It must be possible to
# list, find, resume, export, verify and delete them, even if the program was killed. If a session
# cannot be kept, the program must continue.
. tests/shell.sh
. tests/script.sh
default_drafter=fixed
export XDG_STATE_HOME="$work/state"
library=$XDG_STATE_HOME/espalier/sessions.db
sessions="$ESPALIER sessions"
quiet="--no-config --seed 1 --temp 0 -n 20"

check "before the first session, 'sessions' says that none are kept" fails 1 "no sessions are kept: $library does not exist" $sessions

# This session has a text, a branch from the second likeliest token, a branch from typed words, and another text after :clear.
play "size 80x24
type Once upon a time
key Enter
wait
key Tab Left Left Left Enter Down Enter
wait
type :insert and then a fox
key Enter
wait
type :branch name the fox
key Enter
type :clear!
key Enter
wait
type There was a queen
key Enter
wait" $quiet
check "writing a session with branches succeeds" test $? = 0
check "a session with branches is kept" test -s "$library"
check "the library is readable by its owner only" test "$(stat -c %a "$library" 2>/dev/null || stat -f %Lp "$library")" = 600
$sessions >"$work/list"
check "a kept session is listed" grep -q '^ *1  20[0-9-]* [0-9:]*  .* tokens  fairytale-target .* Once upon a time' "$work/list"
$sessions show 1 >"$work/show"
check "'sessions show' lists the branches of a session" test "$(grep -c 'tokens of its own' "$work/show")" -ge 3
check "'sessions show' prints the name of a branch" grep -q 'the fox:' "$work/show"
check "'sessions show' marks the text that was shown last" grep -q '^ *[0-9]*  > .*There was a queen' "$work/show"
$sessions --json >"$work/json"
check "'sessions --json' lists sessions as JSON" grep -q '"session":	*1' "$work/json"
check "'sessions search' finds words" sh -c "$sessions search 'then a fox' | grep -q '^ *1, branch [0-9]*: .*\[fox\]'"
check "'sessions search' finds beginnings of words" sh -c "$sessions search quee | grep -q '\[queen\]'"
check "'sessions search' says if it has found nothing" sh -c "$sessions search zebra | grep -q 'no text has these words'"
check "an empty search is refused" fails 1 "no words to search" $sessions search ' '
check "'sessions verify' reproduces all texts of a session" sh -c "$sessions verify 1 | grep -q 'session 1: 4 generations gave the same tokens$'"

# It must be possible to export every branch of a session as a recording.
$sessions export 1 -o "$work/present.esp.jsonl"
$sessions export 1 2 -o "$work/second.esp.jsonl"
check "the current text is exported as a recording" sh -c "$ESPALIER replay --plain '$work/present.esp.jsonl' | grep -q 'There was a queen'"
check "another branch is exported as a recording" sh -c "$ESPALIER replay --plain '$work/second.esp.jsonl' | grep -q 'Once upon a time'"
check "the exported recording has the texts of all tokens" grep -q '"likely":\[{"id":[0-9]*,"text":".*"nodes":\[{"id":[0-9]*,"text":"' "$work/present.esp.jsonl"
check "every iteration of the exported recording has scores" test "$(grep -c '"type":"iteration"' "$work/present.esp.jsonl")" = "$(grep -c '"scores":\[{' "$work/present.esp.jsonl")"
check "an existing file is not overwritten" fails 1 "already exists" $sessions export 1 -o "$work/present.esp.jsonl"
check "a branch that does not exist is refused" fails 1 "has no branch 99" $sessions export 1 99
check "an unknown session is refused" fails 1 "no session '7' is kept" $sessions show 7
check "an unknown action on sessions is refused" fails 2 "sessions takes list, search" $sessions burn

$ESPALIER export "$work/present.esp.jsonl" --html -o "$work/page.html" 2>/dev/null
check "the web page of a session has the probabilities of tokens" grep -q '"scores":\[\[' "$work/page.html"
check "the web page of a session has a legend of the colours" grep -q '"heats":\[{"title":"surprisal, bits","limits":\[1,2,4,8\]' "$work/page.html"

# In a shell, TAB must complete the actions on sessions and the numbers of sessions.
check "the shell completes actions on sessions" test "$($ESPALIER complete -- sessions se | cut -f 1)" = search
check "the shell completes the numbers of sessions" test "$($ESPALIER complete -- sessions show '' | cut -f 1)" = 1
check "the shell completes sessions with their first words" sh -c "$ESPALIER complete -- --resume '' | grep -q '^1	Once upon'"

# It must be possible to continue a session where it ended.
play "size 100x30
wait
$dump
key Enter
wait
$dump-more
type :branch previous
key Enter
wait
$dump-before" --resume 1 --no-config -n 10
check "a resumed session shows its text" dumped '^│ There was a queen'
check "a message says that a resumed session continues" dumped 'session 1 is open again'
check "a resumed session shows its trees" dumped '┬ tree   iter'
check "a resumed session can be continued" grep -q 'token limit reached' "$work/screen-more"
check "a resumed session has its branches" grep -q 'fox\|Once upon' "$work/screen-before"
check "resuming a session does not create another session" test "$($sessions | wc -l)" = 1
check "'sessions verify' reproduces what a resumed session added" sh -c "$sessions verify 1 | grep -q 'session 1: 5 generations gave the same tokens$'"
$sessions name 1 the tale
play "wait
$dump" --resume 'the tale' --no-config
check "--resume accepts the name of a session" dumped 'session 1 is open again'
play "wait
$dump" --no-config --resume
check "--resume without a name opens the last session" dumped 'session 1 is open again'
check "--resume refuses an unknown name of a session" fails 1 "no session 'nothing' is kept" $ESPALIER --resume nothing

# It must be possible to resume a recording. It then becomes a session.
play "size 100x30
wait
$dump
key Enter
wait
$dump-more" --resume sessions/samples/same-text-linear.esp.jsonl --no-config -n 10
check "--resume turns a recording into a session" dumped 'session 2 is open again'
check "a resumed recording can be continued" grep -q 'token limit reached' "$work/screen-more"
check "a resumed recording is kept" test "$($sessions | wc -l)" = 2

# If a session's models are missing, --resume must replay the session.
cp -r engine/models/fairytale-target engine/models/fairytale-draft "$work"
play "type Once upon a time
key Enter
wait" $quiet --target "$work/fairytale-target" --draft "$work/fairytale-draft"
rm -r "$work/fairytale-target"
play "size 100x30
wait
$dump" --resume 3 --no-config
check "a session without its models is replayed" dumped 'models of session 3 .* were not found'
check "a session without its models shows its text" dumped '^│ Once upon a time'
check "replaying a session leaves no temporary file" sh -c '! ls /tmp/espalier-* 2>/dev/null | grep -q "espalier-[A-Za-z0-9]*$" || true'

# Private sessions must not be kept.
play "type Once upon a time
key Enter
wait" $quiet --private
check "a session with --private is not kept" test "$($sessions | wc -l)" = 3
play "type Once upon a time
key Enter
wait
type :private on
key Enter
wait" $quiet
check "a session that becomes private later is not kept" test "$($sessions | wc -l)" = 3
echo 'private on' >"$work/config"
play "type Once upon a time
key Enter
wait" --seed 1 --temp 0 -n 20 --config "$work/config"
check "with 'private on' in the configuration file, no session is kept" test "$($sessions | wc -l)" = 3

# Continuations must be kept with the session.
play "size 100x30
type Once upon a time
key Enter
wait
type :continue 3
key Enter
wait
$dump" $quiet --drafter fixed
check ":continue 3 writes three continuations" dumped '3 continuations'
check "'sessions verify' reproduces continuations" sh -c "$sessions verify | grep -q ': 4 generations gave the same tokens$'"
play "type Once upon a time
key Enter
wait
type :continue 4
key Enter
wait
type :undo
key Enter
wait
type :branch
key Enter
wait" --no-config --seed 7 --temp 0.8 -n 24 --drafter fixed:D=3,B=2
check "'sessions verify' reproduces sampled continuations, too" sh -c "$sessions verify | grep -q ': 6 generations gave the same tokens$'"

# Deleting a session must also remove its words from the library's file.
check "a session can be deleted" sh -c "$sessions delete 1 | grep -q 'session 1 is deleted'"
check "a deleted session can no longer be shown" fails 1 "no session '1' is kept" $sessions show 1
check "the words of a deleted session are no longer in the file" sh -c "$sessions search fox | grep -q 'no text has'; ! strings '$library' 2>/dev/null | grep -q 'then a fox'"
check "'sessions delete' without a session is refused" fails 1 "name a session" $sessions delete

# If the folder cannot be written, or the file is not a library, generation must continue.
if [ "$(id -u)" != 0 ]; then
    mkdir -p "$work/closed" && chmod 500 "$work/closed"
    XDG_STATE_HOME=$work/closed
    play "type Once upon a time
key Enter
wait
$dump" $quiet
    check "generation continues without a writable home folder" dumped 'Once upon a time'
fi
XDG_STATE_HOME=/dev/null/no
play "size 100x30
type Once upon a time
key Enter
wait
$dump" $quiet
check "a message says that sessions cannot be kept in an invalid home folder" dumped 'no longer kept: /dev/null/no/espalier/sessions.db'
check "if sessions cannot be kept, text is still generated" dumped '^│ Once upon a time'
XDG_STATE_HOME=$work/other
mkdir -p "$work/other/espalier" && echo 'no library at all, but a text that is long enough' >"$work/other/espalier/sessions.db"
check "a command that only reads does not rename a file that is not a library" fails 1 "is not a library of espalier" $sessions
play "size 100x30
type Once upon a time
key Enter
wait
$dump" $quiet
check "the interface renames a file that is not a library, and says so" dumped 'is not a library of espalier'
check "the renamed file is unchanged" grep -q 'no library at all' "$work/other/espalier/sessions.db.unreadable-1"
check "the session is kept in a new file" test "$($sessions | wc -l)" = 1
finish
