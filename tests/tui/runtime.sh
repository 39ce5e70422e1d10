#!/bin/sh
# Tests changes at run time: scripts change the models, the backend, the number of threads and all
# settings. Also tests taking back the last prompt, and writing the text to a file.
. tests/shell.sh
. tests/script.sh

built_in=fairytale-target
other=tests/vectors/logits/llama-mha # has no tokenizer
prompt='Once upon a time'

words() { # prints the words of the zoomed text pane, without its frame
    sed -e '1,2d' -e '/^└/,$d' -e 's/^│ //' -e 's/ *│$//' "$work/screen" | tr -s ' \n' '\n' | tr -d '\n'
}
generated() { # TEXT N: prints TEXT and the N tokens with which `generate` continues it
    { printf '%s' "$1"; $ESPALIER generate -p "$1" -n "$2"; } | tr -s ' \n' '\n' | tr -d '\n'
}
same_text() { # PROMPT N: the pane must show PROMPT and the N tokens with which `generate` continues it
    [ "$(words)" = "$(generated "$1" "$2")" ] && return
    printf '    |%s\n    |%s\n' "$(words)" "$(generated "$1" "$2")"
    return 1
}

# Models can be changed.
play "size 100x24
wait
type $prompt
key Enter
wait
type :model fairytale-draft
key Enter
wait
$dump" -n 20
check ":model loads another model" dumped 'fairytale-draft, draft none, on '
check "the header names the newly loaded model" dumped '^ espalier   fairytale-draft   ar, greedy, cpu'
check "loading another model keeps the text" dumped '^│ Once upon a time'
play "size 200x24
wait
type $prompt
key Enter
wait
type :model $work/nothing
key Enter
wait
dump $work/missing
type :model $other
key Enter
wait
dump $work/without
type :model fairytale-draft fairytale-draft fairytale-draft
key Enter
wait
dump $work/three
key Enter
wait
key F8
$dump" -n 20
check "if models cannot be loaded, the current models stay in use" same_text "$prompt" 40
check "the error message names a folder that does not exist" \
    grep -q "nothing: No such file or directory; the loaded models stay in use" "$work/missing"
check "the error message names the tokenizer that a folder lacks" grep -q "tokenizer.json.*; the loaded models stay in use" "$work/without"
check ":model refuses three folders" grep -q "model takes a target and, optionally, a draft" "$work/three"
play "size 200x24
wait
type $prompt
key Enter
wait
type :draft self
key Enter
wait
dump $work/self
type :draft none
key Enter
wait
dump $work/none
type :draft fairytale-draft
key Enter
wait
dump $work/draft
type :draft nothing
key Enter
wait
dump $work/nothing
key F8
$dump" -n 40
check "the target's own copy can be its draft" grep -q "$built_in, draft self:q4_k, on " "$work/self"
check ":draft none removes the draft" grep -q "$built_in, draft none, on " "$work/none"
check ":draft takes the name of a model" grep -q "$built_in, draft fairytale-draft, on " "$work/draft"
check "the error message names the unknown model" grep -q "there is no model 'nothing'" "$work/nothing"
check "changing the draft keeps the text" same_text "$prompt" 40
play "size 100x24
wait
type $prompt
key Enter
wait
type :model $built_in fairytale-draft
key Enter
wait
type :backend cpu
key Enter
wait
type :threads 1
key Enter
wait
$dump
key Enter
wait
key F8
$dump" -n 20
check "the text continues unchanged after changes of models, backend and threads" same_text "$prompt" 40
play "size 100x24
wait
type $prompt
key Enter
wait
type :threads 1
key Enter
wait
$dump" -n 20
check "the number of threads can be changed" dumped ', 1 thread'
play "size 100x24
wait
type :backend nowhere
key Enter
wait
$dump" -n 20
check "the error message names an unknown backend" dumped "there is no backend 'nowhere'"
play "size 100x24
wait
type $prompt
key Enter
type :model fairytale-target fairytale-draft
key Enter
wait
$dump
type :clear!
key Enter
type $prompt
key Enter
wait
key F8
$dump" -n 20
check "models can be changed during a generation" same_text "$prompt" 20
play "size 100x24
wait
$dump
type :model $built_in fairytale-draft
key Enter
wait
$dump" --target "$work/nothing"
check "models can be loaded after a failed start" dumped ' ready'
play "size 80x24
wait
type :model engine/models/fairytale-ta
key Tab
$dump"
check "Tab completes the folder of a model" dumped '^> :model engine/models/fairytale-target/'

