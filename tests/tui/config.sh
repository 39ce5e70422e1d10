#!/bin/sh
# Tests the configuration file. It must be read, the command line must override it, and errors must name the file and the
# line. It must be written only on request. Scripts read the file given with --config. The last part of the test runs on a
# terminal.
. tests/shell.sh
. tests/script.sh
. tests/terminal.sh

file=$work/settings

configured() { # LINES INSTRUCTIONS [ARGUMENTS...]: writes LINES to the file, and runs the interface with it
    printf '%s\n' "$1" >"$file"
    instructions=$2
    shift 2
    play "size 120x30
wait
$instructions
$dump" --config "$file" "$@"
}
says() { # LINES "KEY VALUE"...: with these lines in the file and with $arguments, ":KEY" must answer VALUE
    echo "$1" | awk -v dir="$work" '{
        printf "type :%s\nkey Enter\ndump %s/says-%d\n", $1, dir, NR }' >"$work/instructions"
    play "size 120x30
wait
$(cat "$work/instructions")" --config "$file" $arguments
    n=0
    echo "$1" | while read -r key value; do
        n=$((n + 1))
        check "$2: $key is $value" grep -q "^ $key = $value\$" "$work/says-$n"
        echo "$passed $failed" >"$work/counted"
    done
    read -r passed failed <"$work/counted"
}

arguments=
cat >"$file" <<'END'
# a comment
  theme light
temp 0.7

top_p=0.9
top_k = 40
seed 12
order dfs
n 33
pace 9
layout stacked
hidden node,stats
mouse on
drafter linear:K=3
baseline off
END
says 'theme light
temp 0.7
top_p 0.9
top_k 40
seed 12
order dfs
n 33
pace 9
layout stacked
hidden node,stats
mouse on
drafter linear:K=3
baseline off' 'the file'
arguments="--temp 0.2 --drafter ar --theme mono -n 5 --top-p 0.5"
says 'theme mono
temp 0.2
top_p 0.5
top_k 40
n 5
drafter ar
order dfs' 'the command line goes before it'
printf 'threads 0\nexact on\ncontext 300\nmax-nodes 64\nmemory 600M\nsystem Be brief.\ntree right\nidle 3\n' >"$file"
says 'threads auto
exact on
context 300
max-nodes 64
memory 600M
system Be brief.
tree right' 'options of the engine and texts'
printf 'model fairytale-draft\nthreads 1\ntauh 0.6\n' >"$file"
arguments=
says 'threads 1' 'the file names the models'
configured 'model fairytale-draft' ''
check "the models that the file names are loaded" dumped '^ espalier   fairytale-draft   ar'
configured 'model fairytale-draft' '' --target engine/models/fairytale-target
check "models on the command line override the models in the file" dumped '^ espalier   fairytale-target   ar'
configured 'drafter dynatree:N=8
tauh 0.6' 'type :drafter
key Enter'
check "the file can set parameters of the drafter" dumped 'tauh=0.6'

refused() { # LINES PATTERN: a configuration file with LINES must be refused with a message with PATTERN
    printf '%b\n' "$1" >"$file"
    ESPALIER_SCRIPT=/dev/null fails 1 "$2" $ESPALIER --config "$file"
}
check "the error message names an unknown setting" refused 'temp 1\nnonsense 3' "settings, line 2: there is no setting 'nonsense'"
check "a theme that does not exist is refused" refused 'theme plaid' "settings, line 1: there is no theme 'plaid'"
check "a pane that does not exist is refused" refused '\n\nhidden sky' "settings, line 3: there is no pane 'sky'"
check "a setting without a value is refused" refused 'theme' "line 1: write a setting and its value"
check "an invalid value is refused" refused 'layout round' "line 1: layout takes beside or stacked"
check "a line that is too long is refused" refused "theme $(head -c 5000 /dev/zero | tr '\0' x)" 'line 1: the line is too long'
check "a NUL byte is refused, because it would hide the rest of the line" refused 'temp 1\ntop_k 4\0 seed 3' \
    'settings, line 2: it contains a NUL byte'
