#!/bin/sh
# Truncates a model file, or overwrites it in place. After the model has been loaded, this must not affect
# the text. While the model is being loaded, the program must fail with an error message of one sentence.
. tests/shell.sh
. tests/script.sh

$ESPALIER inflate engine/models/fairytale-target "$work/kept" --width 2 --layers 12
prompt='Once upon a time'
file=$work/model/model.safetensors
$ESPALIER generate --target "$work/kept" --draft '' -p "$prompt" -n 500 >"$work/want"

change() { # HOW: changes the file in place
    case $1 in
    cut) : >"$file" ;;
    copied) cat "$work/kept/model.safetensors" >"$file" ;;
    esac
}
begun() { # FILE PID: waits until FILE is not empty; succeeds if process PID is still running then
    while [ ! -s "$1" ] && kill -0 "$2" 2>/dev/null; do sleep 0.01; done
    kill -0 "$2" 2>/dev/null
}

for how in cut copied; do
    cp -r "$work/kept" "$work/model"
    : >"$work/got"
    $ESPALIER generate --target "$work/model" --draft '' -p "$prompt" -n 500 >"$work/got" 2>"$work/err" &
    pid=$!
    check "generate has written text before the file is $how" begun "$work/got" $pid
    change $how
    wait $pid
    check "generate succeeds although the file was $how" test $? -eq 0 -a ! -s "$work/err"
    check "the text is the same as with an unchanged file, although the file was $how" cmp -s "$work/want" "$work/got"
    rm -rf "$work/model"
done

for how in cut copied; do
    cp -r "$work/kept" "$work/model"
    rm -f "$work/early" "$work/screen"
    play "size 100x24
wait
type :pace 40
key Enter
type $prompt
key Enter
dump $work/early
wait
key F8
$dump" --target "$work/model" --draft '' -n 60 &
    pid=$!
    check "the interface has written text before the file is $how" begun "$work/early" $pid
    change $how
    wait $pid
    check "the interface succeeds although the file was $how" test $? -eq 0
    check "the interface still writes text after the file was $how" dumped '^│ Once upon a time,* '
    rm -rf "$work/model"
done

# This preloaded library changes the size of the model's file to CUT_TO bytes after CUT_AFTER reads.
cat >"$work/cut.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static int reads;
ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    ssize_t (*system_pread)(int, void *, size_t, off_t) =
        (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    if (reads++ == atoi(getenv("CUT_AFTER")) && truncate(getenv("CUT_FILE"), atoi(getenv("CUT_TO"))) != 0)
        abort();
    return system_pread(fd, to, size, at);
}
END
${CC:-cc} -shared -fPIC -o "$work/cut.so" "$work/cut.c" -ldl || exit 1
for after in 0 1 20; do
    for to in 0 100000 200000000; do # the last size is longer than the file
        cp -r "$work/kept" "$work/model"
        check "generate fails with a message if the model's file is changed to $to bytes after $after reads" \
            fails 1 "model.safetensors" env LD_PRELOAD="$work/cut.so" CUT_AFTER=$after CUT_TO=$to CUT_FILE="$file" \
            $ESPALIER generate --target "$work/model" --draft '' -p "$prompt" -n 5 --threads 2
        rm -rf "$work/model"
    done
done
finish