# Settings can be changed. The next functions type lines, store the screen after each line, and check the screens.
typed() { # LINES: types each line; the screen after line N is stored in $work/typed-N
    echo "$1" | awk -v dir="$work" '{
        printf "type %s\nkey Enter\nwait\ndump %s/typed-%d\n", $0, dir, NR }' >"$work/instructions"
    play "size 120x30
wait
$(cat "$work/instructions")"
}
answers() { # LINES SED: types each line; the screen must then show the line as changed by the sed script SED
    typed "$1"
    n=0
    echo "$1" | while read -r line; do
        n=$((n + 1))
        check "the answer to $line is shown" grep -q -e "$(echo "$line" | sed "$2")" "$work/typed-$n"
        echo "$passed $failed" >"$work/counted"
    done
    read -r passed failed <"$work/counted"
}
answers ':set N=12
:set temp=0.7
:set top_p=0.9
:set top_k=40
:set seed=7
:set order=dfs
:set baseline=off
:set n=12
:set pace=9
:set theme=light
:set layout=stacked
:set hidden=node,mask
:set mouse=on
:set verifier=nss
:set drafter=linear:K=3
:temp 0.2
:top_p 0.8
:top_k 30
:seed 8
:order hpd
:n 13
:pace full
:layout beside
:verifier naive
:drafter ar' 's/^:set //; s/^://; s/[ =]/ = /; s/^/^ /'
answers ':temp -1
:top_p 2
:top_k x
:seed -4
:order up
:n 0
:pace slow
:layout round
:hidden nobody
:mouse maybe
:threads -1
:threads 2000
:memory 12X
:memory lots' "s/^:[a-z_]* \\(.*\\)/\\\\(not\\\\|no pane\\\\) '\\1'/"
play "size 100x30
wait
type :temp
key Enter
$dump"
check ":set without a value shows the value" dumped '^ temp = 0$'

# Every parameter of every drafter can be set. The test sets each parameter to its default, or
# to the first word that it accepts.
$ESPALIER list drafters | awk '
    /^[a-z]/ { drafter = $1; printf "type :drafter %s\nkey Enter\nwait\n", drafter }
    /^    / {
        value = $2; sub(/[|].*/, "", value); sub(/,$/, "", value)
        for (i = 2; i < NF; i++) if ($i == "default") value = $(i + 1)
        printf "type :set %s=%s\nkey Enter\nwait\ndump %s/set-%s-%s\n", $1, value, dir, drafter, $1
        printf "%s %s %s\n", drafter, $1, value >(dir "/parameters")
    }' dir="$work" >"$work/instructions"
play "size 160x30
wait
$(cat "$work/instructions")"
while read -r drafter key value; do
    check ":set $key=$value works for $drafter" grep -q "^ $key = " "$work/set-$drafter-$key"
done <"$work/parameters"
check "more than 40 parameters were set" [ "$(wc -l <"$work/parameters")" -gt 40 ]

# Prompts follow each other in one text, and the last prompt can be taken back.
play "size 100x24
wait
type $prompt
key Enter
wait
type And then
key Enter
wait
$dump
key M-e y
wait
$dump
key C-a C-k
type  there was a king
key Enter
wait
key F8
$dump" -n 12
turns=$({ printf '%s' "$prompt"; $ESPALIER generate -p "$prompt" -n 12; printf ' there was a king'; } |
    tr -s ' \n' '\n' | tr -d '\n')
check "after :edit, another prompt can be sent instead" [ "${turns}" = "$(words | cut -c 1-${#turns})" ]
play "size 100x24
wait
type $prompt
key Enter
wait
type And then
key Enter
wait
type :edit!
key Enter
wait
$dump
key C-u
type :edit!
key Enter
wait
dump $work/first
key Enter
wait
type :edit!
key Enter
wait
dump $work/again
key Enter
wait
key F8
$dump" -n 12
check ":edit takes the first prompt back" grep -q "^> $prompt" "$work/first"
check ":edit can be used a second time" grep -q "^> $prompt" "$work/again"
check "a prompt that is sent again gives the same text" same_text "$prompt" 12
play "size 100x24
wait
type $prompt
key Enter
type :edit!
key Enter Enter
type :clear!
key Enter
type $prompt
key Enter
type :edit!
key Enter Enter
wait
key M-e y
wait
$dump
key Enter
wait
key F8
$dump" -n 12
check ":edit and a new prompt work without waiting" same_text "$prompt" 12
play "size 100x24
wait
type :edit!
key Enter
$dump"
check "without a prompt :edit is refused" dumped 'no prompt to take back'