export ESPALIER_SCRIPT=/dev/null
check "a file that does not exist is refused" fails 1 'none cannot be read' $ESPALIER --config "$work/none"
check "a folder is refused as the configuration file" fails 1 'it is not a regular file' $ESPALIER --config "$work"
unset ESPALIER_SCRIPT
configured 'temp -3' ''
check "an error message of the engine names the line of the file" dumped 'line 1: temp takes a number from 0 to 100'
head -c 20000 /dev/urandom >"$file"
ESPALIER_SCRIPT=/dev/null fails 1 'settings, line' $ESPALIER --config "$file"
check "a configuration file of random bytes is refused" [ $? = 0 ]
check "an error message shows no control characters of the file" refused '\033[2J\033]0;x\a 1' \
    "there is no setting '?.2J?.0;x?'"

# Saved paths must be absolute, because the program may be started in another folder.
mkdir -p "$work/my themes"
echo 'text = #010203' >"$work/my themes/own.theme"
cp -r engine/models/fairytale-draft "$work/my themes/"
ESPALIER_AT=$(cd "$(dirname "$ESPALIER")" && pwd)/$(basename "$ESPALIER")
printf '%s\n' 'size 100x24' wait 'type :theme my\ themes/own.theme' 'key Enter' \
    'type :model my\ themes/fairytale-draft' 'key Enter' wait 'type :config save' 'key Enter' >"$work/script"
: >"$work/elsewhere"
(cd "$work" && ESPALIER_SCRIPT=script "$ESPALIER_AT" --config elsewhere)
check "a theme is saved with its full path" grep -qx "theme $work/my themes/own.theme" "$work/elsewhere"
check "models are saved with their full paths" grep -qxF "model $work/my\\ themes/fairytale-draft" "$work/elsewhere"
cp "$work/elsewhere" "$file"
play "size 100x24
wait
$dump" --config "$file"
check "the saved theme and models are found when the program runs in another folder" dumped '^ espalier   fairytale-draft   ar'

printf '%s\n' 'size 100x24' wait 'type :drafter ar' 'key Enter' 'type :verifier nss' 'key Enter' wait \
    'type :drafter auto' 'key Enter' 'type :verifier auto' 'key Enter' wait 'type :config save' 'key Enter' \
    'type :model fairytale-draft' 'key Enter' wait "dump $work/screen" 'key C-u' 'type :drafter a' 'key Tab' \
    "dump $work/choices" >"$work/script"
: >"$file"
ESPALIER_SCRIPT=$work/script $ESPALIER --config "$file" >"$work/out" 2>&1
check "drafter and verifier auto are not saved" sh -c "! grep -q 'drafter\|verifier' '$file'"
check "the menu offers auto" grep -q '│ auto ' "$work/choices"
printf '%s\n' 'size 100x24' wait 'type :drafter auto' 'key Enter' wait 'type :model fairytale-draft' \
    'key Enter' wait "dump $work/screen" >"$work/script"
ESPALIER_SCRIPT=$work/script $ESPALIER >"$work/out" 2>&1
check "with drafter auto, other models use their preset" dumped '^ espalier   fairytale-draft   ar'
check "the preset of the newly loaded models gives no warning" sh -c "! grep -q 'are its own' '$work/screen'"

# On a terminal, the user's own file must be read. It must be written only on request.
config=$work/config/espalier/config
open 100x30
run -n 8
check "the program starts without a configuration file" see ready
keys ':theme light' Enter F4 ':hidden node' Enter ':temp 0.5' Enter
check "a setting can be changed on the terminal" see 'temp = 0.5'
keys ':quit' Enter
check "the program ends" left 0
check "no configuration file was written" [ ! -e "$config" ]
run -n 8
see ready
keys ':theme light' Enter F4 ':hidden node' Enter ':temp 0.5' Enter
see 'temp = 0.5'
keys ':config save' Enter
check ":config save writes the file" see 'settings were written to'
keys ':quit' Enter
left 0
for line in 'theme light' 'layout stacked' 'hidden node' 'temp 0.5' 'pace 12' 'mouse on'; do
    check "the saved file has the line: $line" grep -qx "$line" "$config"
done
check "the saved file has only changed settings" sh -c "! grep -q 'model\|drafter\|seed' '$config'"
run
see ready
keys ':layout' Enter
check "the next run uses the saved file" see 'layout = stacked'
keys ':n' Enter
check "the next run uses the saved number of tokens, which -n had set" see 'n = 8'
keys ':quit' Enter
left 0
run --no-config
see ready
keys ':layout' Enter
check "--no-config ignores the file" see 'layout = beside'
keys ':quit' Enter
check "the terminal is restored" left 0
finish
