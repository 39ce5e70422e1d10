#!/bin/sh
# If a pipe, a folder or a device is named instead of a regular file, the program must print an error message immediately. It
# must never hang, and existing files must stay unchanged.
. tests/shell.sh
draft=engine/models/fairytale-draft
recording=tests/cli/three.esp.jsonl
gen="$ESPALIER generate -n 4"
export XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"

# refused PATTERN command...: succeeds if the command fails within 20 seconds with a message that matches PATTERN.
refused() {
    pattern=$1
    shift
    fails 1 "$pattern" timeout -k 5 20 "$@"
}

mkfifo "$work/pipe" "$work/pipe.txt" "$work/pipe.svg" "$work/pipe.theme" "$work/pipe.cast"
mkdir "$work/folder" "$work/folder.txt" "$work/folder.theme"

# make KIND PATH: creates a file of this kind.
make() {
    rm -rf "$2"
    case $1 in
    pipe) mkfifo "$2" ;;
    folder) mkdir "$2" ;;
    device) ln -s /dev/zero "$2" ;;
    esac
}

for path in "$work/pipe" "$work/folder" /dev/zero; do
    for command in stats "replay --plain" "export --iteration 0"; do
        check "$command refuses $path" refused "$path is not a regular file" $ESPALIER $command "$path"
    done
    check "$path is refused as the folder of a model" refused "$path" $gen -p a --target "$path"
    check "inspect refuses $path" refused "$path" $ESPALIER inspect "$path"
    check "inflate refuses $path as its source" refused "$path" $ESPALIER inflate "$path" "$work/larger"
    check "inflate refuses $path as its output" refused "$path" $ESPALIER inflate $draft "$path"
    check "export refuses $path as the program espalier-dot" refused "cannot be run" \
        env ESPALIER_DOT="$path" $ESPALIER export $recording --iteration 0 --format svg
    check "$path is refused as the plugin of the CUDA backend" refused "CUDA backend could not be loaded" \
        env ESPALIER_CUDA_PLUGIN="$path" $gen -p a --backend cuda
done
check "inflate has created no folder" [ ! -e "$work/larger" ]

mkdir "$work/model"
for file in config.json tokenizer.json generation_config.json model.safetensors espalier.json tokenizer_config.json \
    chat_template.jinja; do
    for kind in pipe folder device; do
        rm -rf "$work/model"/*
        cp $draft/* "$work/model"
        make $kind "$work/model/$file"
        check "a model is refused if its $file is a $kind" refused "$file" $ESPALIER inspect "$work/model"
    done
done

check "a pipe without a writer is refused as a prompt" refused "pipe that nobody writes to" $gen -f "$work/pipe"
check "a folder is refused as a prompt" refused "Is a directory" $gen -f "$work/folder"
check "an endless file is refused as a prompt" refused "larger than 64 MB" $gen -f /dev/zero
{ sleep 1 && printf 'Once upon' && sleep 1 && printf ' a time'; } 1<>"$work/pipe" &
until timeout 20 $gen -f "$work/pipe" >"$work/piped" 2>"$work/err" ||
    ! grep -q "nobody writes" "$work/err"; do continue; done # the writer has not opened the pipe yet
wait
check "a pipe with a writer is read to its end" \
    [ "$(cat "$work/piped")" = "$($gen -p 'Once upon a time')" ]

for theme in "$work/pipe.theme" "$work/folder.theme" /dev/zero; do
    check "export --theme refuses $theme" refused "$theme" \
        $ESPALIER export $recording --asciicast "$work/x.cast" --theme "$theme"
done

check "recording to a pipe without a reader is refused" refused "nobody reads" $gen -p a --record "$work/pipe"
check "recording to a folder is refused" refused "Is a directory" $gen -p a --record "$work/folder"
for force in "" --force; do
    for path in "$work/pipe.txt" "$work/folder.txt" /dev/null; do
        check "export -o $path $force is refused" refused "$path" \
            $ESPALIER export $recording --iteration 0 --format txt -o "$path" $force
    done
    check "export -o $work/pipe.svg $force is refused, because the file is a pipe" refused "pipe.svg\|cannot be run" \
        $ESPALIER export $recording --iteration 0 -o "$work/pipe.svg" $force
    check "export --asciicast $work/pipe.cast $force is refused, because the file is a pipe" refused "pipe.cast" \
        $ESPALIER export $recording --asciicast "$work/pipe.cast" $force
done
check "no pipe was replaced by a file" [ -p "$work/pipe" -a -p "$work/pipe.txt" -a -p "$work/pipe.svg" -a \
    -p "$work/pipe.cast" ]
check "the refused commands leave no temporary file" [ -z "$(ls "$work" | grep -v '^\(pipe\|folder\|model\|state\|config\|piped\|out\|err\)')" ]

# What a drafter has learned is stored in a file. If a pipe, a folder or a device is found
# instead, the program must still generate.
$gen -p "Once upon" --drafter sequoia >/dev/null 2>&1
kept=$(find "$work/state" -name '*.json' | head -n 1)
for kind in pipe folder device; do
    [ -z "$kept" ] || make $kind "$kept"
    timeout -k 5 60 $gen -p "Once upon" --drafter sequoia >"$work/out" 2>&1
    check "generation succeeds although the file of learned values is a $kind" [ $? -eq 0 -a -n "$kept" -a -s "$work/out" ]
done
finish