# If the drafter is "auto", newly loaded models must use the drafter of their own preset. How
# "auto" was set must not matter.
mkdir "$work/preset"
ln -s "$PWD"/engine/models/$built_in/* "$work/preset"
rm "$work/preset/espalier.json"
echo '{"drafter": "linear:K=3"}' >"$work/preset/espalier.json"
for given in "--drafter auto" "--drafter ar"; do
    play "size 140x24
wait
type :set drafter=auto
key Enter
wait
type :model $work/preset fairytale-draft
key Enter
wait
$dump" -n 20 $given
    check "if $given is followed by drafter=auto, the new pair's preset is used" dumped '^ espalier .*   linear, greedy, cpu'
done
play "size 140x24
wait
type :model $work/preset fairytale-draft
key Enter
wait
$dump" -n 20 --drafter auto
check "with --drafter auto, the new pair's preset is used" dumped '^ espalier .*   linear, greedy, cpu'
play "size 140x24
wait
type :model $work/preset fairytale-draft
key Enter
wait
$dump" -n 20 --drafter eagle2
check "loading other models keeps a drafter that was chosen on the command line" dumped '^ espalier .*   eagle2, greedy, cpu'

mkdir "$work/other tokens"
cp engine/models/fairytale-draft/* "$work/other tokens/"
sed -i 's/"Once":/"@@":/; s/"Ġupon":/"Once":/; s/"@@":/"Ġupon":/' "$work/other tokens/tokenizer.json"
play "size 200x24
wait
type $prompt
key Enter
wait
type :model $work/other\\ tokens
key Enter
wait
$dump
key M-e
dump $work/edit
type :clear!
key Enter
wait
key M-e
dump $work/cleared" -n 12
check "models with another vocabulary keep the text" dumped '^│ Once upon a time'
check "a message says that the text was tokenized again" dumped 'was kept and tokenized again'
check ":edit is refused after the text was tokenized again" grep -q 'tokenized again for other models' "$work/edit"
check "after :clear there is no prompt" grep -q 'no prompt to take back' "$work/cleared"

play "size 100x24
wait
type $prompt
key Enter
wait
type there was a king who had three sons and no money, and a queen who had none either
key Enter
wait
$dump
key C-u
type :edit!
key Enter
wait
dump $work/edit
key C-u
type $prompt
key Enter
wait
type :n 500
key Enter Enter
wait
key Enter
wait
dump $work/full
type more
key Enter
wait
dump $work/dropped" -n 4 --context 20
check "a prompt longer than the free context is refused" dumped "of the context's 20 are free"
check "a prompt that is too long returns to the input line" dumped '^> there was a king'
check "after a refused prompt, :edit returns the earlier prompt to the input line" grep -q "^> $prompt" "$work/edit"
check "a message says that the context is full" grep -q 'context is full; :clear' "$work/full"
check "a new prompt drops the oldest turn" grep -q 'oldest turn was dropped' "$work/dropped"
check "the new prompt is in the text" grep -q '^│ more' "$work/dropped"

# :save writes the text to a file.
play "size 100x24
wait
type $prompt
key Enter
wait
type :save $work/a\\ b
key Enter
type :save $work/a
key Tab
$dump" -n 2
check "a file name can contain a space" [ -s "$work/a b" ]
check "a file name with a space is completed with a backslash" dumped '/a\\ b'
play "size 100x24
wait
type $prompt
key Enter
wait
type :save $work/text
key Enter
type :save $work/text
key Enter
$dump
type :save! $work/text
key Enter
dump $work/over
type :save $work
key Enter
dump $work/folder
type :save $work/no/where
key Enter
dump $work/nowhere" -n 20
printf '%s' "$prompt" >"$work/want"
$ESPALIER generate -p "$prompt" -n 20 >>"$work/want"
check "the text is written to a file" cmp "$work/want" "$work/text"
check "an existing file is not overwritten" dumped 'already exists'
check ":save! overwrites an existing file" grep -q "bytes written to" "$work/over"
check "a folder as the name of the file is refused" grep -q "is not a regular file" "$work/folder"
check ":save reports a folder that does not exist" grep -q "no/where cannot be written: No such" "$work/nowhere"
check "no temporary file is left" [ "$(ls "$work" | grep -c '^text')" = 1 ]
check "the file has the permissions that the umask allows" [ "$(stat -c %a "$work/text")" = "$(printf %o $((0666 & ~$(umask))))" ]

# Every pane can be hidden, but not the text and the tree together.
play "size 100x30
wait
type :hidden tree,node
key Enter
$dump"
check "panes can be hidden" sh -c "! grep -q '[┬├┼] \(tree\|node\) ' $work/screen"
play "size 100x30
wait
type :hidden text,tree
key Enter
$dump"
check "text and tree cannot both be hidden" dumped 'text and tree cannot both be hidden'
finish
