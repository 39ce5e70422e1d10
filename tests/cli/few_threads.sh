#!/bin/sh
# If the system refuses to create threads, the program must run with fewer threads. If it cannot run
# at all, an error message must say so.
. tests/shell.sh
. tests/script.sh

cat >"$work/few.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
static int made;
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    return made++ < atoi(getenv("FEW_THREADS")) ? create(thread, attributes, run, arg) : EAGAIN;
}
END
${CC:-cc} -shared -fPIC -o "$work/few.so" "$work/few.c" -ldl || exit 1

few() { # N COMMAND...: runs COMMAND with at most N threads besides the first
    threads=$1
    shift
    FEW_THREADS=$threads LD_PRELOAD="$work/few.so" "$@"
}

prompt='Once upon a time'
generate="$ESPALIER generate -p '$prompt' -n 40 --threads 2"
eval "$generate" >"$work/want"
for n in 0 1; do
    eval "few $n $generate" >"$work/got" 2>"$work/err"
    check "generate succeeds with $n threads besides the first" test $? -eq 0
    check "generate with $n threads besides the first prints no message" test ! -s "$work/err"
    check "generate writes the same text with $n threads besides the first" cmp -s "$work/want" "$work/got"
done
$ESPALIER inflate engine/models/fairytale-target "$work/large" --width 2 --layers 12 >"$work/inflated"
streamed="$ESPALIER generate --target $work/large --draft engine/models/fairytale-draft --context 96 --max-nodes 24 -n 6 -p '$prompt' --drafter linear --stats"
eval "$streamed" >"$work/whole" 2>"$work/err"
eval "few 0 $streamed --memory 76M" >"$work/read" 2>"$work/err"
check "with --memory, layers are streamed even if no thread can be created to read them" grep -q '^memory .* of 12 layers' "$work/err"
check "without a thread that reads layers, the text is the same as without a limit" cmp "$work/whole" "$work/read"
few 0 $ESPALIER list backends >"$work/backends"
check "the list of backends shows the actual number of threads" grep -q ', 1 thread$' "$work/backends"
$ESPALIER list backends >"$work/backends"
check "by default, there is one thread for each core" grep -q ", $(nproc) thread" "$work/backends"

ESPALIER_SAVED=$ESPALIER
ESPALIER="env FEW_THREADS=1 LD_PRELOAD=$work/few.so $ESPALIER_SAVED" # only the engine's thread is allowed
play "size 100x24
wait
type $prompt
key Enter
wait
key F8
$dump" -n 40 --threads 2
check "the interface runs with one thread" test $? -eq 0
check "the interface computes with one thread" dumped '^│ Once upon a time,* '
check "the interface with one thread prints no message" test ! -s "$work/err"
ESPALIER="env FEW_THREADS=0 LD_PRELOAD=$work/few.so $ESPALIER_SAVED"
printf 'wait\n' >"$work/script"
check "if the engine's thread cannot start, the interface ends with a message" \
    fails 1 "cannot start the engine thread" env ESPALIER_SCRIPT="$work/script" $ESPALIER

# The system's limit of threads does not apply to the superuser, so the program runs as another user.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
    prlimit --nproc=1 setpriv --reuid 54321 --clear-groups \
        $ESPALIER_SAVED generate -p "$prompt" -n 40 --threads 2 >"$work/got" 2>"$work/err"
    check "generate succeeds when the system's limit of threads is reached" test $? -eq 0
    check "generate writes the same text when the system's limit of threads is reached" cmp -s "$work/want" "$work/got"
fi
finish
